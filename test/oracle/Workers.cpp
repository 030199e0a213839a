//===- Workers.cpp - Cases in processes of their own ----------------------===//
#include "test/oracle/Workers.h"
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace cleave::oracle {

using Clock = std::chrono::steady_clock;

namespace {
/// What a child writes: a case begins (outcome kBegins), or its report.
struct Header {
  uint64_t seed = 0;
  uint32_t outcome = 0;
  uint32_t length = 0;
};
constexpr uint32_t kBegins = ~0u;

struct Worker {
  pid_t pid = -1;
  int pipe = -1;
  uint64_t next = 0; // seed index to begin with after a restart
  uint64_t current = 0;
  bool busy = false;
  Clock::time_point since;
  std::string buffer;
};

class Pool {
public:
  Pool(const WorkerOptions &options, std::function<Report(uint64_t)> run,
       std::function<bool(uint64_t, const Report &)> onReport)
      : options(options), run(std::move(run)), onReport(std::move(onReport)) {}
  void loop();

private:
  void start(Worker &worker);
  [[noreturn]] void work(const Worker &worker, int out);
  void readFrom(Worker &worker);
  void finish(Worker &worker, bool timedOut);
  void report(uint64_t seed, const Report &report) {
    if (going && !onReport(seed, report))
      going = false;
  }
  double age(const Worker &worker) const {
    return std::chrono::duration<double>(Clock::now() - worker.since).count();
  }

  WorkerOptions options;
  std::function<Report(uint64_t)> run;
  std::function<bool(uint64_t, const Report &)> onReport;
  std::vector<Worker> workers;
  bool going = true;
};
} // namespace

static void writeAll(int fd, const void *data, size_t size) {
  const char *at = static_cast<const char *>(data);
  while (size > 0) {
    ssize_t n = ::write(fd, at, size);
    if (n <= 0)
      ::_exit(1);
    at += n;
    size -= n;
  }
}

static void writeReport(int fd, uint64_t seed, const Report &report) {
  Header header{seed, static_cast<uint32_t>(report.outcome),
                static_cast<uint32_t>(report.detail.size())};
  writeAll(fd, &header, sizeof(header));
  writeAll(fd, report.detail.data(), report.detail.size());
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLEAVE_ORACLE_SANITIZED 1
#endif
#endif

/// A child leads a process group of its own, dies with its parent, and may not
/// eat all memory.
static void becomeChild(bool showStderr) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifndef CLEAVE_ORACLE_SANITIZED
  rlimit limit{6ull << 30, 6ull << 30};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
  rlimit noCore{0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  if (!showStderr)
    ::dup2(::open("/dev/null", O_WRONLY), 2);
}

void Pool::work(const Worker &worker, int out) {
  becomeChild(options.showStderr);
  uint64_t done = 0;
  for (uint64_t i = worker.next; i < options.count && done < options.batch;
       i += options.jobs, ++done) {
    uint64_t seed = options.firstSeed + i;
    Header begins{seed, kBegins, 0};
    writeAll(out, &begins, sizeof(begins));
    writeReport(out, seed, run(seed));
  }
  ::_exit(0);
}

void Pool::start(Worker &worker) {
  int ends[2];
  if (worker.next >= options.count || ::pipe2(ends, O_CLOEXEC) != 0) {
    worker.pid = -1;
    return;
  }
  worker.pid = ::fork();
  if (worker.pid == 0)
    work(worker, ends[1]);
  ::close(ends[1]);
  worker.pipe = ends[0];
  worker.busy = false;
  worker.since = Clock::now();
  worker.buffer.clear();
}

void Pool::readFrom(Worker &worker) {
  char chunk[65536];
  ssize_t n = ::read(worker.pipe, chunk, sizeof(chunk));
  if (n <= 0) {
    finish(worker, false);
    return;
  }
  worker.buffer.append(chunk, n);
  size_t at = 0;
  while (worker.buffer.size() - at >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, worker.buffer.data() + at, sizeof(header));
    if (worker.buffer.size() - at < sizeof(Header) + header.length)
      break;
    worker.since = Clock::now();
    worker.current = header.seed;
    worker.busy = header.outcome == kBegins;
    if (!worker.busy) {
      worker.next = header.seed - options.firstSeed + options.jobs;
      report(header.seed,
             {static_cast<Outcome>(header.outcome),
              worker.buffer.substr(at + sizeof(Header), header.length)});
    }
    at += sizeof(Header) + header.length;
  }
  worker.buffer.erase(0, at);
}

/// The child is gone, or is made to go; the next one goes on behind its case.
void Pool::finish(Worker &worker, bool timedOut) {
  if (timedOut || !going)
    ::kill(-worker.pid, SIGKILL);
  int status = 0;
  ::waitpid(worker.pid, &status, 0);
  ::kill(-worker.pid, SIGKILL); // whatever it started
  ::close(worker.pipe);
  worker.pid = -1;
  if (worker.busy) {
    worker.next = worker.current - options.firstSeed + options.jobs;
    std::string how =
        WIFSIGNALED(status)
            ? std::string("signal ") + ::strsignal(WTERMSIG(status))
            : "exit status " + std::to_string(WEXITSTATUS(status));
    report(worker.current,
           timedOut ? Report{Outcome::Hang, "no result by the deadline"}
                    : Report{Outcome::Crash, how});
  }
  if (going)
    start(worker);
}

void Pool::loop() {
  workers.resize(options.jobs);
  for (int i = 0; i < options.jobs; ++i) {
    workers[i].next = i;
    start(workers[i]);
  }
  while (true) {
    std::vector<pollfd> fds;
    std::vector<Worker *> alive;
    for (Worker &worker : workers)
      if (worker.pid > 0) {
        fds.push_back({worker.pipe, POLLIN, 0});
        alive.push_back(&worker);
      }
    if (alive.empty())
      return;
    ::poll(fds.data(), fds.size(), 200);
    for (size_t i = 0; i < alive.size(); ++i) {
      Worker &worker = *alive[i];
      if (!going)
        finish(worker, false);
      else if (fds[i].revents != 0)
        readFrom(worker);
      else if (age(worker) > options.deadlineSeconds)
        finish(worker, true);
    }
  }
}

void runSeeds(const WorkerOptions &options, std::function<Report(uint64_t)> run,
              std::function<bool(uint64_t, const Report &)> onReport) {
  Pool(options, std::move(run), std::move(onReport)).loop();
}

Report runIsolated(std::function<Report()> run, double deadlineSeconds) {
  WorkerOptions options;
  options.count = 1;
  options.deadlineSeconds = deadlineSeconds;
  Report result{Outcome::Crash, "the child ended before it began"};
  runSeeds(
      options, [&](uint64_t) { return run(); },
      [&](uint64_t, const Report &report) {
        result = report;
        return true;
      });
  return result;
}

} // namespace cleave::oracle
