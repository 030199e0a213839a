//===- Weights.cpp - A program's weights in a checkpoint ------------------===//
#include "runtime/io/Weights.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <set>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// One weight
//===----------------------------------------------------------------------===//

namespace {

/// How messages name a weight that is called otherwise in the checkpoint.
std::string weightText(const CleaveTensor &weight, const WeightSource &source) {
  std::string text = concat("weight '", weight.storeName, "'");
  return source.name == weight.storeName
             ? text
             : concat(text, ", which is '", source.name, "',");
}

} // namespace

/// Names of the tensors that a weight is made of; those of a stack as far as
/// the checkpoint has them.
static std::vector<std::string> tensorsOf(const Safetensors &files,
                                          const WeightSource &source) {
  if (source.stack.empty())
    return {source.name};
  std::string hole = "{" + source.stack + "}";
  std::vector<std::string> names;
  while (true) {
    std::string name = source.name;
    name.replace(name.find(hole), hole.size(), std::to_string(names.size()));
    if (!names.empty() && !files.find(name))
      return names;
    names.push_back(name);
  }
}

/// The asked rows of one tensor.
static Status takeRows(const WeightSource &source, const std::string &name,
                       GlobalArray *array) {
  if (!source.rows)
    return Status();
  auto [begin, end] = *source.rows;
  if (array->shape.empty() || end > array->shape[0])
    return invalidArgument(
        "tensor '", name, "' has shape ",
        shapeText(array->shape.data(), int64_t(array->shape.size())),
        ", which has no rows ", begin, " to ", end);
  array->data += begin * array->steps[0];
  array->shape[0] = end - begin;
  return Status();
}

/// All tensors as one array, for a stack with one more dim in front.
static Status findStored(const Safetensors &files, const WeightSource &source,
                         GlobalArray *array) {
  std::vector<std::string> names = tensorsOf(files, source);
  std::vector<int64_t> places;
  for (const std::string &name : names) {
    const GlobalArray *found = files.find(name);
    if (!found)
      return notFound(name);
    GlobalArray one = *found;
    if (one.dtype < kNumDtypes)
      CLEAVE_RETURN_IF_ERROR(takeRows(source, name, &one));
    if (places.empty())
      *array = one;
    if (one.shape != array->shape || one.dtype != array->dtype)
      return invalidArgument("tensors '", names.front(), "' and '", name,
                             "' have different shapes or types, but are one "
                             "weight");
    places.push_back(reinterpret_cast<intptr_t>(one.data) -
                     reinterpret_cast<intptr_t>(array->data));
  }
  if (source.stack.empty() || array->dtype >= kNumDtypes)
    return Status();
  array->shape.insert(array->shape.begin(), int64_t(places.size()));
  array->steps.insert(array->steps.begin(), 0);
  array->places = {std::move(places)};
  return Status();
}

static Status wrongShape(const std::string &what, const GlobalArray &stored,
                         const CleaveTensor &weight) {
  bool reversed = weight.rank > 1 && stored.shape.size() == size_t(weight.rank);
  for (int64_t d = 0; reversed && d < weight.rank; ++d)
    reversed = stored.shape[d] == weight.shape[weight.rank - 1 - d];
  return invalidArgument(
      what, " has shape ",
      shapeText(stored.shape.data(), int64_t(stored.shape.size())),
      " in the file, the program expects ",
      shapeText(weight.shape, weight.rank),
      reversed && weight.rank == 2
          ? "; \"dims\": \"a b -> b a\" in --weights-map reads it transposed"
          : "");
}

Status bindWeight(const Safetensors &files, const WeightMap &map,
                  const CleaveTensor &weight, GlobalArray *array) {
  WeightSource source = map.find(weight.storeName);
  std::string what = weightText(weight, source);
  GlobalArray stored;
  Status status = findStored(files, source, &stored);
  if (status.code() == Code::notFound)
    return notFound(what, " is not in the weight file; it has ",
                    closestFirst(status.message(), files.names()));
  if (!status.ok())
    return status.within(concat("weight '", weight.storeName, "'"));
  if (stored.dtype >= kNumDtypes || !canConvert(stored.dtype, weight.dtype))
    return invalidArgument(
        what, " has type ", files.typeText(tensorsOf(files, source).front()),
        " in the file, the program expects ", dtypeName(weight.dtype));
  std::vector<int64_t> shape(weight.shape, weight.shape + weight.rank);
  if (source.dims)
    return source.dims->apply(stored, shape, array).within(what);
  if (stored.shape != shape)
    return wrongShape(what, stored, weight);
  *array = std::move(stored);
  return Status();
}

