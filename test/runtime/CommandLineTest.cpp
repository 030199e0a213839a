//===- CommandLineTest.cpp - Executables as users run them ----------------===//
// The program is matmul.c. Each wrong use is checked with its whole message
// and exit status.
#include "runtime/launch/Environment.h"
#include "runtime/launch/Options.h"
#include "runtime/support/Dtype.h"
#include "test/runtime/Files.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

struct Result {
  int status;
  std::string out, error;
};

struct CommandLine : testing::Test {
  TemporaryFolder folder;

  void SetUp() override {
    std::vector<float> x(18), w(24);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = float(i % 5);
    put("x.npy", npy("<f4", "(3, 6)", bytesOf(x)));
    put("w.st", safetensors("{\"mlp.w\":{\"dtype\":\"F32\",\"shape\":[6,4],"
                            "\"data_offsets\":[0,96]}}",
                            bytesOf(w)));
  }
  void put(const std::string &name, const std::string &bytes) {
    writeFile(folder.path(name), bytes);
  }
  Result run(const std::string &arguments, const std::string &before = "") {
    std::string command = "cd " + folder.root() + " && " + before + " " +
                          CLEAVE_TEST_PROGRAM + " " + arguments +
                          " >out.txt 2>err.txt";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            readFile(folder.path("out.txt")), readFile(folder.path("err.txt"))};
  }
  void expectError(const std::string &arguments, int status,
                   const std::string &message) {
    Result result = run(arguments);
    EXPECT_EQ(result.status, status) << arguments;
    EXPECT_EQ(result.error, "error: " + message + "\n") << arguments;
    EXPECT_EQ(result.out, "");
  }
  std::string data(const std::string &name) {
    std::string bytes = readFile(folder.path(name));
    return bytes.size() < 128 ? "" : bytes.substr(128);
  }
  const std::string expected = bytesOf(
      std::vector<float>{20, 30, 35, 35, 80, 96, 107, 113, 140, 162, 179, 191});
  const std::string forward = "--entry forward --input x=x.npy --weights w.st ";
};

