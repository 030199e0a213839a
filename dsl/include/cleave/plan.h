//===- plan.h - How a model is cut -----------------------------*- C++ -*-===//
#ifndef CLEAVE_PLAN_H
#define CLEAVE_PLAN_H

#include "cleave/tensor.h"

#include <memory>

namespace cleave {

namespace dsl {
struct PlanData;
} // namespace dsl

inline namespace lang {

/// Ranks with named axes. `--mesh` gives the axes other sizes.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size;
  };
  Mesh(std::string name, std::vector<Axis> axes,
       std::vector<int64_t> ranks = {}, Where where = Where::current())
      : name(std::move(name)), axes(std::move(axes)), ranks(std::move(ranks)),
        where(where) {}

  std::string name;
  /// From major to minor.
  std::vector<Axis> axes;
  /// ranks[i] sits at the row-major coordinate i; empty: rank i does.
  std::vector<int64_t> ranks;
  Where where;
};

/// "tp", or {"dp", "tp"} from major to minor. A part of an axis is written
/// "tp:(2)4": the digit of size 4 after the first 2 shards.
class Axes {
public:
  Axes(const char *axis) : list{axis} {}
  Axes(std::string axis) : list{std::move(axis)} {}
  Axes(std::initializer_list<std::string> axes) : list(axes) {}
  Axes(std::vector<std::string> axes) : list(std::move(axes)) {}
  const std::vector<std::string> &names() const { return list; }

private:
  std::vector<std::string> list;
};

struct ShardOptions {
  /// Rules of priority 0 are propagated first. Where two rules want one axis in
  /// one tensor, the lower number has it.
  int priority = 0;
  /// Whether propagation may cut the dim further.
  bool open = false;
};

enum class Schedule { GPipe, OneFOneB };
struct Pipeline {
  int stages = 1;
  int microbatches = 1;
  Schedule schedule = Schedule::OneFOneB;
};

/// Which tensors a rule of the plan is about.
class Selection {
public:
  /// Cuts the dim over the axes in all of them.
  Selection &shard(const Dim &dim, const Axes &axes,
                   const ShardOptions &options = {},
                   Where where = Where::current());
  /// Leaves the dim whole.
  Selection &replicate(const Dim &dim, Where where = Where::current());
  /// Leaves the tensors whole along the axes.
  Selection &replicate(const Axes &axes, Where where = Where::current());

private:
  friend class Plan;
  Selection(std::shared_ptr<dsl::PlanData> data, unsigned index)
      : data(std::move(data)), index(index) {}
  std::shared_ptr<dsl::PlanData> data;
  unsigned index;
};

/// How the model is cut: a mesh, and rules that say which dims are cut over
/// which axes. A rule for one tensor goes before one for scopes, and that
/// before one for all; what no rule says is propagated.
class Plan {
public:
  explicit Plan(const Mesh &mesh);

  /// In every tensor of the model that has the dim.
  Plan &shard(const Dim &dim, const Axes &axes,
              const ShardOptions &options = {}, Where where = Where::current());
  Plan &replicate(const Dim &dim, Where where = Where::current());
  Plan &replicate(const Axes &axes, Where where = Where::current());

  /// Tensors made in the scopes that match, and below them. `*` stands for
  /// anything without a dot, `**` for anything, `?` for one character.
  Selection at(const std::string &scopes, Where where = Where::current());
  /// One tensor by its name: a weight, an input, a state, a result that was
  /// `named`. May be a pattern.
  Selection tensor(const std::string &name, Where where = Where::current());

  /// Cuts the layers into stages along an axis.
  Plan &pipeline(const std::string &axis, const Pipeline &options,
                 Where where = Where::current());

  std::shared_ptr<dsl::PlanData> data;
};

} // namespace lang
} // namespace cleave

#endif // CLEAVE_PLAN_H