//===----------------------------------------------------------------------===//
// All weights
//===----------------------------------------------------------------------===//

/// "'a', 'b' (3 more)".
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > kMost
             ? concat(text, " (", names.size() - kMost, " more)")
             : text;
}

Status Weights::bindAll(const CleaveProgram &program) {
  std::vector<std::string> missing;
  Status first;
  arrays.resize(size_t(program.numWeights));
  for (int64_t i = 0; i < program.numWeights; ++i) {
    Status status = bindWeight(files, map, program.weights[i], &arrays[i]);
    if (!status.ok() && status.code() != Code::notFound)
      return status;
    if (status.ok())
      continue;
    if (missing.empty())
      first = status;
    missing.push_back(program.weights[i].storeName);
  }
  if (missing.size() < 2)
    return first;
  missing.erase(missing.begin());
  return notFound(first.message(), "; missing are also ", listed(missing));
}

Status Weights::checkUnmatched(const CleaveProgram &program,
                               const WeightOptions &options) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < program.numWeights; ++i)
    names.push_back(program.weights[i].storeName);
  std::vector<std::string> idle = map.withoutMatch(names);
  if (idle.empty())
    return Status();
  std::string text =
      concat("--weights-map '", options.mapPath, "' names ", listed(idle),
             ", which no weight is called; the "
             "program has ",
             closestFirst(idle.front(), std::move(names)));
  if (options.strict)
    return invalidArgument(text);
  notes.push_back(text);
  return Status();
}

Status Weights::checkSurplus(const CleaveProgram &program,
                             const WeightOptions &options) {
  std::set<std::string> used;
  for (int64_t i = 0; i < program.numWeights; ++i)
    for (std::string &name :
         tensorsOf(files, map.find(program.weights[i].storeName)))
      used.insert(std::move(name));
  std::vector<std::string> surplus;
  for (const std::string &name : files.names())
    if (!used.count(name) && !map.isUnused(name))
      surplus.push_back(name);
  if (surplus.empty())
    return Status();
  std::string text =
      concat(surplus.size(), surplus.size() == 1 ? " tensor" : " tensors",
             " of the weight file ", surplus.size() == 1 ? "is" : "are",
             " not used: ", listed(surplus));
  if (options.strict)
    return invalidArgument(text, "; \"unused\" in --weights-map can name ",
                           surplus.size() == 1 ? "it" : "them");
  notes.push_back(text);
  return Status();
}

/// One sentence for each pair of types.
void Weights::noteRounding(const CleaveProgram &program) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::string>> rounded;
  for (int64_t i = 0; i < program.numWeights; ++i)
    if (!isExact(arrays[i].dtype, program.weights[i].dtype))
      rounded[{arrays[i].dtype, program.weights[i].dtype}].push_back(
          program.weights[i].storeName);
  for (const auto &[types, names] : rounded)
    notes.push_back(concat(names.size(),
                           names.size() == 1 ? " weight is" : " weights are",
                           " rounded from ", dtypeName(types.first), " to ",
                           dtypeName(types.second), ": ", listed(names)));
}

/// Two weights of the program that are the same blocks of one tensor.
void Weights::noteTies(const CleaveProgram &program) {
  std::map<std::string, std::string> seen;
  for (int64_t i = 0; i < program.numWeights; ++i) {
    const CleaveTensor &weight = program.weights[i];
    std::string key =
        concat(map.find(weight.storeName).key(), "\n", dtypeName(weight.dtype),
               " ", shapeText(weight.block, weight.rank));
    auto [it, isNew] = seen.emplace(key, weight.storeName);
    if (!isNew && it->second != weight.storeName)
      notes.push_back(concat("weights '", it->second, "' and '",
                             weight.storeName,
                             "' are one tensor, stored twice; 'cleave build "
                             "--weights-map' joins them"));
  }
}

Status Weights::open(const CleaveProgram &program,
                     const WeightOptions &options) {
  if (!options.mapPath.empty())
    CLEAVE_RETURN_IF_ERROR(map.open(options.mapPath));
  for (const std::string &path : options.paths)
    CLEAVE_RETURN_IF_ERROR(addCheckpoint(path, &files));
  CLEAVE_RETURN_IF_ERROR(bindAll(program));
  CLEAVE_RETURN_IF_ERROR(checkUnmatched(program, options));
  CLEAVE_RETURN_IF_ERROR(checkSurplus(program, options));
  noteRounding(program);
  noteTies(program);
  return Status();
}

} // namespace cleave::rt