TEST_F(CommandLine, RunsAndKeepsTheState) {
  put("c0.npy", npy("<i8", "(1,)", bytesOf(std::vector<int64_t>{10})));
  Result result = run(forward + "--output y=y.npy --repeat 3 --state "
                                "count=c0.npy --save-state calls=c.npy "
                                "--trace t.json --memory-json m.json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(data("y.npy"), expected);
  EXPECT_EQ(data("c.npy"), bytesOf(std::vector<int64_t>{13}));

  auto memory = nlohmann::json::parse(readFile(folder.path("m.json")));
  ASSERT_EQ(memory["ranks"].size(), 2u);
  for (const auto &rank : memory["ranks"]) {
    EXPECT_EQ(rank["arena"]["planned"], 112);
    EXPECT_EQ(rank["arena"]["used"], 112);
    EXPECT_EQ(rank["weight_bytes_read"], 48); // half of the weight each
    EXPECT_EQ(rank["seconds"].size(), 3u);
  }
  auto trace = nlohmann::json::parse(readFile(folder.path("t.json")));
  std::map<std::pair<int, std::string>, int> events;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X")
      ++events[{event["tid"], event["name"]}];
  for (int rank : {0, 1}) {
    EXPECT_EQ((events[{rank, "matmul"}]), 3);
    EXPECT_EQ((events[{rank, "forward"}]), 3);
    EXPECT_EQ((events[{rank, "all_reduce over 'tp'"}]), 3);
  }
  for (const auto &event : trace["traceEvents"]) {
    if (event["name"] == "all_reduce over 'tp'") {
      EXPECT_EQ(event["args"]["bytes"], 48);
      EXPECT_EQ(event["args"]["cause"], "'%y' (matmul.mlir:3:8)");
    }
  }
}

TEST_F(CommandLine, LeavesNothingBehind) {
  run(forward + "--output y=y.npy --trace t.json --memory-json m.json");
  run("--entry forward --input x=x.npy --output y=z.npy");
  EXPECT_EQ(run("--describe").out, "{\"ranks\": 2}\n");
  int status = std::system(("cd " + folder.root() +
                            " && ls *.tmp z.npy 2>/dev/"
                            "null | grep -q .")
                               .c_str());
  EXPECT_NE(status, 0);
}

TEST_F(CommandLine, SignalsEndTheRanksAndCleanUp) {
  std::string command =
      "cd " + folder.root() + " && { timeout -s TERM 0.5 " +
      CLEAVE_TEST_PROGRAM + " " + forward +
      "--output y=y.npy --repeat 1000000000 2>err.txt; ls *.tmp 2>/dev/null; } "
      ">out.txt";
  EXPECT_NE(std::system(command.c_str()), 0);
  EXPECT_EQ(readFile(folder.path("err.txt")),
            "error: stopped by signal 15 (Terminated)\n");
  EXPECT_EQ(readFile(folder.path("out.txt")), "");
}

TEST_F(CommandLine, ConvertsHalves) {
  std::vector<float> a = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  put("a.npy", npy("<f4", "(5, 2)", bytesOf(a)));
  EXPECT_EQ(run("--entry cast --weights w.st --input a=a.npy --output "
                "b:f32=b.npy")
                .status,
            0);
  EXPECT_EQ(data("b.npy"), bytesOf(a));
  EXPECT_EQ(run("--entry cast --weights w.st --input a=a.npy --output b=h.npy")
                .status,
            0);
  EXPECT_EQ(data("h.npy").size(), 20u);
  a[3] = INFINITY; // is data
  a[4] = 3.4e38f;
  put("a.npy", npy("<f4", "(5, 2)", bytesOf(a)));
  expectError("--entry cast --weights w.st --input a=a.npy", 1,
              "input 'a' has 1 finite value that bf16 cannot hold (rank 0's "
              "part)");
}

TEST_F(CommandLine, WrongCommandLines) {
  expectError("--launch=ssh", 2,
              "--launch 'ssh' is not one of 'local', 'mpi', 'env'");
  expectError("--timeout 0", 2,
              "--timeout '0' is not a positive number of seconds");
  expectError("--timeout abc", 2,
              "--timeout 'abc' is not a positive number of seconds");
  expectError("--repeat -1", 2, "--repeat '-1' is not a positive whole number");
  expectError("--input x", 2, "--input 'x' is not NAME=FILE");
  expectError("--input x=a --input x=b", 2, "--input 'x' is given twice");
  expectError("--input", 2, "'--input' needs a value");
  expectError("--describe=1", 2, "'--describe' takes no value");
  expectError("x.npy", 2, "'x.npy' is not an option; see --help");
  Result result = run("--inputs x=x.npy");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.error.rfind("error: unknown option '--inputs'; known are "
                               "'--input', ",
                               0),
            0u);
  EXPECT_EQ(run("--help").status, 0);
}

