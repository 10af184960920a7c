#include "core/result/result.h"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "core/result/missing_path.h"
#include "core/result/secrets.h"

namespace stoker {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnavailable:
      return "UNAVAILABLE";
  }
  return "UNKNOWN";
}

Error&& Error::WithFile(std::string path) && {
  file = std::move(path);
  return std::move(*this);
}

void Throw(const Error& error) { throw std::runtime_error(error.ToString()); }

std::string Error::ToString() const { return std::string(CodeName(code)) + ": " + Message(); }

std::string Error::Message() const {
  std::string text;
  if (!file.empty()) {
    text += WithoutSecrets(file);
    if (offset) text += " at byte " + std::to_string(*offset);
    text += ": ";
  }
  text += WithoutSecrets(cause);
  if (!advice.empty()) text += ". " + WithoutSecrets(advice);
  if (text.empty() || text.back() != '.') text += '.';
  return text;
}

Error SystemError(int error_number, const std::string& what, std::string file) {
  Code code = Code::kUnavailable;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      code = Code::kResourceExhausted;
      break;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      code = Code::kInvalidArgument;
      break;
    case EILSEQ:
      code = Code::kDataLoss;
      break;
    default:
      break;
  }
  Error error{code, what + ": " + std::generic_category().message(error_number), std::move(file)};
  if (code == Code::kNotFound) error.advice = AdviceOnMissing(error.file);
  return error;
}

}  // namespace stoker
