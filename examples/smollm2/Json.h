//===- Json.h - Reading fields with messages for what is wrong -*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_JSON_H
#define CLEAVE_EXAMPLES_SMOLLM2_JSON_H

#include <cleave/program.h>
#include <nlohmann/json.hpp>
#include <string>

namespace llama {

using Json = nlohmann::json;

/// The content of a JSON file, or what is wrong with it.
cleave::Expected<Json> readJson(const std::string &path);

/// The bytes of a file, or why it cannot be read.
cleave::Expected<std::string> readFile(const std::string &path);

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_JSON_H