TEST_F(CommandLine, WrongInputs) {
  expectError("", 1,
              "the program has several entries; give --entry, one of 'cast', "
              "'forward'");
  expectError("--entry fwd", 1,
              "unknown entry 'fwd'; known are 'forward', 'cast'");
  expectError("--entry forward --weights w.st", 1,
              "input 'x' (3x6xf32) of 'forward' is missing; give --input "
              "x=FILE.npy");
  expectError("--entry forward --input x=x.npy", 1,
              "the program has 1 weight ('mlp.w'); give --weights "
              "FILE.safetensors");
  expectError(forward + "--input y=x.npy", 1,
              "unknown input 'y'; known are 'x'");
  expectError(forward + "--output x=x.npy", 1,
              "unknown output 'x'; known are 'y'");
  expectError(forward + "--output y:f16=y.npy", 1,
              "output 'y' has type f32, which is not written as f16");
  expectError(forward + "--state n=x.npy", 1,
              "unknown state 'n'; known are 'calls'");
  expectError("--entry forward --weights w.st --input x=z.npy", 1,
              "input 'x': cannot open 'z.npy': no such file or directory");
  expectError("--entry forward --weights w.st --input x=w.st", 1,
              "input 'x': cannot read 'w.st': not a whole .npy file: it does "
              "not start with the magic string");
  put("bad.npy", npy("<f4", "(6, 3)", std::string(72, '\0')));
  expectError("--entry forward --weights w.st --input x=bad.npy", 1,
              "input 'x' from 'bad.npy' has shape 6x3, the program expects "
              "3x6");
  put("bad.npy", npy("<f8", "(3, 6)", std::string(144, '\0')));
  expectError("--entry forward --weights w.st --input x=bad.npy", 1,
              "input 'x' from 'bad.npy' has type f64, the program expects f32");
  put("cut.st", readFile(folder.path("w.st")).substr(0, 100));
  expectError("--entry forward --input x=x.npy --weights cut.st", 1,
              "cannot read 'cut.st': tensor 'mlp.w' lies at bytes 0 to 96, the "
              "file has 31; it may be cut off");
  expectError(forward + "--output y=/nowhere/y.npy", 1,
              "output 'y': cannot write '/nowhere/y.npy': no such file or "
              "directory");
  expectError(forward + "--output y=/dev/full", 1,
              "output 'y': cannot write '/dev/full': no space left on device");
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The weight of SetUp, transposed and under another name, as bf16.
const char *const kStoredMap =
    "{\"weights\": {\"mlp.w\": {\"from\": \"w.weight\", \"dims\": \"out in -> "
    "in out\"}}}";
std::string storedOtherwise() {
  std::string bytes;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 6; ++column) {
      uint16_t value = floatToBf16(float((column * 4 + row) % 5));
      bytes += std::string(reinterpret_cast<char *>(&value), 2);
    }
  return safetensors("{\"w.weight\":{\"dtype\":\"BF16\",\"shape\":[4,6],"
                     "\"data_offsets\":[0,48]}}",
                     bytes);
}

TEST_F(CommandLine, WeightsOfAFolderByTheMap) {
  ASSERT_EQ(mkdir(folder.path("m").c_str(), 0700), 0);
  put("m/model-1.safetensors", storedOtherwise());
  put("m/model.safetensors.index.json",
      "{\"weight_map\": {\"w.weight\": \"model-1.safetensors\"}}");
  put("map.json", kStoredMap);
  std::string call = "--entry forward --input x=x.npy --weights m "
                     "--weights-map map.json ";
  Result result = run(call + "--output y=y.npy --memory-json m.json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(data("y.npy"), expected);
  auto memory = nlohmann::json::parse(readFile(folder.path("m.json")));
  for (const auto &rank : memory["ranks"]) {
    EXPECT_EQ(rank["weight_bytes_read"], 24); // half of 24 bf16
    EXPECT_EQ(rank["weight_bytes_in_place"], 0);
  }
}

TEST_F(CommandLine, RowsAreUsedInPlace) {
  // Spaces behind the header bring the data to a multiple of their size.
  std::string file = readFile(folder.path("w.st"));
  std::string header = file.substr(8, file.size() - 8 - 96);
  header.resize((header.size() + 3) / 4 * 4, ' ');
  put("w.st", safetensors(header, file.substr(file.size() - 96)));
  Result result = run(forward + "--output y=y.npy --verbose --memory-json m");
  EXPECT_EQ(data("y.npy"), expected);
  EXPECT_NE(result.error.find("rank 1: read 0 bytes of weights, 48 more in "
                              "place, in "),
            std::string::npos);
  auto memory = nlohmann::json::parse(readFile(folder.path("m")));
  for (const auto &rank : memory["ranks"]) {
    EXPECT_EQ(rank["weight_bytes_read"], 48);
    EXPECT_EQ(rank["weight_bytes_in_place"], 48);
  }
}

TEST_F(CommandLine, SurplusWeights) {
  put("two.st", safetensors("{\"mlp.w\":{\"dtype\":\"F32\",\"shape\":[6,4],"
                            "\"data_offsets\":[0,96]},\"b\":{\"dtype\":\"I8\","
                            "\"shape\":[1],\"data_offsets\":[96,97]}}",
                            std::string(97, '\0')));
  std::string call = "--entry forward --input x=x.npy --weights two.st ";
  std::string text = "1 tensor of the weight file is not used: 'b'";
  Result result = run(call);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "warning: " + text + "\n");
  expectError(call + "--weights-strict", 1,
              text + "; \"unused\" in --weights-map can name it");
}

