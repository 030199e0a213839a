//===- Status.cpp - Errors of the runtime ---------------------------------===//
#include "runtime/support/Status.h"

#include <cctype>
#include <cerrno>
#include <cstring>

namespace cleave::rt {

std::string errnoText(int number) {
  std::string text = std::strerror(number);
  // "No such file" becomes "no such file"; "I/O error" keeps its capitals.
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = static_cast<char>(std::tolower(text[0]));
  return text;
}

static Code codeOf(int number) {
  switch (number) {
  case ENOENT:
  case ENOTDIR:
    return Code::notFound;
  case EACCES:
  case EPERM:
  case EROFS:
  case EISDIR:
    return Code::failedPrecondition;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
  case ENOMEM:
  case EAGAIN:
    return Code::unavailable;
  default:
    return Code::internal;
  }
}

Status errnoStatus(std::string_view context, int number) {
  return Status(codeOf(number), concat(context, ": ", errnoText(number)));
}

} // namespace cleave::rt
