//===- Graph.cpp - What a model of the DSL consists of --------------------===//
#include "dsl/Graph.h"

#include <algorithm>

namespace cleave::dsl {

static std::string toText(const Place &place) {
  return place.file + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column) + ": ";
}

std::string toText(const std::vector<Diagnostic> &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics) {
    text += toText(diagnostic.place) + "error: " + diagnostic.text + "\n";
    for (const Note &note : diagnostic.notes)
      text += "  " + toText(note.place) + "note: " + note.text + "\n";
  }
  return text;
}

std::string toText(const Shape &shape) {
  std::string text = "[";
  for (const DimSize &dim : shape)
    text += (text.size() > 1 ? ", " : "") + dim.name + "=" +
            std::to_string(dim.size);
  return text + "]";
}

const DimSize *find(const Shape &shape, const std::string &name) {
  auto it = std::find_if(shape.begin(), shape.end(),
                         [&](const DimSize &dim) { return dim.name == name; });
  return it == shape.end() ? nullptr : &*it;
}

int64_t numElements(const Shape &shape) {
  int64_t count = 1;
  for (const DimSize &dim : shape)
    count *= dim.size;
  return count;
}

const char *nameOf(Element type) {
  static const char *const kNames[] = {"f32", "bf16", "f16", "f64",
                                       "i32", "i64",  "i8",  "i1"};
  return kNames[static_cast<int>(type)];
}

bool isFloat(Element type) { return type <= f64; }

bool isWithin(const Region *region, const Region *top) {
  for (; region; region = region->parent)
    if (region == top)
      return true;
  return false;
}

Shape loopsOf(const Node &node) {
  if (node.kind != Kind::Reduce)
    return node.shape;
  // Along the rows of the first operand, which has all dims.
  for (const Node *operand : node.operands)
    if (operand->shape.size() == node.shape.size() + node.over.size())
      return operand->shape;
  Shape loops = node.shape;
  for (const std::string &name : node.over)
    loops.push_back({name, node.entry->sizes.at(name).size});
  return loops;
}

void Graph::finish(std::vector<Diagnostic> &found) const {
  // Whatever is missing may be so because of what was reported.
  if (!diagnostics.empty())
    return;
  if (entries.empty())
    found.push_back({place,
                     "the model '" + name +
                         "' has no entry; make one with model.entry(name)",
                     {}});
  for (const Entry &entry : entries)
    if (entry.outputs.empty() && entry.stateOrder.empty())
      found.push_back({entry.place,
                       "entry '" + entry.name +
                           "' has no output; name one with output(name, value)",
                       {}});
}

} // namespace cleave::dsl
