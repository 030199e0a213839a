//===- Checkpoint.cpp - The files that a checkpoint consists of -----------===//
// Sharded checkpoints have an index: {"weight_map": {"tensor": "file", ...}},
// with files beside it. All shards are mapped and checked; that reads their
// headers only.
#include "runtime/io/Weights.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace cleave::rt {

namespace fs = std::filesystem;

constexpr const char *kSingle = "model.safetensors";
constexpr const char *kIndex = "model.safetensors.index.json";

static bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// By file, the tensors that the index says are in it.
using Shards = std::map<std::string, std::vector<std::string>>;

static Status readIndex(const std::string &path, Shards *shards) {
  MappedFile file;
  CLEAVE_RETURN_IF_ERROR(file.open(path));
  const char *text = file.size() ? file.data() : "";
  nlohmann::json index =
      nlohmann::json::parse(text, text + file.size(), nullptr,
                            /*allow_exceptions=*/false);
  bool good = !index.is_discarded() && index.is_object() &&
              index.contains("weight_map") && index["weight_map"].is_object();
  if (good)
    for (const auto &[tensor, shard] : index["weight_map"].items()) {
      good = good && shard.is_string();
      if (good)
        (*shards)[shard.get<std::string>()].push_back(tensor);
    }
  if (!good)
    return invalidArgument("cannot read '", path,
                           "': it is no JSON object with a \"weight_map\" from "
                           "tensors to files");
  return Status();
}

static Status addIndex(const std::string &path, Safetensors *files) {
  Shards shards;
  CLEAVE_RETURN_IF_ERROR(readIndex(path, &shards));
  for (const auto &[shard, tensors] : shards) {
    std::string file = (fs::path(path).parent_path() / shard).string();
    Status status = files->add(file);
    if (!status.ok())
      return status.within(concat("'", path, "' has '", tensors.front(),
                                  "' in the shard '", shard, "'"));
    for (const std::string &tensor : tensors)
      if (!files->find(tensor))
        return notFound("'", path, "' has '", tensor, "' in the shard '", shard,
                        "', which has ", closestFirst(tensor, files->names()));
  }
  return Status();
}

static Status addFolder(const std::string &path, Safetensors *files) {
  fs::path folder(path);
  std::error_code ignored;
  if (fs::exists(folder / kSingle, ignored))
    return files->add((folder / kSingle).string());
  if (fs::exists(folder / kIndex, ignored))
    return addIndex((folder / kIndex).string(), files);
  std::vector<std::string> found;
  for (const auto &entry : fs::directory_iterator(folder, ignored))
    if (endsWith(entry.path().string(), ".safetensors"))
      found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  if (found.size() == 1)
    return files->add((folder / found.front()).string());
  return notFound("'", path, "' holds no '", kSingle, "' and no '", kIndex,
                  "'; of other .safetensors files it has ",
                  closestFirst(kSingle, found));
}

Status addCheckpoint(const std::string &path, Safetensors *files) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return addFolder(path, files);
  return endsWith(path, ".json") ? addIndex(path, files) : files->add(path);
}

} // namespace cleave::rt
