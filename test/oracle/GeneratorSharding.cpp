//===- GeneratorSharding.cpp - Random meshes and shardings ----------------===//
#include "dialects/cleave/Cleave.h"
#include "test/oracle/GeneratorImpl.h"

using namespace mlir;

namespace cleave::oracle {

namespace {
class ShardingGenerator {
public:
  ShardingGenerator(ModuleOp module, Random &random,
                    const GeneratorOptions &options)
      : module(module), random(random), options(options),
        b(module.getContext()), loc(module.getLoc()) {}

  void addMesh();
  void addEdges(func::FuncOp function, unsigned percent);
  void addPartials(ArrayRef<Operation *> sums);
  void addContracted(ArrayRef<Operation *> products);
  void addToOps(func::FuncOp function);
  void addGroups(func::FuncOp function);

private:
  void cutContraction(Operation *product, const AxisList &axes);
  AxisList randomAxes();
  Sharding randomSharding(int64_t rank, ArrayRef<AxisRef> axes);
  ShardingAttr randomAttr(Type type) {
    int64_t rank = cast<RankedTensorType>(type).getRank();
    return toShardingAttr(b.getContext(), mesh,
                          randomSharding(rank, randomAxes()));
  }
  template <typename T> void shuffle(T &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[random.below(i)]);
  }

  ModuleOp module;
  Random &random;
  const GeneratorOptions &options;
  OpBuilder b;
  Location loc;
  Mesh mesh;
};
} // namespace

/// 1 to 4 axes, any sizes, 1 too, up to the allowed number of ranks; sometimes
/// with the ranks in another order.
void ShardingGenerator::addMesh() {
  mesh.name = "m";
  int64_t numAxes = random.between(1, 4), left = options.maxRanks;
  for (int64_t i = 0; i < numAxes; ++i) {
    int64_t size = random.chance(80)
                       ? random.between(std::min<int64_t>(2, left), left)
                       : random.between(1, left);
    if (i + 1 < numAxes && size > 4)
      size = std::min<int64_t>(left, random.between(2, 4));
    mesh.axes.push_back({std::string(1, static_cast<char>('a' + i)), size});
    left /= size;
  }
  shuffle(mesh.axes);
  if (random.chance(20)) {
    for (int64_t i = 0; i < mesh.numRanks(); ++i)
      mesh.ranks.push_back(i);
    shuffle(mesh.ranks);
  }
  SmallVector<MeshAxisAttr> axes;
  for (const MeshAxis &axis : mesh.axes)
    axes.push_back(MeshAxisAttr::get(b.getContext(), axis.name, axis.size));
  b.setInsertionPointToStart(module.getBody());
  MeshOp::create(b, loc, mesh.name,
                 MeshAttr::get(b.getContext(), axes, mesh.ranks));
}

/// Some axes and sub-axes, none overlapping, in any order.
AxisList ShardingGenerator::randomAxes() {
  AxisList result;
  for (unsigned i = 0; i < mesh.axes.size(); ++i) {
    if (random.chance(25))
      continue;
    AxisRef whole = mesh.whole(i);
    SmallVector<int64_t> cuts;
    for (int64_t pre = 2; pre < whole.size; ++pre)
      if (whole.size % pre == 0)
        cuts.push_back(pre);
    if (cuts.empty() || random.chance(65)) {
      result.push_back(whole);
      continue;
    }
    int64_t cut = random.pick(cuts);
    if (random.chance(75))
      result.push_back({i, 1, cut});
    if (random.chance(75))
      result.push_back({i, cut, whole.size / cut});
  }
  shuffle(result);
  return result;
}

Sharding ShardingGenerator::randomSharding(int64_t rank,
                                           ArrayRef<AxisRef> axes) {
  Sharding result = Sharding::whole(rank, false);
  for (AxisRef axis : axes) {
    unsigned draw = random.below(100);
    if (rank > 0 && draw < 80)
      random.pick(result.dims).axes.push_back(axis);
    else if (draw >= 92)
      result.replicated.push_back(axis);
  }
  bool priorities = random.chance(10);
  for (DimSharding &dim : result.dims) {
    // (1)2 and then (2)2 is the same as (1)4: that is how it is written.
    dim.axes = mergeAxes(dim.axes);
    dim.open = random.chance(50);
    if (priorities && (dim.open || !dim.axes.empty()) && random.chance(50))
      dim.priority = random.below(3);
  }
  result.replicated = normalizeAxisSet(result.replicated);
  return result;
}

