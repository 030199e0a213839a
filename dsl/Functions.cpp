//===- Functions.cpp - From a graph to functions --------------------------===//
#include "dsl/Functions.h"
#include "dsl/Maker.h"

#include <algorithm>
#include <cstdio>

namespace cleave::dsl {

/// A body of more steps compiles slowly and gains nothing.
static constexpr size_t kMostSteps = 64;

static bool hasBody(const Node *node) {
  return node->kind == Kind::Map || node->kind == Kind::Reduce;
}

Functions::Functions(const Entry &entry, const Shardings &shardings)
    : entry(entry), shardings(shardings) {
  findLive();
  findInlined();
  for (const Node &node : entry.nodes) {
    plain[&node] = {node.operands.begin(), node.operands.end()};
    if (live.count(&node) && hasBody(&node))
      fuse(&node);
  }
  // Who reads what, now that some operands are gone.
  readers.clear();
  for (const Node &node : entry.nodes)
    if (isWritten(&node))
      for (const Node *operand : operands(&node))
        readers[operand].push_back(&node);
  for (const auto &item : entry.root.items)
    if (auto *region = std::get_if<std::unique_ptr<Region>>(&item))
      describe(region->get());
}

void Functions::findLive() {
  for (const Output &output : entry.outputs)
    returned.insert(output.value);
  for (const auto &[name, slot] : entry.states)
    returned.insert(slot.current);
  live = returned;
  // Operands are made before their readers.
  for (auto it = entry.nodes.rbegin(); it != entry.nodes.rend(); ++it)
    if (live.count(&*it))
      for (const Node *operand : it->operands) {
        live.insert(operand);
        readers[operand].push_back(&*it);
      }
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

/// The steps that a map becomes part of a reader's loops with: it has all dims
/// of the loops, so nothing is computed twice.
bool Functions::mayInline(const Node *node, const Node *reader) const {
  if (node->kind != Kind::Map || node->isNamed || returned.count(node) ||
      !hasBody(reader) || node->region != reader->region ||
      node->shape.size() != loopsOf(*reader).size() ||
      sizes.at(node) + sizes.at(reader) > kMostSteps)
    return false;
  for (const Step &step : reader->body.steps)
    if (step.fn == Fn::Load && reader->operands[step.a] == node)
      return false;
  auto own = shardings.find(node), other = shardings.find(reader);
  if (own == shardings.end() || !own->second.isSpecial)
    return true;
  return other != shardings.end() && node->shape == reader->shape &&
         own->second.text == other->second.text;
}

void Functions::findInlined() {
  for (const Node &node : entry.nodes)
    sizes[&node] = node.body.steps.size();
  for (const Node &node : entry.nodes) {
    auto it = readers.find(&node);
    if (it == readers.end() || !live.count(&node))
      continue;
    std::vector<const Node *> &all = it->second;
    bool isOnly = std::all_of(all.begin(), all.end(), [&](const Node *reader) {
      return reader == all.front();
    });
    if (!isOnly || !mayInline(&node, all.front()))
      continue;
    inlined.insert(&node);
    sizes[all.front()] += sizes[&node];
  }
}

namespace {
/// Writes a body with operands' bodies in place of their elements.
class Inliner {
public:
  explicit Inliner(Fused &result) : result(result) {}

  unsigned operand(const Node *node) {
    auto it = std::find(result.operands.begin(), result.operands.end(), node);
    if (it != result.operands.end())
      return it - result.operands.begin();
    result.operands.push_back(node);
    return result.operands.size() - 1;
  }

  /// Appends steps that read `operands`; the number of the last one.
  template <typename Inlined>
  int append(const Body &body, const std::vector<const Node *> &operands,
             Inlined inlined) {
    std::vector<int> numbers;
    for (Step step : body.steps) {
      const Fused *inner = nullptr;
      const Node *read = step.fn == Fn::Argument ? operands[step.a] : nullptr;
      if (auto known = done.find(read); read && known != done.end()) {
        numbers.push_back(known->second);
        continue;
      }
      if (read)
        inner = inlined(read);
      if (inner) {
        int last = append(inner->body, inner->operands, inlined);
        done[read] = last;
        numbers.push_back(last);
        continue;
      }
      if (step.fn == Fn::Argument || step.fn == Fn::Load)
        step.a = operand(operands[step.a]);
      for (int *link : {&step.a, &step.b, &step.c})
        if (*link >= 0 && step.fn != Fn::Argument && step.fn != Fn::Load)
          *link = numbers[*link];
      for (int &link : step.at)
        link = numbers[link];
      result.body.steps.push_back(step);
      numbers.push_back(static_cast<int>(result.body.steps.size()) - 1);
      if (read)
        done[read] = numbers.back();
    }
    return numbers.back();
  }

private:
  Fused &result;
  /// Operands that have a step already.
  std::unordered_map<const Node *, int> done;
};
} // namespace

void Functions::fuse(const Node *node) {
  Fused result;
  Inliner inliner(result);
  auto inner = [&](const Node *operand) -> const Fused * {
    return inlined.count(operand) ? &bodies.at(operand) : nullptr;
  };
  // In the order of the node's own operands, however the body reads them.
  for (const Node *operand : plain.at(node))
    if (!inlined.count(operand))
      inliner.operand(operand);
  int last = inliner.append(node->body, plain.at(node), inner);
  // The result is the last step.
  if (last != static_cast<int>(result.body.steps.size()) - 1) {
    Step copy = result.body.steps[last];
    result.body.steps.push_back(copy);
  }
  bodies[node] = std::move(result);
}

//===----------------------------------------------------------------------===//
// Turns of repeats
//===----------------------------------------------------------------------===//

void Functions::collect(const Region *region, const Region *top, Turn &turn) {
  auto add = [](std::vector<const Node *> &list, const Node *node) {
    if (std::find(list.begin(), list.end(), node) == list.end())
      list.push_back(node);
  };
  auto visit = [&](const Node *node) {
    for (const Node *operand : operands(node))
      if (!isWithin(operand->region, top))
        add(turn.inputs, operand);
    bool isRead = returned.count(node) != 0;
    for (const Node *reader : readers[node])
      isRead |= !isWithin(reader->region, top);
    if (isRead && isWithin(node->region, top))
      add(turn.results, node);
  };
  for (const auto &item : region->items) {
    auto *inner = std::get_if<std::unique_ptr<Region>>(&item);
    if (!inner) {
      if (const Node *node = std::get<Node *>(item); isWritten(node))
        visit(node);
      continue;
    }
    for (const Node *carried : (*inner)->carried)
      visit(carried);
    collect(inner->get(), top, turn);
    for (const Node *result : (*inner)->results)
      if (live.count(result))
        visit(result);
  }
}

static std::string toKey(const Body &body) {
  std::string text;
  for (const Step &step : body.steps) {
    char number[32];
    std::snprintf(number, sizeof(number), "%a", step.number);
    text += std::to_string(int(step.fn)) + nameOf(step.type) + "," +
            std::to_string(step.a) + "," + std::to_string(step.b) + "," +
            std::to_string(step.c) + "," + number + "," + step.dim;
    for (int at : step.at)
      text += "@" + std::to_string(at);
    text += ";";
  }
  return text;
}

/// All that makes a node what it is, but its operands.
static std::string toKey(const Node *node) {
  char fill[32];
  std::snprintf(fill, sizeof(fill), "%a", node->fill);
  std::string text =
      std::to_string(int(node->kind)) + nameOf(node->type) +
      toText(node->shape) + std::to_string(int(node->reduction)) + "," +
      std::to_string(node->begin) + "," + std::to_string(node->stride) + "," +
      fill + "," + std::to_string(node->axis) + "," +
      std::to_string(node->index);
  for (const std::string &dim : node->over)
    text += "/" + dim;
  return text;
}

std::string Functions::shardingOf(const Node *node) const {
  auto it = shardings.find(node);
  return it == shardings.end() ? "" : it->second.text;
}

void Functions::addKey(const Region *region, ValueNames &names,
                       std::string &key) const {
  auto line = [&](const std::string &what,
                  const std::vector<const Node *> &reads,
                  const std::vector<const Node *> &makes) {
    key += what;
    for (const Node *read : reads)
      key += " " + names.at(read);
    key += " =";
    for (const Node *made : makes) {
      names[made] = "%" + std::to_string(names.size());
      key += " " + names[made];
    }
    key += "\n";
  };
  for (const auto &item : region->items) {
    auto *inner = std::get_if<std::unique_ptr<Region>>(&item);
    if (!inner) {
      const Node *node = std::get<Node *>(item);
      if (isWritten(node))
        line(toKey(node) + shardingOf(node) +
                 (hasBody(node) ? toKey(fused(node).body) : ""),
             operands(node), {node});
    } else if (!(*inner)->isLoop()) {
      const Turn &nested = turns.at(inner->get());
      line("{" + nested.key + "}", nested.inputs, nested.results);
    } else if (isLoopWritten(inner->get())) {
      const Region &loop = **inner;
      std::vector<const Node *> inits;
      for (const Node *carried : loop.carried)
        inits.push_back(carried->operands[0]);
      line("loop " + std::to_string(loop.turns.size), inits,
           {loop.carried.begin(), loop.carried.end()});
      addKey(&loop, names, key);
      line("end", {loop.yields.begin(), loop.yields.end()},
           {loop.results.begin(), loop.results.end()});
    }
  }
}

std::string Functions::keyOf(const Region *region, const Turn &turn) const {
  ValueNames names;
  std::string key;
  for (const Node *input : turn.inputs) {
    names[input] = "$" + std::to_string(names.size());
    key += names[input] + nameOf(input->type) + toText(input->shape);
    // Arguments of one function lie in one way.
    if (input->isLeaf() || input->kind == Kind::AtTurn)
      key += shardingOf(input);
    key += "\n";
  }
  addKey(region, names, key);
  for (const Node *result : turn.results)
    key += "=" + names.at(result);
  return key;
}

bool Functions::isLoopWritten(const Region *region) const {
  return std::any_of(region->results.begin(), region->results.end(),
                     [&](const Node *node) { return live.count(node) != 0; });
}

void Functions::describe(const Region *region) {
  for (const auto &item : region->items)
    if (auto *inner = std::get_if<std::unique_ptr<Region>>(&item))
      describe(inner->get());
  if (region->isLoop())
    return;
  Turn turn;
  collect(region, region, turn);
  turn.key = keyOf(region, turn);
  ++counts[turn.key];
  turns[region] = std::move(turn);
}

} // namespace cleave::dsl
