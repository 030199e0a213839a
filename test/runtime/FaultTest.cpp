//===- FaultTest.cpp - Ranks that die, stop, differ or are late -----------===//
// Nothing may hang: each test ends long before a minute, and its message is
// compared whole.
#include "test/runtime/TestProgram.h"

#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

const TestProgram &twoRanks() {
  static TestProgram program({2});
  return program;
}

Status runComm(const CleaveProgram &program, int64_t rank, Backend &backend,
               char *arena, const TestComm &comm) {
  CommPlan plan;
  Mesh mesh(program);
  CLEAVE_RETURN_IF_ERROR(planComm(mesh, rank, comm.comm, &plan));
  return backend.run(plan, arena, arena + (512 << 10));
}

// Made before any rank is forked, as the static data of a program are.
const TestComm kFirst = makeComm(CLEAVE_ALL_REDUCE, 0, 2, 4,
                                 "all_reduce over 'a'", "'%x' (m.mlir:1:2)");
const TestComm kSecond = makeComm(CLEAVE_ALL_REDUCE, 0, 2, 8,
                                  "all_reduce over 'a'", "'%y' (m.mlir:2:3)");

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/// Rank 0 runs kFirst and kSecond; rank 1 runs kFirst, then `act`.
Status runWithAct(void (*act)(), double timeout) {
  const CleaveProgram &program = twoRanks().program;
  return runProcesses(
      program,
      [&](int64_t rank, Backend &backend, char *arena) {
        CLEAVE_RETURN_IF_ERROR(runComm(program, rank, backend, arena, kFirst));
        if (rank == 1)
          act();
        return runComm(program, rank, backend, arena, kSecond);
      },
      timeout);
}

TEST(Fault, KilledRankIsNamed) {
  double start = seconds();
  Status status = runWithAct([] { raise(SIGKILL); }, 30);
  EXPECT_EQ(status.message(),
            "rank 1 died of signal 9 (Killed); its last: all_reduce over 'a' "
            "in '%x' (m.mlir:1:2), passed");
  EXPECT_EQ(status.code(), Code::unavailable);
  EXPECT_LT(seconds() - start, 1.0);
}

TEST(Fault, QuietExitIsNamed) {
  Status status = runWithAct([] { _exit(0); }, 30);
  EXPECT_EQ(status.message(),
            "rank 1 exited with status 0 before it had finished; its last: "
            "all_reduce over 'a' in '%x' (m.mlir:1:2), passed");
}

TEST(Fault, StoppedRankMeetsTheDeadline) {
  double start = seconds();
  Status status = runWithAct([] { raise(SIGSTOP); }, 0.3);
  EXPECT_EQ(status.message(),
            "rank 0: all_reduce over 'a' in '%y' (m.mlir:2:3) gave up after "
            "0.3 s; rank 1 has not arrived (its last: all_reduce over 'a' in "
            "'%x' (m.mlir:1:2), passed)");
  EXPECT_EQ(status.code(), Code::deadlineExceeded);
  EXPECT_LT(seconds() - start, 2.0);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1); // no child is left
}

TEST(Fault, StoppedRankThatNobodyWaitsFor) {
  const CleaveProgram &program = twoRanks().program;
  Status status = runProcesses(
      program,
      [&](int64_t rank, Backend &, char *) {
        if (rank == 1)
          raise(SIGSTOP);
        return Status();
      },
      0.2);
  EXPECT_EQ(status.message(), "rank 1 has been stopped for 0.2 s; its last: "
                              "no communication yet");
}

TEST(Fault, BusyRankThatFailsLate) {
  const CleaveProgram &program = twoRanks().program;
  double start = seconds();
  Status status = runProcesses(
      program,
      [&](int64_t rank, Backend &, char *) {
        if (rank == 1)
          return internalError("rank 1: the first reason");
        for (;;) // a kernel that never looks up
          usleep(1000);
      },
      30);
  EXPECT_EQ(status.message(), "rank 1: the first reason");
  EXPECT_LT(seconds() - start, 1.5);
}

