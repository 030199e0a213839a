//===- machine.cpp - Machine files and the cost of collectives ------------===//
#include "passes/cost/Machine.h"
#include <gtest/gtest.h>

using namespace cleave;

namespace {

constexpr const char *kGood = R"({
  "name": "m", "basis": "modelled", "source": "test",
  "device": {"name": "d", "memory_bytes": 1024, "memory_shared": false,
             "memory_bandwidth": 1e9, "flops": {"f32": 1e12}},
  "overhead": 1e-6,
  "tiers": [{"name": "near", "ranks": 4, "latency": 1e-6, "bandwidth": 1e9},
            {"name": "far", "ranks": 8, "latency": 1e-5, "bandwidth": 1e8}]
})";

/// The text with one piece replaced.
std::string replaced(llvm::StringRef from, llvm::StringRef to) {
  std::string text = kGood;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string messageOf(llvm::StringRef text) {
  llvm::Expected<Machine> machine = parseMachine(text, "m.json");
  if (machine)
    return "no error";
  return llvm::toString(machine.takeError());
}

TEST(Machine, ReadsAFile) {
  llvm::Expected<Machine> machine = parseMachine(kGood, "m.json");
  ASSERT_TRUE(bool(machine));
  EXPECT_EQ(machine->device.memoryBytes, 1024);
  EXPECT_EQ(machine->device.flops.lookup("f32"), 1e12);
  EXPECT_EQ(machine->tiers.size(), 2u);
  EXPECT_EQ(machine->maxRanks(), 8);
}

TEST(Machine, BuiltinFilesAreWellFormed) {
  std::vector<std::string> names = builtinMachineNames();
  EXPECT_EQ(names.size(), 7u);
  for (const std::string &name : names) {
    llvm::Expected<Machine> machine = findMachine(name);
    ASSERT_TRUE(bool(machine)) << llvm::toString(machine.takeError());
    EXPECT_EQ(machine->name, name);
    EXPECT_EQ(machine->basis, "modelled");
    EXPECT_GT(machine->device.memoryBytes, int64_t(1) << 30);
  }
  EXPECT_EQ(cpuLocalMachine().maxRanks(), 0);
}

TEST(Machine, Mistakes) {
  EXPECT_EQ(messageOf(replaced("\"overhead\": 1e-6,", "")),
            "m.json: 'overhead' is missing; the machine has the keys 'name', "
            "'basis', 'source', 'device', 'overhead', 'tiers'");
  EXPECT_EQ(messageOf(replaced("\"latency\": 1e-5, ", "")),
            "m.json: 'tiers[1].latency' is missing; 'tiers[1]' has the keys "
            "'name', 'ranks', 'latency', 'bandwidth'");
  EXPECT_EQ(messageOf(replaced("memory_bytes", "memory")),
            "m.json: unknown key 'device.memory'; 'device' has the keys "
            "'name', 'memory_bytes', 'memory_shared', 'memory_bandwidth', "
            "'flops'");
  EXPECT_EQ(messageOf(replaced("1024", "\"big\"")),
            "m.json: 'device.memory_bytes' is not an integer above 0 or null");
  EXPECT_EQ(messageOf(replaced("false", "0")),
            "m.json: 'device.memory_shared' is not true or false");
  EXPECT_EQ(messageOf(replaced("\"bandwidth\": 1e8", "\"bandwidth\": -1")),
            "m.json: 'tiers[1].bandwidth' is not a number above 0");
  EXPECT_EQ(messageOf(replaced("\"m\"", "\"\"")),
            "m.json: 'name' is not a non-empty string");
  EXPECT_EQ(messageOf(replaced("modelled", "guessed")),
            "m.json: 'basis' is not 'modelled' or 'measured'");
  EXPECT_EQ(messageOf(replaced("{\"f32\": 1e12}", "{}")),
            "m.json: 'device.flops' is not an object of element types and "
            "operations a second, such as {\"f32\": 1e12}");
  EXPECT_EQ(messageOf(replaced("f32", "fp32")),
            "m.json: unknown element type 'device.flops.fp32'; known are "
            "'f64', 'f32', 'tf32', 'bf16', 'f16', 'f8', 'i64', 'i32', 'i16', "
            "'i8'");
  EXPECT_EQ(messageOf(replaced("\"ranks\": 8", "\"ranks\": 6")),
            "m.json: 'tiers[1].ranks' is 6 after a tier of 4; tiers go from "
            "near to far, each a multiple of the one before, and only the last "
            "may be null (any number of ranks)");
  EXPECT_EQ(messageOf("[]"),
            "m.json: the machine is not an object; it has the keys 'name', "
            "'basis', 'source', 'device', 'overhead', 'tiers'");
  EXPECT_EQ(messageOf("{").find("m.json: not JSON: "), 0u);
}

TEST(Machine, UnknownNamesAreAnsweredClosestFirst) {
  llvm::Expected<Machine> machine = findMachine("8xH10");
  ASSERT_FALSE(bool(machine));
  std::string message = llvm::toString(machine.takeError());
  EXPECT_EQ(message,
            "no machine is named '8xH10'; known are '8xH100', '8xA100', "
            "'8xH200', '2x8xH100', '2x8xA100', '2x8xH200', 'cpu-local', or "
            "the path of a .json file");
  llvm::Expected<Machine> file = findMachine("/nowhere/m.json");
  ASSERT_FALSE(bool(file));
  EXPECT_EQ(llvm::toString(file.takeError()),
            "cannot read the machine file '/nowhere/m.json': No such file or "
            "directory");
}

Mesh makeMesh(llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh;
  for (auto [i, size] : llvm::enumerate(sizes))
    mesh.axes.push_back({std::string(1, char('a' + i)), size});
  return mesh;
}

TEST(Topology, InnerAxesUseTheNearTier) {
  Machine machine = llvm::cantFail(parseMachine(kGood, "m.json"));
  Topology topology(makeMesh({2, 4}), machine);
  EXPECT_EQ(topology.tierOf(AxisRef{0, 1, 2}), 1u);
  EXPECT_EQ(topology.tierOf(AxisRef{1, 1, 4}), 0u);
  // An axis of 8 over neighbourhoods of 4: its major half is far.
  Topology single(makeMesh({8}), machine);
  EXPECT_EQ(single.tierOf(AxisRef{0, 1, 8}), 1u);
  EXPECT_EQ(single.tierOf(AxisRef{0, 2, 4}), 0u);
  auto parts = single.parts(AxisRef{0, 1, 8});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].digits, (AxisRef{0, 1, 2}));
  EXPECT_EQ(parts[1].digits, (AxisRef{0, 2, 4}));
}

