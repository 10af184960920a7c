#include "bindings/cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <system_error>

namespace stoker::cli {

namespace {

// Parses all of `text` as a `Number`.
template <typename Number>
bool Parse(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

template <typename Value>
std::string WithDefault(const std::string& what, const Value& value) {
  return fmt::format("{} [{}]", what, value);
}

}  // namespace

CLI::Option* AddNumber(CLI::App& command, const std::string& name, int64_t& value,
                       NumberRange range, const std::string& what) {
  const bool has_default = value >= range.low && value <= range.high;
  return command.add_option(name, value, has_default ? WithDefault(what, value) : what)
      ->type_name("N")
      ->check([range](const std::string& text) {
        int64_t number = 0;
        if (Parse(text, number) && number >= range.low && number <= range.high)
          return std::string();
        return fmt::format("{} is not a whole number from {} to {}", text, range.low, range.high);
      });
}

CLI::Option* AddReal(CLI::App& command, const std::string& name, double& value, RealRange range,
                     const std::string& what) {
  return command.add_option(name, value, WithDefault(what, value))
      ->check([range](const std::string& text) {
        double number = 0;
        if (Parse(text, number) && number >= range.low && number <= range.high)
          return std::string();
        return fmt::format("{} is not a number from {} to {}", text, range.low, range.high);
      });
}

CLI::Option* AddSeed(CLI::App& command, const std::string& name, uint64_t& value,
                     const std::string& what) {
  return command.add_option(name, value, WithDefault(what, value))
      ->type_name("N")
      ->check([](const std::string& text) {
        uint64_t number = 0;
        if (Parse(text, number)) return std::string();
        return fmt::format("{} is not a whole number from 0 to {}", text, ~uint64_t{0});
      });
}

CLI::Option* AddBytes(CLI::App& command, const std::string& name, uint64_t& value,
                      const std::string& what) {
  CLI::Validator size = CLI::AsSizeValue(/*kb_is_1000=*/true);
  size.description("");
  return command.add_option(name, value, WithDefault(what, value))
      ->type_name("BYTES")
      ->transform(size)
      ->check([](const std::string& text) {
        uint64_t number = 0;
        if (Parse(text, number)) return std::string();
        return fmt::format("{} is not a number of bytes; write 1000000, 64MiB or 2GB", text);
      });
}

CLI::Option* AddChoice(CLI::App& command, const std::string& name, std::string& value,
                       const std::vector<std::string>& choices, const std::string& what) {
  return command.add_option(name, value, WithDefault(what, value))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->check([choices](const std::string& text) {
        if (std::ranges::find(choices, text) != choices.end()) return std::string();
        return fmt::format("{} is not one of {}", text, fmt::join(choices, ", "));
      });
}

void AddLimits(CLI::App& command, LimitArguments& given) {
  constexpr int64_t kMostPixels = int64_t{kMostSidePixels} * kMostSidePixels;
  constexpr DecodeLimits kUsual;
  AddNumber(command, "--max-pixels", given.max_pixels, {1, kMostPixels},
            WithDefault("refuse images with more pixels (width × height)", kUsual.max_pixels));
  AddNumber(command, "--max-scans", given.max_scans, {1, 1'000'000},
            WithDefault("refuse JPEGs with more scans", kUsual.max_scans));
}

void SetLimits(const LimitArguments& given, DecodeLimits& limits) {
  if (given.max_pixels != 0) limits.max_pixels = given.max_pixels;
  if (given.max_scans != 0) limits.max_scans = static_cast<int>(given.max_scans);
}

}  // namespace stoker::cli
