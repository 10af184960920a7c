#include "core/result/result.h"

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "core/result/missing_path.h"
#include "core/result/secrets.h"

namespace stoker {

namespace {

const char* VerbOf(OptionChange::How how) {
  switch (how) {
    case OptionChange::How::kRaise:
      return "raise ";
    case OptionChange::How::kLower:
      return "lower ";
    case OptionChange::How::kSetToAtLeast:
      return "set ";
    case OptionChange::How::kUse:
      return "use ";
    case OptionChange::How::kLeaveOut:
      return "leave out ";
  }
  return "";
}

}  // namespace

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

// Options with one verb share it: "raise a, or lower b, c or d".
std::string Error::Advice(OptionNaming naming) const {
  std::string text = advice;
  for (size_t i = 0; i < changes.size(); ++i) {
    const OptionChange& change = changes[i];
    if (i > 0 && change.how == changes[i - 1].how) {
      text += i + 1 < changes.size() && changes[i + 1].how == change.how ? ", " : " or ";
    } else {
      if (!text.empty()) text += ", or ";
      text += VerbOf(change.how);
    }
    text += naming != nullptr ? naming(change.option) : change.option;
    if (change.how == OptionChange::How::kSetToAtLeast)
      text += " to " + std::to_string(change.least) + " or more";
  }
  if (advice.empty() && !text.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string Error::ToString() const { return std::string(CodeName(code)) + ": " + Message(); }

std::string Error::Message(OptionNaming naming) const {
  std::string text;
  if (!file.empty()) {
    text += WithoutSecrets(file);
    if (offset) text += " at byte " + std::to_string(*offset);
    text += ": ";
  }
  text += WithoutSecrets(cause);
  if (const std::string remedy = Advice(naming); !remedy.empty())
    text += ". " + WithoutSecrets(remedy);
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