TEST_F(CommandLine, PacksAndUsesThePack) {
  put("o.st", storedOtherwise());
  put("map.json", kStoredMap);
  Result result = run("--pack packs/new --weights o.st --weights-map map.json");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "");
  std::string call =
      "--entry forward --input x=x.npy --packed packs/new --output y=y.npy "
      "--repeat 2 --save-state count=c.npy --memory-json m.json --verbose ";
  for (const char *launch : {"", "--launch=local"}) {
    result = run(call + launch);
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(data("y.npy"), expected);
    EXPECT_EQ(data("c.npy"), bytesOf(std::vector<int64_t>{2}));
    EXPECT_NE(result.error.find("rank 0: read 0 bytes of weights, 64 more in "
                                "place, in "),
              std::string::npos);
  }
  put("packs/new/rank-1.pack", "");
  expectError(call, 1,
              "'packs/new/rank-1.pack' is no pack of weights, or cut "
              "off");
}

TEST_F(CommandLine, PacksUnderEveryLaunch) {
  std::string rank = "LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 MASTER_PORT=" +
                     std::to_string(getpid()) + " RANK=";
  for (const std::string &call :
       {std::string("--pack p --weights w.st"),
        std::string("--entry forward --input x=x.npy --packed p --output "
                    "y=y.npy")}) {
    std::string command = "cd " + folder.root() + " && for r in 0 1; do " +
                          rank + "$r " + CLEAVE_TEST_PROGRAM +
                          " --launch=env " + call + " & done; wait";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  EXPECT_EQ(data("y.npy"), expected);
}

TEST_F(CommandLine, WrongPacks) {
  put("file", "");
  expectError("--pack file/p --weights w.st", 1,
              "--pack: cannot make the folder 'file/p': not a directory");
  expectError("--pack p", 1,
              "the program has 1 weight ('mlp.w'); give --weights "
              "FILE.safetensors");
  expectError("--pack p --packed p", 2,
              "'--pack' writes the weights and calls nothing; leave out "
              "'--packed'");
  expectError("--pack p --entry forward", 2,
              "'--pack' writes the weights and calls nothing; leave out "
              "'--entry'");
  expectError("--pack p --weights w.st --memory-json m", 2,
              "'--pack' writes the weights and calls nothing; leave out "
              "'--memory-json'");
  expectError("--packed p --weights w.st", 2,
              "'--packed' takes the place of '--weights'; give one of them");
  expectError("--packed p --weights-map m", 2,
              "'--weights-map' needs '--weights'");
  expectError("--weights-strict", 2, "'--weights-strict' needs '--weights'");
  expectError("--entry forward --input x=x.npy --packed p", 1,
              "--packed: cannot open 'p/rank-0.pack': no such file or "
              "directory");
}

TEST_F(CommandLine, NanIsData) {
  put("x.npy", npy("<f4", "(3, 6)", bytesOf(std::vector<float>(18, 0.0f / 0))));
  EXPECT_EQ(run(forward + "--output y=y.npy").status, 0);
}

TEST_F(CommandLine, OldOutputStaysWhenTheDiskIsFull) {
  put("y.npy", "old");
  // A file may have no block at all: the shell counts blocks of 1024 bytes.
  Result result = run(forward + "--output y=y.npy", "ulimit -f 0;");
  EXPECT_NE(result.status, 0);
  EXPECT_EQ(readFile(folder.path("y.npy")), "old");
}

TEST_F(CommandLine, NoVariantForThisCpu) {
  // The program needs nothing special, so this only checks that the variable
  // is read; the message is checked in the test of the C interface.
  EXPECT_EQ(run(forward, "CLEAVE_ISA=x86-64").status, 0);
}

TEST_F(CommandLine, EnvironmentLaunch) {
  std::string rank = "LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 MASTER_PORT=" +
                     std::to_string(getpid()) + " RANK=";
  std::string command = "cd " + folder.root() + " && for r in 0 1; do " + rank +
                        "$r " + CLEAVE_TEST_PROGRAM + " --launch=env " +
                        forward + "--output y=y.npy & done; wait";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(data("y.npy"), expected);
}

TEST_F(CommandLine, EnvironmentLaunchMistakes) {
  std::string port = "MASTER_PORT=" + std::to_string(getpid()) + "1 ";
  Result none = run(forward + "--launch=env", "env -u RANK");
  EXPECT_EQ(none.status, 2);
  Result size = run(forward + "--launch=env", "RANK=0 WORLD_SIZE=3");
  EXPECT_EQ(size.status, 1);
  EXPECT_EQ(size.error,
            "error: the program has 2 ranks, torchrun has started 3\n");
  Result far =
      run(forward + "--launch=env", "RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1");
  EXPECT_EQ(far.status, 1);
  EXPECT_EQ(far.error, "error: the ranks are on several machines, which "
                       "--launch=env cannot join; use --launch=mpi\n");
  Result alone =
      run(forward + "--launch=env --timeout 0.2", port + "RANK=1 WORLD_SIZE=2");
  EXPECT_EQ(alone.status, 4);
  EXPECT_EQ(alone.error, "error: rank 1 waited 0.2 s for rank 0, which has not "
                         "started on this machine\n");
  Result first =
      run(forward + "--launch=env --timeout 0.2", port + "RANK=0 WORLD_SIZE=2");
  EXPECT_EQ(first.status, 4);
  EXPECT_EQ(first.error, "error: rank 0 waited 0.2 s; rank 1 has not started "
                         "on this machine\n");
}

//===----------------------------------------------------------------------===//
// The variables of launchers
//===----------------------------------------------------------------------===//

Status read(std::map<std::string, std::string> variables,
            RankEnvironment *environment) {
  return readEnvironment(
      [&](const char *name) -> const char * {
        auto it = variables.find(name);
        return it == variables.end() ? nullptr : it->second.c_str();
      },
      environment);
}

TEST(Environment, EachLauncher) {
  RankEnvironment e;
  ASSERT_TRUE(read({{"RANK", "3"},
                    {"WORLD_SIZE", "4"},
                    {"LOCAL_WORLD_SIZE", "2"},
                    {"SLURM_PROCID", "0"},
                    {"MASTER_PORT", "29500"}},
                   &e)
                  .ok());
  EXPECT_EQ(e.launcher, "torchrun");
  EXPECT_EQ(e.rank, 3);
  EXPECT_EQ(e.localSize, 2);
  EXPECT_EQ(e.job, "torchrun|29500");
  e = {};
  ASSERT_TRUE(read({{"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                    {"PMI_RANK", "9"}},
                   &e)
                  .ok());
  EXPECT_EQ(e.launcher, "OpenMPI");
  e = {};
  ASSERT_TRUE(read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, &e).ok());
  EXPECT_EQ(e.launcher, "PMI");
  EXPECT_EQ(e.localSize, -1);
  e = {};
  ASSERT_TRUE(read({{"SLURM_PROCID", "1"},
                    {"SLURM_NTASKS", "2"},
                    {"SLURM_NNODES", "2"},
                    {"SLURM_JOB_ID", "77"},
                    {"SLURM_STEP_ID", "0"}},
                   &e)
                  .ok());
  EXPECT_EQ(e.launcher, "Slurm");
  EXPECT_EQ(e.localSize, 0);
  EXPECT_EQ(e.job, "Slurm|77|0");
}

TEST(Environment, WrongValues) {
  RankEnvironment e;
  EXPECT_EQ(read({{"RANK", "1"}}, &e).message(),
            "torchrun's variable WORLD_SIZE is not set");
  EXPECT_EQ(read({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, &e).message(),
            "torchrun's variable RANK is 'x', not a whole number");
  EXPECT_EQ(read({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, &e).message(),
            "torchrun says rank 2 of 2");
}

} // namespace
