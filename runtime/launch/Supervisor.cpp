//===- Supervisor.cpp - Forks ranks and watches them ----------------------===//
#include "runtime/launch/Supervisor.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cleave::rt {

constexpr double kGraceSeconds = 0.5;
constexpr int kPollMilliseconds = 100;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

static volatile std::sig_atomic_t caughtSignal = 0;

void Supervisor::handleSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { caughtSignal = number; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

/// In the child: runs the rank and never returns.
[[noreturn]] static void runChild(SharedArea &area, int64_t rank, int parent,
                                  const std::function<Status(int64_t)> &body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_IGN); // the parent ends us
  std::signal(SIGTERM, SIG_DFL);
  if (getppid() != parent)
    _exit(1); // the parent died before the line above
  area.rank(rank).pid.store(getpid());
  Status status = body(rank);
  if (!status.ok()) {
    area.fail(rank, status);
    area.rank(rank).state.store(RankState::failed);
  } else {
    area.rank(rank).state.store(RankState::finished);
  }
  std::fflush(nullptr);
  _exit(status.ok() ? 0 : 1);
}

Status Supervisor::start(const std::function<Status(int64_t)> &body) {
  std::fflush(nullptr); // else each child would write the buffers again
  int parent = getpid();
  children.resize(size_t(area.layout().numRanks));
  for (size_t r = 0; r < children.size(); ++r) {
    int pid = fork();
    if (pid == 0)
      runChild(area, int64_t(r), parent, body);
    if (pid < 0) {
      Status status = errnoStatus(concat("cannot start rank ", r), errno);
      area.fail(int64_t(r), status);
      return status;
    }
    children[r].pid = pid;
    children[r].pidfd = int(syscall(SYS_pidfd_open, pid, 0));
  }
  return Status();
}

Supervisor::~Supervisor() { killAll(); }

void Supervisor::killAll() {
  for (Child &child : children)
    if (child.pid > 0)
      kill(child.pid, SIGKILL);
  for (Child &child : children) {
    while (child.pid > 0 && waitpid(child.pid, nullptr, 0) < 0 &&
           errno == EINTR) {
    }
    child.pid = -1;
    if (child.pidfd >= 0)
      close(child.pidfd);
    child.pidfd = -1;
  }
}

void Supervisor::ended(int64_t rank, int waitStatus) {
  Child &child = children[rank];
  child.pid = -1;
  if (child.pidfd >= 0)
    close(child.pidfd);
  child.pidfd = -1;
  RankState state = area.rank(rank).state.load();
  if (state == RankState::finished || state == RankState::failed)
    return; // it said why, or there is nothing to say
  std::string how;
  if (WIFSIGNALED(waitStatus))
    how = concat("died of signal ", WTERMSIG(waitStatus), " (",
                 strsignal(WTERMSIG(waitStatus)), ")");
  else
    how = concat("exited with status ", WEXITSTATUS(waitStatus),
                 " before it had finished");
  area.fail(rank, unavailable("rank ", rank, " ", how,
                              "; its last: ", area.lastOf(rank)));
}

void Supervisor::checkStopped(int64_t rank) {
  Child &child = children[rank];
  // A rank that waits for this one knows more, and reports at the deadline:
  // leave it the time to.
  if (child.stoppedSince == 0 ||
      now() - child.stoppedSince < timeout + kGraceSeconds)
    return;
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", timeout);
  area.fail(rank, Status(Code::deadlineExceeded,
                         concat("rank ", rank, " has been stopped for ",
                                seconds, " s; its last: ", area.lastOf(rank))));
}

void Supervisor::look(int64_t rank) {
  Child &child = children[rank];
  int waitStatus = 0;
  while (child.pid > 0) {
    int pid = waitpid(child.pid, &waitStatus, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid == 0)
      break;
    if (pid < 0 && errno == EINTR)
      continue;
    if (pid > 0 && WIFSTOPPED(waitStatus))
      child.stoppedSince = now();
    else if (pid > 0 && WIFCONTINUED(waitStatus))
      child.stoppedSince = 0;
    else
      ended(rank, pid < 0 ? 0 : waitStatus);
  }
  if (child.pid > 0)
    checkStopped(rank);
}

/// Sleeps until a child ends, at most a tenth of a second.
void Supervisor::waitForNews() {
  std::vector<pollfd> fds;
  for (const Child &child : children)
    if (child.pidfd >= 0)
      fds.push_back({child.pidfd, POLLIN, 0});
  // A kernel without pidfd_open: look often instead.
  bool all = !fds.empty();
  for (const Child &child : children)
    all &= child.pid < 0 || child.pidfd >= 0;
  ::poll(fds.data(), fds.size(), all ? kPollMilliseconds : 5);
}

Status Supervisor::poll() {
  for (size_t r = 0; r < children.size(); ++r)
    look(int64_t(r));
  return area.failure();
}

Status Supervisor::join() {
  double failedAt = 0;
  while (true) {
    if (caughtSignal)
      area.fail(-1, Status(Code::aborted,
                           concat("stopped by signal ", int(caughtSignal), " (",
                                  strsignal(caughtSignal), ")")));
    Status status = poll();
    bool anyLeft = false;
    for (const Child &child : children)
      anyLeft |= child.pid > 0;
    if (!anyLeft)
      return status;
    if (!status.ok() && failedAt == 0)
      failedAt = now();
    if (failedAt != 0 && now() - failedAt > kGraceSeconds) {
      killAll();
      return area.failure();
    }
    waitForNews();
  }
}

} // namespace cleave::rt