void ShardingGenerator::addEdges(func::FuncOp function, unsigned percent) {
  auto draws = [&](Type type, unsigned percent) {
    return isa<RankedTensorType>(type) && random.chance(percent);
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (draws(type, percent) && !function.getArgAttr(i, kStateAttr))
      function.setArgAttr(i, kShardingAttr, randomAttr(type));
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (draws(type, percent / 2) && !function.getResultAttr(i, kStateAttr))
      function.setResultAttr(i, kShardingAttr, randomAttr(type));
}

/// Both operands are constrained to be cut along the contracted dim.
void ShardingGenerator::cutContraction(Operation *product,
                                       const AxisList &axes) {
  b.setInsertionPoint(product);
  for (unsigned i = 0; i < 2; ++i) {
    Sharding cut = Sharding::whole(2, false);
    cut.dims[1 - i].axes = axes;
    Value operand = product->getOperand(i);
    product->setOperand(
        i, ConstraintOp::create(b, loc, operand.getType(), operand,
                                toShardingAttr(b.getContext(), mesh, cut),
                                /*because=*/nullptr));
  }
}

/// All partial over the same axes, so that sums of them stay partial.
void ShardingGenerator::addPartials(ArrayRef<Operation *> sums) {
  AxisList axes = randomAxes();
  if (axes.empty())
    return;
  AxisList partial{axes.front()};
  for (Operation *op : sums) {
    cutContraction(op, partial);
    Sharding sharding = Sharding::whole(
        cast<RankedTensorType>(op->getResult(0).getType()).getRank(),
        random.chance(50));
    sharding.partial = partial;
    op->setAttr(kShardingAttr, toShardingAttr(b.getContext(), mesh, sharding));
  }
}

/// Most of the products leave summands, so that loops may carry them.
void ShardingGenerator::addContracted(ArrayRef<Operation *> products) {
  AxisList axes = randomAxes();
  if (axes.empty())
    return;
  for (Operation *op : products)
    if (random.chance(75))
      cutContraction(op, {axes.front()});
}

void ShardingGenerator::addToOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp, tensor::PadOp>(op)) {
      ops.push_back(op);
      return WalkResult::skip();
    }
    if (op->getNumResults() > 0)
      ops.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : ops) {
    bool allTensors = llvm::all_of(op->getResultTypes(), [](Type type) {
      return isa<RankedTensorType>(type);
    });
    if (!allTensors || op->hasAttr(kShardingAttr))
      continue;
    if (random.chance(12)) {
      SmallVector<Attribute> list;
      for (Type type : op->getResultTypes())
        list.push_back(randomAttr(type));
      op->setAttr(kShardingAttr,
                  list.size() == 1 ? list.front() : b.getArrayAttr(list));
    }
    unsigned draw = random.below(100);
    if (draw >= 14)
      continue;
    Value value = op->getResult(random.below(op->getNumResults()));
    b.setInsertionPointAfter(op);
    Operation *hint;
    if (draw < 10)
      hint = ConstraintOp::create(b, loc, value.getType(), value,
                                  randomAttr(value.getType()),
                                  /*because=*/nullptr);
    else
      hint = BarrierOp::create(b, loc, value.getType(), value,
                               static_cast<BarrierDirection>(random.below(4)));
    value.replaceAllUsesExcept(hint->getResult(0), hint);
  }
}

/// Whether the user says somewhere how this value lies.
static bool isDeclared(Value value) {
  if (llvm::any_of(value.getUsers(),
                   [](Operation *user) { return isa<ConstraintOp>(user); }))
    return true;
  Operation *op = value.getDefiningOp();
  if (op)
    return op->hasAttr(kShardingAttr) || isa<ConstraintOp>(op);
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function &&
         function.getArgAttr(argument.getArgNumber(), kShardingAttr);
}

/// Two values of one shape in one group; at most one is declared, since two
/// declarations can contradict each other.
void ShardingGenerator::addGroups(func::FuncOp function) {
  Block &block = function.getBody().front();
  SmallVector<Value> values(block.getArguments());
  for (Operation &op : block)
    llvm::append_range(values, op.getResults());
  llvm::erase_if(values, [](Value value) {
    return !isa<RankedTensorType>(value.getType());
  });
  if (values.empty())
    return;
  Value first = random.pick(values);
  llvm::erase_if(values, [&](Value value) {
    return value == first || isDeclared(value) ||
           cast<RankedTensorType>(value.getType()).getShape() !=
               cast<RankedTensorType>(first.getType()).getShape();
  });
  if (values.empty())
    return;
  b.setInsertionPoint(block.getTerminator());
  GroupOp::create(b, loc, first, 0);
  GroupOp::create(b, loc, random.pick(values), 0);
}

void shardRandomly(ModuleOp module, Random &random,
                   const GeneratorOptions &options,
                   ArrayRef<Operation *> partialSums,
                   ArrayRef<Operation *> accumulated) {
  ShardingGenerator generator(module, random, options);
  generator.addMesh();
  bool sparse = random.chance(30);
  generator.addPartials(partialSums);
  if (random.chance(60))
    generator.addContracted(accumulated);
  for (auto function : module.getOps<func::FuncOp>()) {
    generator.addEdges(function, function.isPublic() ? 60 : 10);
    bool hasPartial = !partialSums.empty() && function.isPublic();
    if (!sparse && !hasPartial)
      generator.addToOps(function);
    if (random.chance(10) && !hasPartial)
      generator.addGroups(function);
  }
}

} // namespace cleave::oracle
