// Results and errors.
//
// Everything that data or the system can cause is returned as an Error in a Result; exceptions are
// for constructors and the Python edge. An Error is created once, where the cause is known, and
// each layer above adds only what it knows (the file, the offset).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stoker {

enum class Code {
  kInvalidArgument,     // the caller's options are wrong
  kNotFound,            // a file or folder does not exist
  kPermissionDenied,    // it exists, but access is denied
  kDataLoss,            // bytes that cannot be decoded
  kResourceExhausted,   // a budget or a limit of the system
  kFailedPrecondition,  // the object cannot do this call in its state (after a fork)
  kUnimplemented,       // a format or an option that stoker does not support
  kCancelled,           // Stop() was called
  kUnavailable,         // a transient I/O error: a retry may succeed
};

// "INVALID_ARGUMENT", "DATA_LOSS", …: the names that gRPC and TensorFlow use.
const char* CodeName(Code code);

// A change of an option that may fix an error.
struct OptionChange {
  enum class How : uint8_t { kRaise, kLower, kSetToAtLeast, kUse, kLeaveOut };

  How how;
  const char* option;  // its name in the table of options, or in RuntimeOptions
  uint64_t least = 0;  // of kSetToAtLeast
};

// Returns what a front end calls an option: "--max-pixels".
using OptionNaming = std::string (*)(std::string_view option);

struct [[nodiscard]] Error {
  // Distinguishes errors that have the same code.
  enum class Detail : uint8_t {
    kNone,
    kTruncated,   // of kDataLoss: bytes are missing at the end; the bytes before may be sound
    kOverLimits,  // of kResourceExhausted: the data take more than is allowed, on any machine
    kOfNoSample,  // the sample is not the cause: other samples would fail, too
    kNoMemory,    // of kResourceExhausted: the system gives no memory, for any budget
    kForbidden,   // of kPermissionDenied: a server refuses an object, or it may not exist
  };

  Code code = Code::kInvalidArgument;
  std::string cause;                 // what is wrong: one sentence without a full stop
  std::string file = {};             // empty: no file is involved
  std::optional<uint64_t> offset{};  // in bytes from the start of `file`
  std::string advice = {};           // what to do, apart from `changes`; may be empty
  // Each of them may help. Texts do not name options, because each front end has other names.
  std::vector<OptionChange> changes{};
  // The bytes of working memory that were requested in addition to those held, and for which there
  // was no room; the call may succeed once other memory has been released. 0 for other causes.
  uint64_t wanted_bytes = 0;
  Detail detail = Detail::kNone;

  Error&& WithFile(std::string path) &&;

  // "Shrink the image, or raise max_pixels". Without `naming`, options have the table's names.
  std::string Advice(OptionNaming naming = nullptr) const;

  // "DATA_LOSS: photos/a.jpg at byte 1234: truncated JPEG. Remove or re-create the file."
  std::string ToString() const;
  std::string Message(OptionNaming naming = nullptr) const;  // without the code
};

// The error of a failed system call: maps errno to a Code and adds strerror's text.
Error SystemError(int error_number, const std::string& what, std::string file = {});

// Throws std::runtime_error with the error's text, from the library's code: a program that is
// compiled without exceptions ends there.
[[noreturn]] void Throw(const Error& error);

// A value, or the Error that explains why there is no value.
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

  // Returns the value, or throws, for programs that prefer exceptions. From a temporary Result
  // (f().value()) the value is moved out.
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
    if (!ok()) Throw(error());
  }

  std::variant<T, Error> state_;
};

// Success, or an Error. `return {};` is success.
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
    if (!ok()) Throw(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace stoker
