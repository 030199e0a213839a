//===- Json.cpp - Reading fields with messages for what is wrong ----------===//
#include "Json.h"
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

using cleave::Expected;

Expected<std::string> llama::readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (!file || !(content << file.rdbuf()))
    return Expected<std::string>::failure("cannot read '" + path +
                                          "': " + std::strerror(errno));
  return content.str();
}

Expected<llama::Json> llama::readJson(const std::string &path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return Expected<Json>::failure(text.error());
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return Expected<Json>::failure("'" + path + "' is not JSON");
  return json;
}