/// Runs different communications on the two ranks. Either may notice.
std::string differ(const TestComm &zero, const TestComm &one) {
  const CleaveProgram &program = twoRanks().program;
  Status status = runThreads(
      program,
      [&](int64_t rank, Backend &backend, char *arena) {
        return runComm(program, rank, backend, arena, rank ? one : zero);
      },
      30);
  EXPECT_EQ(status.code(), Code::failedPrecondition);
  return status.message();
}

const char kRule[] = "; all ranks of a group must run the same communications "
                     "in the same order";

void expectEither(const std::string &message, const std::string &zero,
                  const std::string &one) {
  EXPECT_TRUE(
      message == "rank 0: " + zero + " meets " + one + " of rank 1" + kRule ||
      message == "rank 1: " + one + " meets " + zero + " of rank 0" + kRule)
      << message;
}

TEST(Fault, DifferentCounts) {
  expectEither(differ(kFirst, kSecond),
               "all_reduce over 'a' in '%x' (m.mlir:1:2) (all_reduce of 4 f32, "
               "sum)",
               "all_reduce over 'a' in '%y' (m.mlir:2:3) (all_reduce of 8 f32, "
               "sum)");
}

TEST(Fault, DifferentKinds) {
  TestComm gather =
      makeComm(CLEAVE_ALL_GATHER, 0, 2, 4, "all_gather over 'a'", "'%z'");
  expectEither(differ(kFirst, gather),
               "all_reduce over 'a' in '%x' (m.mlir:1:2) (all_reduce of 4 f32, "
               "sum)",
               "all_gather over 'a' in '%z' (all_gather of 4 f32)");
}

TEST(Fault, DifferentTypesAndReductions) {
  TestComm other = kFirst;
  other.comm.dtype = CLEAVE_BF16;
  other.comm.reduction = CLEAVE_MAX;
  other.fix();
  expectEither(differ(kFirst, other),
               "all_reduce over 'a' in '%x' (m.mlir:1:2) (all_reduce of 4 f32, "
               "sum)",
               "all_reduce over 'a' in '%x' (m.mlir:1:2) (all_reduce of 4 "
               "bf16, max)");
}

TEST(Fault, EqualContentsMayHaveOtherCauses) {
  TestComm other = kFirst;
  other.cause = "'%w'";
  other.fix();
  const CleaveProgram &program = twoRanks().program;
  Status status =
      runThreads(program, [&](int64_t rank, Backend &backend, char *arena) {
        return runComm(program, rank, backend, arena, rank ? other : kFirst);
      });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Fault, SendWithoutReceiveInACircle) {
  // Both send something large first: neither send can end.
  TestComm right = makeComm(CLEAVE_SEND, 0, 2, 50000, "send to 1", "'%s'");
  TestComm left = makeComm(CLEAVE_SEND, 0, 2, 50000, "send to 0", "'%t'");
  right.comm.peer = 1;
  left.comm.peer = -1;
  const std::string message = differ(right, left);
  EXPECT_TRUE(message == concat("rank 0: send to 1 in '%s' waits for rank 1, "
                                "which waits in send to 0 in '%t' for rank 0",
                                kRule) ||
              message == concat("rank 1: send to 0 in '%t' waits for rank 0, "
                                "which waits in send to 1 in '%s' for rank 1",
                                kRule))
      << message;
}

TEST(Fault, DifferentOrderOverTwoAxes) {
  // On a 2x2 mesh ranks 1 and 2 take 'b' before 'a'. No two ranks meet in the
  // same group with different contents: it is a circle of four waits.
  TestProgram program({2, 2});
  TestComm a = makeComm(CLEAVE_ALL_REDUCE, 0, 2, 4, "all_reduce over 'a'");
  TestComm b = makeComm(CLEAVE_ALL_REDUCE, 1, 2, 4, "all_reduce over 'b'");
  double start = seconds();
  Status status = runThreads(
      program.program, [&](int64_t rank, Backend &backend, char *arena) {
        CLEAVE_RETURN_IF_ERROR(
            runComm(program.program, rank, backend, arena, rank % 3 ? b : a));
        return runComm(program.program, rank, backend, arena, rank % 3 ? a : b);
      });
  EXPECT_EQ(status.code(), Code::failedPrecondition);
  EXPECT_NE(status.message().find("waits for rank"), std::string::npos);
  EXPECT_NE(status.message().find(kRule), std::string::npos)
      << status.message();
  EXPECT_LT(seconds() - start, 5.0);
}