TEST(Topology, RanksInAnotherOrderChangeTiers) {
  Machine machine = llvm::cantFail(parseMachine(kGood, "m.json"));
  Mesh mesh = makeMesh({2, 4});
  mesh.ranks = {0, 2, 4, 6, 1, 3, 5, 7};
  Topology topology(mesh, machine);
  EXPECT_EQ(topology.tierOf(AxisRef{0, 1, 2}), 0u);
  EXPECT_EQ(topology.tierOf(AxisRef{1, 1, 4}), 1u);
}

TEST(Topology, WireBytesByTheRingConventions) {
  EXPECT_EQ(Topology::wireBytes(Collective::AllReduce, 4, 1000), 1500);
  EXPECT_EQ(Topology::wireBytes(Collective::AllGather, 4, 1000), 750);
  EXPECT_EQ(Topology::wireBytes(Collective::ReduceScatter, 4, 1000), 750);
  EXPECT_EQ(Topology::wireBytes(Collective::AllToAll, 4, 1000), 750);
  EXPECT_EQ(Topology::wireBytes(Collective::Permute, 4, 1000), 1000);
  EXPECT_EQ(Topology::wireBytes(Collective::AllReduce, 1, 1000), 0);
}

TEST(Topology, SecondsAddOverheadRoundsAndBytes) {
  Machine machine = llvm::cantFail(parseMachine(kGood, "m.json"));
  Topology topology(makeMesh({2, 4}), machine);
  AxisRef far{0, 1, 2}, near{1, 1, 4};
  EXPECT_DOUBLE_EQ(topology.seconds(Collective::AllGather, {near}, 1000),
                   1e-6 + 2 * 1e-6 + 1000 / 1e9);
  EXPECT_DOUBLE_EQ(topology.seconds(Collective::AllReduce, {far, near}, 1000),
                   1e-6 + 2 * (1e-5 + 2 * 1e-6) + 1000 / 1e8);
  EXPECT_DOUBLE_EQ(topology.seconds(Collective::Permute, {near}, 1000),
                   1e-6 + 1e-6 + 1000 / 1e9);
}

} // namespace
