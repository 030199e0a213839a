//===- LocalBackend.h - Collectives through shared memory -------*- C++ -*-===//
// Ranks are threads or processes of one machine. A rank posts its arrival in
// its cell, waits for those of the others, then reads (and for all_reduce also
// writes) their buffers in place. Small messages travel inside the cell, so
// they need one synchronisation only.
//
// Nothing here can hang: every wait ends when the awaited rank arrives, when
// any rank failed, when the awaited rank has finished or is gone, when the
// ranks wait for each other in a circle, or at the deadline.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMM_LOCALBACKEND_H
#define CLEAVE_RUNTIME_COMM_LOCALBACKEND_H

#include "runtime/comm/Backend.h"
#include "runtime/comm/SharedArea.h"
#include <functional>
#include <vector>

namespace cleave::rt {

class LocalBackend : public Backend {
public:
  /// `isAlive(rank)` is asked, rarely, while waiting; a supervisor that
  /// records deaths itself needs none.
  LocalBackend(SharedArea &area, int64_t rank, double timeoutSeconds,
               std::function<bool(int64_t)> isAlive = nullptr);
  ~LocalBackend() override;

  Status run(const CommPlan &plan, const char *in, char *out) override;
  Status barrier(const CleaveComm &where) override;
  bool fail(const Status &status) override;
  void finish() override;

private:
  /// The communication this rank is in.
  struct Place {
    const CommPlan &plan;
    uint32_t slot; // kChannelSlot for send and recv
    uint32_t seq;
    double limit = 0; // the deadline; set when a wait gets long

    const CleaveComm &comm() const { return *plan.comm; }
  };

  Status runGroup(Place &place, const char *in, char *out);
  Status runEager(Place &place, const char *in, char *out);
  Status runInPlace(Place &place, const char *in, char *out);
  Status runSend(Place &place, const char *in);
  Status runRecv(Place &place, char *out);

  void prepareNext(const Place &place, int64_t bytes);
  bool isEager(const CommPlan &plan) const;
  Status findSlot(const CommPlan &plan);
  void post(Place &place, const char *in, char *out);
  void publish(std::atomic<uint32_t> &word, uint32_t seq);
  void reduceSlices(const Place &place, int64_t *offset);
  Status awaitArrivals(Place &place);
  Status awaitDone(Place &place);
  Status await(Place &place, int64_t peer, const std::atomic<uint32_t> &word,
               uint32_t seq, bool arrival);
  Status awaitSlow(Place &place, int64_t peer,
                   const std::atomic<uint32_t> &word, uint32_t seq,
                   bool arrival);
  Status checkPeer(const Place &place, int64_t peer) const;
  bool hasArrived(int64_t rank, int64_t waiter, uint32_t slot,
                  uint32_t seq) const;
  uint64_t circleFrom(int64_t peer, std::vector<int64_t> *circle) const;
  Status checkMatch(const Place &place, int64_t peer, const Entry &entry) const;
  Status circleError(const Place &place,
                     const std::vector<int64_t> &circle) const;
  Status deadlineError(const Place &place, int64_t peer, bool arrival) const;
  Status stage(const CommPlan &plan, const char **in, char **out);

  SharedArea &area;
  int64_t self;
  int64_t numRanks;
  double timeout;
  const bool isCrowded; // ranks share cores
  std::function<bool(int64_t)> isAlive;
  std::vector<uint32_t> groupSeq;         // by slot
  std::vector<uint32_t> sendSeq, recvSeq; // by peer
  std::vector<const void *> pointers;     // scratch of the reductions
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_COMM_LOCALBACKEND_H
