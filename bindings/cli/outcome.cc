#include "bindings/cli/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bindings/cli/interrupt.h"
#include "core/result/secrets.h"

namespace stoker::cli {

std::string FlagOf(std::string_view option) {
  std::string flag = "--" + std::string(option);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

namespace {

std::string OnOneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace

int ExitCodeOf(const Error& error) {
  switch (error.code) {
    case Code::kNotFound:
    case Code::kDataLoss:
      return kExitData;
    case Code::kInvalidArgument:
    case Code::kUnimplemented:
      return error.file.empty() ? kExitUsage : kExitData;
    case Code::kResourceExhausted:
      return error.detail == Error::Detail::kOverLimits ? kExitData : kExitSystem;
    case Code::kCancelled:
      return InterruptedExitCode();
    case Code::kPermissionDenied:
    case Code::kFailedPrecondition:
    case Code::kUnavailable:
      break;
  }
  return kExitSystem;
}

int ExitCodeOf(const Error& error, std::initializer_list<std::string_view> outputs) {
  const bool of_output =
      !error.file.empty() && std::ranges::find(outputs, error.file) != outputs.end();
  return of_output && error.code != Code::kCancelled ? kExitSystem : ExitCodeOf(error);
}

std::string ErrorLine(const Error& failure) {
  const Error error = WithoutSecrets(failure);
  std::string text;
  if (!error.file.empty()) {
    text = error.file;
    if (error.offset) text += fmt::format(" at byte {}", *error.offset);
    text += ": ";
  }
  text += error.cause;
  if (!text.ends_with('.')) text += '.';
  if (const std::string advice = error.Advice(FlagOf); !advice.empty()) text += ' ' + advice;
  if (!text.ends_with('.')) text += '.';
  return "stoker: error: " + OnOneLine(text) + "\n";
}

std::string ErrorJson(const Error& failure, int exit_code) {
  const Error error = WithoutSecrets(failure);
  using Json = nlohmann::ordered_json;
  const Json json = {{"error",
                      {{"code", CodeName(error.code)},
                       {"cause", error.cause},
                       {"file", error.file.empty() ? Json(nullptr) : Json(error.file)},
                       {"offset", error.offset ? Json(*error.offset) : Json(nullptr)},
                       {"advice", error.Advice(FlagOf)},
                       {"exit_code", exit_code}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Fail(const Error& error, int exit_code, bool json) {
  const std::string line = ErrorLine(error);
  std::fwrite(line.data(), 1, line.size(), stderr);
  if (json) (void)Print(ErrorJson(error, exit_code));
  return exit_code;
}

void Warn(const std::string& text) {
  const std::string line = "stoker: warning: " + OnOneLine(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Status Print(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return {};
  return SystemError(errno, "cannot write to standard output");
}

}  // namespace stoker::cli
