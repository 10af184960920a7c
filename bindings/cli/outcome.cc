#include "bindings/cli/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "bindings/cli/interrupt.h"
#include "core/result/secrets.h"

namespace stoker::cli {

std::string AsOptions(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kNames{
      {{"memory_budget", "--memory-budget"},
       {"max_pixels", "--max-pixels"},
       {"max_scans", "--max-scans"},
       {"accept_truncated", "--accept-truncated"},
       {"accept_16_bits", "--accept-16-bits"},
       {"batch_size", "--batch-size"},
       {"drop_remainder", "--drop-remainder"},
       {"max_bad_fraction", "--max-bad-fraction"},
       {"depth or threads", "--depth or --threads"},
       {"pass overwrite", "pass --overwrite"}}};
  for (const auto& [from, to] : kNames) {
    for (size_t at = text.find(from); at != std::string::npos;
         at = text.find(from, at + to.size())) {
      const bool a_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '(';
      if (a_word)
        text.replace(at, from.size(), to);  // otherwise it is quoted, or part of another word
    }
  }
  return text;
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

Error WithOptionNames(Error error) {
  error.cause = AsOptions(std::move(error.cause));
  error.advice = AsOptions(std::move(error.advice));
  return error;
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
  if (!error.advice.empty()) text += ' ' + error.advice;
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
                       {"advice", error.advice},
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