TEST(Fault, OneRankFinishesEarly) {
  const CleaveProgram &program = twoRanks().program;
  Status status =
      runThreads(program, [&](int64_t rank, Backend &backend, char *arena) {
        CLEAVE_RETURN_IF_ERROR(runComm(program, rank, backend, arena, kFirst));
        return rank ? Status()
                    : runComm(program, rank, backend, arena, kSecond);
      });
  EXPECT_EQ(status.message(),
            concat("rank 0: all_reduce over 'a' in '%y' (m.mlir:2:3) waits for "
                   "rank 1, which has finished (its last: all_reduce over 'a' "
                   "in '%x' (m.mlir:1:2), passed)",
                   kRule));
}

TEST(Fault, LateRankAmongMany) {
  TestProgram program({4});
  TestComm c = makeComm(CLEAVE_ALL_REDUCE, 0, 4, 4, "all_reduce over 'a'",
                        "'layer4.attn'");
  Status status = runProcesses(
      program.program,
      [&](int64_t rank, Backend &backend, char *arena) {
        if (rank == 2)
          usleep(1'000'000);
        else if (rank != 0)
          usleep(150'000); // so that rank 0 is the first to give up
        return runComm(program.program, rank, backend, arena, c);
      },
      0.4);
  // Ranks 1 and 3 come later, but well before the deadline.
  EXPECT_EQ(status.message(),
            "rank 0: all_reduce over 'a' in 'layer4.attn' gave up after 0.4 s; "
            "ranks 1 3 arrived, rank 2 has not (its last: no communication "
            "yet)");
}

TEST(Fault, MessageFollowsTheChain) {
  // Rank 0 waits for rank 1, which waits for rank 3, which is late.
  TestProgram program({2, 2});
  TestComm a = makeComm(CLEAVE_ALL_REDUCE, 0, 2, 4, "all_reduce over 'a'");
  TestComm b = makeComm(CLEAVE_ALL_REDUCE, 1, 2, 4, "all_reduce over 'b'");
  Status status = runProcesses(
      program.program,
      [&](int64_t rank, Backend &backend, char *arena) {
        if (rank == 3)
          usleep(900'000);
        if (rank == 1)
          usleep(150'000); // gives up after rank 0
        if (rank == 1 || rank == 3)
          CLEAVE_RETURN_IF_ERROR(
              runComm(program.program, rank, backend, arena, a));
        return rank == 2 ? Status()
                         : runComm(program.program, rank, backend, arena, b);
      },
      0.3);
  EXPECT_EQ(status.message(),
            "rank 0: all_reduce over 'b' gave up after 0.3 s; rank 1 has not "
            "arrived (its last: all_reduce over 'a', waiting for rank 3, whose "
            "last: no communication yet)");
}

TEST(Fault, OverlappingOperandsAreRefused) {
  const CleaveProgram &program = twoRanks().program;
  TestComm gather =
      makeComm(CLEAVE_ALL_GATHER, 0, 2, 4, "all_gather over 'a'", "'%z'");
  Status status =
      runThreads(program, [&](int64_t rank, Backend &backend, char *arena) {
        CommPlan plan;
        Mesh mesh(program);
        CLEAVE_RETURN_IF_ERROR(planComm(mesh, rank, gather.comm, &plan));
        return backend.run(plan, arena, arena + 8);
      });
  EXPECT_EQ(status.message().substr(6),
            ": all_gather over 'a' in '%z' reads and writes the same memory");
}

TEST(Fault, SixtyFourRanksMakeProgress) {
  TestProgram program({64}, 1 << 20);
  TestComm c = makeComm(CLEAVE_ALL_REDUCE, 0, 64, 256, "all_reduce over 'a'");
  Status status = runProcesses(
      program.program,
      [&](int64_t rank, Backend &backend, char *arena) {
        for (int i = 0; i < 50; ++i)
          CLEAVE_RETURN_IF_ERROR(
              runComm(program.program, rank, backend, arena, c));
        return Status();
      },
      60);
  EXPECT_TRUE(status.ok()) << status.message();
}

} // namespace
