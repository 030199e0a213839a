//===- Rendezvous.cpp - Unrelated processes find each other ---------------===//
#include "runtime/launch/Rendezvous.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cleave::rt {

namespace {

/// What the named segment holds: where rank 0 keeps the memory of the area. It
/// is a memory file of that process, not a file below /dev/shm, which is often
/// limited to 64 MiB.
struct Notice {
  std::atomic<uint64_t> ready;
  int64_t pid;
  uint64_t pidStart;
  int64_t file;
};

} // namespace

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

static void shortSleep() { usleep(2000); }

/// When the process started, in ticks since boot; 0 when it does not exist. A
/// pid alone may have been given to another process.
static uint64_t startTime(int64_t pid) {
  FILE *file = std::fopen(concat("/proc/", pid, "/stat").c_str(), "r");
  if (!file)
    return 0;
  char line[1024];
  size_t size = std::fread(line, 1, sizeof(line) - 1, file);
  std::fclose(file);
  line[size] = 0;
  // The name of the program may hold anything but comes in parentheses.
  const char *rest = std::strrchr(line, ')');
  unsigned long long start = 0;
  char state = 0;
  if (!rest ||
      std::sscanf(rest + 2,
                  "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                  "%*d %*d %*d %*d %llu",
                  &state, &start) != 2 ||
      state == 'Z')
    return 0;
  return start;
}

static std::string segmentName(const std::string &job) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (char c : job)
    hash = (hash ^ uint64_t(static_cast<unsigned char>(c))) * 0x100000001b3ull;
  char text[64];
  std::snprintf(text, sizeof(text), "/cleave-%u-%016llx", unsigned(getuid()),
                static_cast<unsigned long long>(hash));
  return text;
}

Rendezvous::~Rendezvous() {
  if (!name.empty())
    shm_unlink(name.c_str());
  for (int fd : pidfds)
    if (fd >= 0)
      close(fd);
  if (memoryFile >= 0)
    close(memoryFile);
}

Status Rendezvous::meet(const CleaveProgram &program,
                        const RankEnvironment &who, double timeoutSeconds) {
  environment = who;
  timeout = timeoutSeconds;
  limit = now() + timeout;
  CLEAVE_RETURN_IF_ERROR(who.rank == 0 ? create(program) : open(program));
  CLEAVE_RETURN_IF_ERROR(takePlace());
  CLEAVE_RETURN_IF_ERROR(waitForAll());
  for (int64_t r = 0; r < who.size; ++r)
    pidfds.push_back(
        int(syscall(SYS_pidfd_open, shared->rank(r).pid.load(), 0)));
  return Status();
}

Status Rendezvous::create(const CleaveProgram &program) {
  int64_t bytes = AreaLayout::of(program).totalBytes;
  memoryFile = memfd_create("cleave", MFD_CLOEXEC);
  if (memoryFile < 0 || ftruncate(memoryFile, bytes) != 0)
    return errnoStatus(concat("cannot make ", bytes, " bytes of memory"),
                       errno);
  CLEAVE_RETURN_IF_ERROR(SharedArea::map(program, memoryFile, &shared));
  shared->control().ready.store(kReady, std::memory_order_release);
  name = segmentName(environment.job);
  shm_unlink(name.c_str()); // of a run that was killed while it met
  int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Notice)) != 0) {
    Status status = errnoStatus(
        concat("cannot make the shared memory '", name, "'"), errno);
    if (fd >= 0)
      close(fd);
    return status;
  }
  void *memory =
      mmap(nullptr, sizeof(Notice), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED)
    return errnoStatus("cannot map the shared memory", errno);
  Notice *notice = static_cast<Notice *>(memory);
  notice->pid = getpid();
  notice->pidStart = startTime(getpid());
  notice->file = memoryFile;
  notice->ready.store(kReady, std::memory_order_release);
  munmap(memory, sizeof(Notice));
  return Status();
}

/// The memory file of rank 0, or -1 while there is none (or only that of a run
/// that is over).
static int findMemory(const std::string &name) {
  int fd = shm_open(name.c_str(), O_RDWR, 0600);
  if (fd < 0)
    return -1;
  struct stat info;
  void *memory = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size >= int64_t(sizeof(Notice)))
    memory = mmap(nullptr, sizeof(Notice), PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd, 0);
  close(fd);
  if (memory == MAP_FAILED)
    return -1;
  const Notice *notice = static_cast<const Notice *>(memory);
  int found = -1;
  if (notice->ready.load(std::memory_order_acquire) == kReady &&
      startTime(notice->pid) == notice->pidStart)
    found = ::open(concat("/proc/", notice->pid, "/fd/", notice->file).c_str(),
                   O_RDWR | O_CLOEXEC);
  munmap(memory, sizeof(Notice));
  return found;
}

Status Rendezvous::open(const CleaveProgram &program) {
  std::string segment = segmentName(environment.job);
  while ((memoryFile = findMemory(segment)) < 0) {
    if (now() > limit) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", timeout);
      return Status(Code::deadlineExceeded,
                    concat("rank ", environment.rank, " waited ", seconds,
                           " s for rank 0, which has not started on this "
                           "machine"));
    }
    shortSleep();
  }
  struct stat info;
  bool same = fstat(memoryFile, &info) == 0 &&
              info.st_size == AreaLayout::of(program).totalBytes;
  if (same)
    CLEAVE_RETURN_IF_ERROR(SharedArea::map(program, memoryFile, &shared));
  if (!same || shared->control().identity != programIdentity(program))
    return failedPrecondition("rank ", environment.rank,
                              " runs another build of the program than rank "
                              "0; start the same file everywhere");
  return Status();
}

Status Rendezvous::takePlace() {
  int32_t free = 0;
  if (!shared->rank(environment.rank)
           .pid.compare_exchange_strong(free, getpid()))
    return failedPrecondition("processes ", free, " and ", getpid(),
                              " both say that they are rank ",
                              environment.rank);
  return Status();
}

Status Rendezvous::waitForAll() {
  auto missing = [&] {
    std::string ranks;
    for (int64_t r = 0; r < environment.size; ++r)
      if (shared->rank(r).pid.load() == 0)
        ranks += concat(" ", r);
    return ranks;
  };
  while (!missing().empty()) {
    if (shared->hasFailed())
      return Status(Code::aborted, "stopped because another rank failed");
    if (now() > limit) {
      std::string late = missing();
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", timeout);
      Status status(
          Code::deadlineExceeded,
          concat("rank ", environment.rank, " waited ", seconds, " s; rank",
                 late.find(' ', 1) == std::string::npos ? "" : "s", late,
                 late.find(' ', 1) == std::string::npos ? " has" : " have",
                 " not started on this machine"));
      bool first = shared->fail(environment.rank, status);
      return first ? status
                   : Status(Code::aborted, "stopped because another failed");
    }
    shortSleep();
  }
  if (!name.empty())
    shm_unlink(name.c_str());
  name.clear();
  return Status();
}

bool Rendezvous::isAlive(int64_t rank) const {
  int fd = pidfds[rank];
  if (fd < 0) // no pidfd_open in this kernel
    return kill(shared->rank(rank).pid.load(), 0) == 0 || errno != ESRCH;
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 0;
}

} // namespace cleave::rt
