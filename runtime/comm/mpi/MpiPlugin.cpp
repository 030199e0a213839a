//===- MpiPlugin.cpp - Collectives through MPI ----------------------------===//
// Point-to-point messages only: what each rank takes from each other one comes
// from the plan, and reductions are done here, in the order of the members. So
// the bits are the same as with the local backend, every type works (MPI has no
// bf16), and a rank can say at the deadline who has not come.
//
// Before the data each rank sends a header with the signature of its
// communication to each rank it meets: a mismatch is an error that names both
// sides.
//===----------------------------------------------------------------------===//
#include "runtime/comm/Plan.h"
#include "runtime/comm/Plugin.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mpi.h>
#include <sched.h>
#include <unordered_map>

using namespace cleave::rt;

namespace {

constexpr int kHeaderTag = 1, kDataTag = 2;
constexpr int64_t kMaxMessage = 1 << 30; // counts are int
constexpr int64_t kGatherAllBelow = 32 << 10;

struct Header {
  uint64_t signature;
  char text[248];
};

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

uint64_t signatureOf(const CleaveComm &c) {
  uint64_t hash = 0xcbf29ce484222325ull;
  auto mix = [&](int64_t value) {
    hash = (hash ^ uint64_t(value)) * 0x100000001b3ull;
  };
  auto mixAxes = [&](const CleaveAxes &axes) {
    for (int64_t i = 0; i < axes.count; ++i) {
      mix(axes.refs[i].axis);
      mix(axes.refs[i].pre);
      mix(axes.refs[i].size);
    }
    mix(-1);
  };
  bool isPair = c.kind == CLEAVE_SEND || c.kind == CLEAVE_RECV;
  mix(isPair ? int64_t(CLEAVE_SEND) : c.kind);
  mix(c.dtype);
  mixAxes(c.axes);
  mix(c.dim0);
  if (c.kind == CLEAVE_ALL_REDUCE || c.kind == CLEAVE_REDUCE_SCATTER)
    mix(c.reduction);
  if (isPair || c.kind == CLEAVE_ALL_REDUCE)
    return hash;
  mixAxes(c.source);
  if (c.kind == CLEAVE_PERMUTE)
    return hash;
  mix(c.outer);
  mix(c.inner);
  if (c.kind == CLEAVE_ALL_TO_ALL)
    for (int64_t value : {c.middle, c.dim1, int64_t(c.swapped)})
      mix(value);
  if (c.kind == CLEAVE_REALIGN)
    for (int64_t value : {c.dim1, c.inSize, c.outSize, c.offset, c.stride})
      mix(value);
  return hash;
}

/// The one place where an MPI error becomes a Status.
Status mpiStatus(int code, const std::string &context) {
  if (code == MPI_SUCCESS)
    return Status();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return internalError(context, ": ", std::string(text, size_t(length)));
}

/// Data to or from one member.
struct Message {
  int64_t member;
  char *data;
  int64_t bytes;
};

class MpiBackend {
public:
  MpiBackend(const CleaveProgram &program, double timeout)
      : mesh(program), timeout(timeout) {}

  Status join(int64_t numRanks);
  Status run(const CleaveComm &comm, const char *in, char *out);
  Status barrier(const char *where);
  Status agree(int32_t code, int64_t *rank);
  int64_t rank() const { return self; }

private:
  struct Known {
    CommPlan plan;
    Header header;
  };

  Status planOf(const CleaveComm &comm, const Known **known);
  Status allReduce(const Known &known, const char *in, char *out);
  Status allReduceSliced(const Known &known, const char *in, char *out);
  Status pull(const Known &known, const char *in, char *out);
  Status exchange(const Known &known, const std::vector<Message> &sends,
                  const std::vector<Message> &receives);
  Status waitFor(std::vector<MPI_Request> &requests, const std::string &what,
                 const std::function<Status()> &onDeadline);
  Status checkHeader(const Known &known, int64_t member, const Header &got);
  Status whoIsMissing(const Known &known, const std::vector<int> &came,
                      const std::vector<int64_t> &members);
  std::string deadlineText(const std::string &what) const;

