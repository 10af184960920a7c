// How stoker says that something went wrong.
//
// Everything that data or the system can cause comes back as an Error inside a Result; exceptions
// are left to constructors and to the Python edge. An Error is made once, where the cause is known,
// and each layer above adds only what it alone knows (the file, the offset).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace stoker {

enum class Code {
  kInvalidArgument,     // the caller's options make no sense
  kNotFound,            // a file or folder is not there
  kPermissionDenied,    // it is there, and may not be read
  kDataLoss,            // bytes that cannot be decoded
  kResourceExhausted,   // a budget or a limit of the system
  kFailedPrecondition,  // the object is not in a state for this call (after a fork)
  kUnimplemented,       // a format or an option that stoker does not have
  kCancelled,           // Stop() was called meanwhile
  kUnavailable,         // I/O failed in a way that a retry might cure
};

// "INVALID_ARGUMENT", "DATA_LOSS", …: the names that gRPC and TensorFlow use.
const char* CodeName(Code code);

struct [[nodiscard]] Error {
  Code code = Code::kInvalidArgument;
  std::string cause;                 // one sentence without a full stop: what is wrong
  std::string file = {};             // empty: no file is to blame
  std::optional<uint64_t> offset{};  // in bytes from the start of `file`
  std::string advice = {};           // what to do about it; may be empty
  // So many bytes of working memory were asked for, beside what is held, and there was no room:
  // what failed may succeed when others have given theirs back. 0: that was not it.
  uint64_t wanted_bytes = 0;

  Error&& WithFile(std::string path) &&;

  // "DATA_LOSS: photos/a.jpg at byte 1234: truncated JPEG. Remove or re-create the file."
  std::string ToString() const;
  std::string Message() const;  // the same without the code
};

// The error of a failed system call: maps errno to a Code and says strerror's words.
Error SystemError(int error_number, const std::string& what, std::string file = {});

// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Preconditions: ok().
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  // Precondition: !ok().
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  // For programs that prefer exceptions: the value, or std::runtime_error with the error's text. Of
  // a Result that goes away with the expression (f().value()) it is moved out.
  T& value() & {
    ThrowUnlessOk();
    return **this;
  }
  const T& value() const& {
    ThrowUnlessOk();
    return **this;
  }
  T value() && {
    ThrowUnlessOk();
    return *std::move(*this);
  }

 private:
  void ThrowUnlessOk() const {
    if (!ok()) throw std::runtime_error(error().ToString());
  }

  std::variant<T, Error> state_;
};

// Success, or the reason why not. `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }
  void value() const {
    if (!ok()) throw std::runtime_error(error_->ToString());
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace stoker
