//===- Status.h - Errors of the runtime -------------------------*- C++ -*-===//
// Every function of the runtime that can fail returns a Status; nothing throws
// and nothing exits. The codes are the ones the C interface hands out.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_SUPPORT_STATUS_H
#define CLEAVE_RUNTIME_SUPPORT_STATUS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cleave::rt {

/// Same numbers as CleaveCode in <cleave/runtime.h>.
enum class Code : int32_t {
  ok = 0,
  invalidArgument = 1,
  notFound = 2,
  failedPrecondition = 3,
  unavailable = 4,
  deadlineExceeded = 5,
  aborted = 6,
  internal = 7
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  bool ok() const { return statusCode == Code::ok; }
  Code code() const { return statusCode; }
  const std::string &message() const { return text; }

  /// The same error, told from further up: "context: message".
  Status within(std::string_view context) const {
    if (ok())
      return *this;
    return Status(statusCode, std::string(context) + ": " + text);
  }

private:
  Code statusCode = Code::ok;
  std::string text;
};

inline void append(std::string &out, std::string_view piece) { out += piece; }
inline void append(std::string &out, char piece) { out += piece; }
template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, char>)
void append(std::string &out, T piece) {
  out += std::to_string(piece);
}

/// Joins strings and integers: concat("rank ", 3) is "rank 3".
template <typename... Ts> std::string concat(const Ts &...pieces) {
  std::string out;
  (append(out, pieces), ...);
  return out;
}

template <typename... Ts> Status invalidArgument(const Ts &...pieces) {
  return Status(Code::invalidArgument, concat(pieces...));
}
template <typename... Ts> Status notFound(const Ts &...pieces) {
  return Status(Code::notFound, concat(pieces...));
}
template <typename... Ts> Status failedPrecondition(const Ts &...pieces) {
  return Status(Code::failedPrecondition, concat(pieces...));
}
template <typename... Ts> Status unavailable(const Ts &...pieces) {
  return Status(Code::unavailable, concat(pieces...));
}
template <typename... Ts> Status internalError(const Ts &...pieces) {
  return Status(Code::internal, concat(pieces...));
}

/// The error text of errno, in the style of our messages ("no such file or
/// directory").
std::string errnoText(int number);

/// The one place where errno becomes a Status: "context: reason".
Status errnoStatus(std::string_view context, int number);

} // namespace cleave::rt

#define CLEAVE_RETURN_IF_ERROR(expr)                                           \
  do {                                                                         \
    if (::cleave::rt::Status status_ = (expr); !status_.ok())                  \
      return status_;                                                          \
  } while (false)

#endif // CLEAVE_RUNTIME_SUPPORT_STATUS_H