  Mesh mesh;
  double timeout;
  int64_t self = 0;
  MPI_Comm world = MPI_COMM_NULL;
  std::unordered_map<const CleaveComm *, std::unique_ptr<Known>> plans;
  std::vector<std::string> lastSeen; // by rank: what its last header said
  std::vector<char> scratch;
};

} // namespace

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

Status MpiBackend::join(int64_t numRanks) {
  int size = 0, index = 0;
  CLEAVE_RETURN_IF_ERROR(
      mpiStatus(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup"));
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_size(world, &size);
  MPI_Comm_rank(world, &index);
  self = index;
  lastSeen.resize(size_t(size));
  if (size != numRanks)
    return invalidArgument("the program has ", numRanks,
                           " ranks, mpirun has started ", size);
  return Status();
}

Status MpiBackend::planOf(const CleaveComm &comm, const Known **known) {
  std::unique_ptr<Known> &entry = plans[&comm];
  if (!entry) {
    auto fresh = std::make_unique<Known>();
    CLEAVE_RETURN_IF_ERROR(planComm(mesh, self, comm, &fresh->plan));
    std::memset(&fresh->header, 0, sizeof(Header));
    fresh->header.signature = signatureOf(comm);
    std::string text = describe(comm) + " (" + signatureText(comm) + ")";
    std::strncpy(fresh->header.text, text.c_str(),
                 sizeof(fresh->header.text) - 1);
    entry = std::move(fresh);
  }
  *known = entry.get();
  return Status();
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

std::string MpiBackend::deadlineText(const std::string &what) const {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", timeout);
  return concat("rank ", self, ": ", what, " gave up after ", seconds, " s");
}

Status MpiBackend::waitFor(std::vector<MPI_Request> &requests,
                           const std::string &what,
                           const std::function<Status()> &onDeadline) {
  double limit = 0;
  for (int64_t polls = 0;; ++polls) {
    int done = 0;
    int code = MPI_Testall(int(requests.size()), requests.data(), &done,
                           MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
      return mpiStatus(code, concat("rank ", self, ": ", what));
    if (done)
      return Status();
    if (polls < 1000)
      continue;
    sched_yield();
    if (limit == 0)
      limit = now() + timeout;
    else if (now() > limit)
      return onDeadline();
  }
}

Status MpiBackend::checkHeader(const Known &known, int64_t member,
                               const Header &got) {
  int64_t rank =
      member < 0 ? known.plan.peer : known.plan.members[size_t(member)].rank;
  lastSeen[size_t(rank)] = got.text;
  if (got.signature == known.header.signature)
    return Status();
  return failedPrecondition(
      "rank ", self, ": ", known.header.text, " meets ", got.text, " of rank ",
      rank,
      "; all ranks of a group must run the same communications in the same "
      "order");
}

Status MpiBackend::whoIsMissing(const Known &known,
                                const std::vector<int> &came,
                                const std::vector<int64_t> &members) {
  std::string here, missing;
  int numHere = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    int64_t rank =
        members[i] < 0 ? known.plan.peer : known.plan.members[members[i]].rank;
    const std::string &last = lastSeen[size_t(rank)];
    if (came[i]) {
      here += concat(" ", rank);
      ++numHere;
    } else {
      missing += concat(
          missing.empty() ? "" : ", ", "rank ", rank,
          " has not (its last known: ", last.empty() ? "nothing" : last, ")");
    }
  }
  std::string text = deadlineText(describe(*known.plan.comm)) + "; ";
  if (known.plan.comm->kind == CLEAVE_SEND)
    return Status(Code::deadlineExceeded,
                  concat(text, "rank ", known.plan.peer, " has not taken it"));
  if (numHere)
    text += concat(numHere == 1 ? "rank" : "ranks", here, " arrived",
                   missing.empty() ? "" : ", ");
  return Status(Code::deadlineExceeded,
                text +
                    (missing.empty() ? ", but their data have not" : missing));
}

//===----------------------------------------------------------------------===//
// Exchanging
//===----------------------------------------------------------------------===//

/// Splits a message so that each part's size is an int.
template <typename Post>
static int postParts(const Message &message, Post post) {
  int code = MPI_SUCCESS;
  for (int64_t at = 0; at < message.bytes && code == MPI_SUCCESS;
       at += kMaxMessage)
    code =
        post(message.data + at, int(std::min(kMaxMessage, message.bytes - at)));
  return code;
}

Status MpiBackend::exchange(const Known &known,
                            const std::vector<Message> &sends,
                            const std::vector<Message> &receives) {
  auto rankOf = [&](int64_t member) {
    return int(member < 0 ? known.plan.peer
                          : known.plan.members[size_t(member)].rank);
  };
  std::vector<Header> headers(receives.size());
  std::vector<MPI_Request> arrivals(receives.size()), data;
  std::vector<int64_t> members;
  int code = MPI_SUCCESS;
  auto check = [&](int result) { code = code ? code : result; };
  for (size_t i = 0; i < receives.size(); ++i) {
    members.push_back(receives[i].member);
    check(MPI_Irecv(&headers[i], sizeof(Header), MPI_BYTE,
                    rankOf(receives[i].member), kHeaderTag, world,
                    &arrivals[i]));
  }
  for (const Message &send : sends) {
    data.emplace_back();
    check(MPI_Isend(&known.header, sizeof(Header), MPI_BYTE,
                    rankOf(send.member), kHeaderTag, world, &data.back()));
    check(postParts(send, [&](char *at, int bytes) {
      data.emplace_back();
      return MPI_Isend(at, bytes, MPI_BYTE, rankOf(send.member), kDataTag,
                       world, &data.back());
    }));
  }
  std::string what = describe(*known.plan.comm);
  CLEAVE_RETURN_IF_ERROR(mpiStatus(code, what));
  std::vector<MPI_Request> pending = arrivals;
  CLEAVE_RETURN_IF_ERROR(waitFor(pending, what, [&] {
    std::vector<int> came(pending.size());
    for (size_t i = 0; i < pending.size(); ++i) {
      came[i] = 1; // MPI sets the request to null when it is complete
      if (pending[i] != MPI_REQUEST_NULL)
        MPI_Test(&pending[i], &came[i], MPI_STATUS_IGNORE);
      if (came[i])
        CLEAVE_RETURN_IF_ERROR(
            checkHeader(known, receives[i].member, headers[i]));
    }
    return whoIsMissing(known, came, members);
  }));
  for (size_t i = 0; i < receives.size(); ++i)
    CLEAVE_RETURN_IF_ERROR(checkHeader(known, receives[i].member, headers[i]));
  for (const Message &receive : receives)
    check(postParts(receive, [&](char *at, int bytes) {
      data.emplace_back();
      return MPI_Irecv(at, bytes, MPI_BYTE, rankOf(receive.member), kDataTag,
                       world, &data.back());
    }));
  CLEAVE_RETURN_IF_ERROR(mpiStatus(code, what));
  return waitFor(data, what, [&] {
    return whoIsMissing(known, std::vector<int>(members.size(), 1), members);
  });
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Status MpiBackend::run(const CleaveComm &comm, const char *in, char *out) {
  const Known *known;
  CLEAVE_RETURN_IF_ERROR(planOf(comm, &known));
  const CommPlan &plan = known->plan;
  char *source = const_cast<char *>(in);
  if (comm.kind == CLEAVE_SEND)
    return exchange(*known, {{-1, source, plan.inBytes}}, {});
  if (comm.kind == CLEAVE_RECV)
    return exchange(*known, {}, {{-1, out, plan.outBytes}});
  if (comm.kind == CLEAVE_ALL_REDUCE)
    return plan.inBytes <= kGatherAllBelow ? allReduce(*known, in, out)
                                           : allReduceSliced(*known, in, out);
  return pull(*known, in, out);
}

/// Small: everybody gets everything and reduces it.
Status MpiBackend::allReduce(const Known &known, const char *in, char *out) {
  const CommPlan &plan = known.plan;
  size_t n = plan.members.size();
  scratch.resize(size_t(plan.inBytes) * n);
  std::vector<Message> sends, receives;
  std::vector<const void *> inputs(n);
  for (size_t k = 0; k < n; ++k) {
    char *room = scratch.data() + size_t(plan.inBytes) * k;
    inputs[k] = room;
    if (int64_t(k) == plan.self) {
      if (plan.inBytes)
        std::memcpy(room, in, size_t(plan.inBytes));
      continue;
    }
    sends.push_back({int64_t(k), const_cast<char *>(in), plan.inBytes});
    receives.push_back({int64_t(k), room, plan.inBytes});
  }
  CLEAVE_RETURN_IF_ERROR(exchange(known, sends, receives));
  if (n == 1 && plan.inBytes)
    std::memmove(out, scratch.data(), size_t(plan.inBytes));
  else if (n > 1)
    plan.reduce(out, inputs.data(), n, size_t(plan.comm->dim0));
  return Status();
}

/// Large: each member reduces its slice, then the slices are gathered.
Status MpiBackend::allReduceSliced(const Known &known, const char *in,
                                   char *out) {
  const CommPlan &plan = known.plan;
  int64_t n = int64_t(plan.members.size()), e = plan.elementBytes;
  int64_t count = plan.comm->dim0, slice = (count + n - 1) / n;
  auto begin = [&](int64_t k) { return std::min(count, slice * k); };
  auto bytes = [&](int64_t k) { return (begin(k + 1) - begin(k)) * e; };
  int64_t mine = bytes(plan.self);
  scratch.resize(size_t(mine * n));
  std::vector<Message> sends, receives;
  std::vector<const void *> inputs(n);
  for (int64_t k = 0; k < n; ++k) {
    char *room = scratch.data() + mine * k;
    inputs[k] = k == plan.self ? in + begin(k) * e : room;
    if (k == plan.self)
      continue;
    sends.push_back({k, const_cast<char *>(in) + begin(k) * e, bytes(k)});
    receives.push_back({k, room, mine});
  }
  CLEAVE_RETURN_IF_ERROR(exchange(known, sends, receives));
  char *target = out + begin(plan.self) * e;
  if (n == 1)
    std::memmove(target, in, size_t(mine));
  else
    plan.reduce(target, inputs.data(), size_t(n), size_t(mine / e));
  sends.clear();
  receives.clear();
  for (int64_t k = 0; k < n; ++k) {
    if (k == plan.self)
      continue;
    sends.push_back({k, target, mine});
    receives.push_back({k, out + begin(k) * e, bytes(k)});
  }
  return exchange(known, sends, receives);
}

/// Everything else: pieces are packed, sent, and unpacked or reduced.
Status MpiBackend::pull(const Known &known, const char *in, char *out) {
  const CommPlan &plan = known.plan;
  size_t n = plan.members.size();
  std::vector<std::vector<char>> packed(n), arrived(n);
  auto add = [](std::vector<char> &buffer, int64_t bytes) {
    size_t at = buffer.size();
    buffer.resize(at + size_t(bytes));
    return at;
  };
  for (const Pull &push : plan.pushes) {
    size_t at = add(packed[push.member], push.region.totalBytes());
    packRegion(push.region, packed[push.member].data() + at, in);
  }
  for (const Pull &each : plan.pulls)
    add(arrived[each.member], each.region.totalBytes());
  std::vector<Message> sends, receives;
  for (size_t k = 0; k < n; ++k) {
    if (int64_t(k) == plan.self) {
      arrived[k] = packed[k];
      continue;
    }
    // Also without data: all members meet, as with the other backends.
    sends.push_back({int64_t(k), packed[k].data(), int64_t(packed[k].size())});
    receives.push_back(
        {int64_t(k), arrived[k].data(), int64_t(arrived[k].size())});
  }
  CLEAVE_RETURN_IF_ERROR(exchange(known, sends, receives));
  if (plan.reduce && !plan.pulls.empty()) {
    std::vector<const void *> inputs(n);
    for (size_t k = 0; k < n; ++k)
      inputs[k] = arrived[k].data();
    size_t count = size_t(plan.outBytes / plan.elementBytes);
    if (n == 1)
      std::memcpy(out, inputs[0], size_t(plan.outBytes));
    else
      plan.reduce(out, inputs.data(), n, count);
    return Status();
  }
  std::vector<size_t> at(n);
  for (const Pull &each : plan.pulls) {
    unpackRegion(each.region, out,
                 arrived[each.member].data() + at[each.member]);
    at[each.member] += size_t(each.region.totalBytes());
  }
  return Status();
}

Status MpiBackend::barrier(const char *where) {
  std::vector<MPI_Request> request(1);
  CLEAVE_RETURN_IF_ERROR(mpiStatus(MPI_Ibarrier(world, &request[0]), where));
  return waitFor(request, where, [&] {
    return Status(Code::deadlineExceeded, deadlineText(where));
  });
}

Status MpiBackend::agree(int32_t code, int64_t *rank) {
  int64_t mine = code ? self : INT64_MAX, lowest = INT64_MAX;
  std::vector<MPI_Request> request(1);
  CLEAVE_RETURN_IF_ERROR(
      mpiStatus(MPI_Iallreduce(&mine, &lowest, 1, MPI_INT64_T, MPI_MIN, world,
                               &request[0]),
                "MPI_Iallreduce"));
  CLEAVE_RETURN_IF_ERROR(waitFor(request, "the first meeting", [&] {
    return Status(Code::deadlineExceeded, deadlineText("the first meeting"));
  }));
  *rank = lowest == INT64_MAX ? -1 : lowest;
  return Status();
}

//===----------------------------------------------------------------------===//
// The C table
//===----------------------------------------------------------------------===//

static int32_t result(const Status &status, CleaveCommError *error) {
  if (!status.ok())
    std::snprintf(error->text, sizeof(error->text), "%s",
                  status.message().c_str());
  return int32_t(status.code());
}

static MpiBackend &backend(void *self) {
  return *static_cast<MpiBackend *>(self);
}

/// MPI can be started and ended once per process.
static int numBackends = 0;

static int32_t create(const CleaveProgram *program, double timeout, void **self,
                      int64_t *rank, CleaveCommError *error) {
  int started = 0;
  MPI_Initialized(&started);
  if (!started && MPI_Init(nullptr, nullptr) != MPI_SUCCESS)
    return result(internalError("MPI_Init failed"), error);
  auto fresh = std::make_unique<MpiBackend>(*program, timeout);
  Status status = fresh->join(program->numRanks);
  *rank = fresh->rank();
  *self = fresh.release();
  ++numBackends;
  return result(status, error);
}

static int32_t run(void *self, const CleaveComm *comm, const void *in,
                   void *out, CleaveCommError *error) {
  return result(backend(self).run(*comm, static_cast<const char *>(in),
                                  static_cast<char *>(out)),
                error);
}

static int32_t barrier(void *self, const char *where, CleaveCommError *error) {
  return result(backend(self).barrier(where), error);
}

static int32_t agree(void *self, int32_t code, int64_t *rank,
                     CleaveCommError *error) {
  return result(backend(self).agree(code, rank), error);
}

static void abortAll(void *, int32_t exitStatus) {
  MPI_Abort(MPI_COMM_WORLD, exitStatus);
}

static void destroy(void *self) {
  delete static_cast<MpiBackend *>(self);
  if (--numBackends == 0)
    MPI_Finalize();
}

extern "C" const CleaveCommPlugin *cleave_comm_plugin(void) {
  static const CleaveCommPlugin plugin = {CLEAVE_COMM_PLUGIN_VERSION,
                                          create,
                                          run,
                                          barrier,
                                          agree,
                                          abortAll,
                                          destroy};
  return &plugin;
}
