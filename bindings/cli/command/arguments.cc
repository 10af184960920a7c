#include "bindings/cli/command/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <system_error>
#include <type_traits>
#include <utility>

#include "bindings/cli/outcome.h"
#include "engine/options/option_table.h"

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

// batch_size is 0 only without the flag, next to --batch-tokens.
NumberRange RangeOf(const OptionInfo& option) {
  return {static_cast<int64_t>(option.required ? 1 : option.low),
          static_cast<int64_t>(option.high)};
}

template <typename Number>
CLI::Option* AddWhole(CLI::App& command, const std::string& name, Number& value, NumberRange range,
                      const std::string& what) {
  const auto now = static_cast<int64_t>(value);
  const bool has_default = now >= range.low && now <= range.high;
  return command.add_option(name, value, has_default ? WithDefault(what, value) : what)
      ->type_name("N")
      ->check([range](const std::string& text) {
        int64_t number = 0;
        if (Parse(text, number) && number >= range.low && number <= range.high)
          return std::string();
        return fmt::format("{} is not a whole number from {} to {}", text, range.low, range.high);
      });
}

CLI::Option* AddText(CLI::App& command, const std::string& name, const TextValue& value,
                     const std::string& what, const char* shown) {
  return command
      .add_option_function<std::string>(
          name, [value](const std::string& text) { (void)value.set(value.at, text); }, what)
      ->type_name(shown)
      ->check([value](const std::string& text) {
        const auto refusal = value.set(value.at, text);
        return refusal ? refusal->cause + ". " + refusal->advice : std::string();
      });
}

CLI::Option* AddEnum(CLI::App& command, const std::string& name, const EnumValue& value,
                     const std::vector<OptionInfo::Choice>& choices, const std::string& what) {
  std::vector<std::string> names;
  names.reserve(choices.size());
  for (const OptionInfo::Choice& choice : choices) names.emplace_back(choice.name);
  const auto set = [value, choices](const std::string& text) {
    const auto named = [&](const OptionInfo::Choice& choice) { return text == choice.name; };
    const auto found = std::ranges::find_if(choices, named);
    if (found != choices.end()) value.set(value.at, found->value);
    return found != choices.end();
  };
  const int now = value.get(value.at);
  const auto standard = std::ranges::find(choices, now, &OptionInfo::Choice::value);
  return command.add_option_function<std::string>(name, set, WithDefault(what, standard->name))
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->check([set, names](const std::string& text) {
        if (set(text)) return std::string();
        return fmt::format("{} is not one of {}", text, fmt::join(names, ", "));
      });
}

// Adds the flag of a loader option whose value is a `Value`; returns null if flags have no such
// type.
template <typename Value>
CLI::Option* AddFlag(CLI::App& command, const LoaderOptionRow& row, const Value& value) {
  const std::string name = FlagOf(row.option.name);
  const bool is_text = std::is_same_v<Value, TextValue>;
  const bool has_zero = row.zero != nullptr && !is_text && !row.option.required;
  const std::string zero = has_zero ? std::string("; 0: ") + row.zero : "";
  const std::string what = row.doc + zero;
  if constexpr (std::is_same_v<Value, bool*>) return command.add_flag(name, *value, what);
  if constexpr (std::is_same_v<Value, uint64_t*>) return AddSeed(command, name, *value, what);
  if constexpr (std::is_same_v<Value, int*> || std::is_same_v<Value, uint32_t*>) {
    return AddWhole(command, name, *value, RangeOf(row.option), what);
  }
  if constexpr (std::is_same_v<Value, double*>) {
    return AddReal(command, name, *value, {row.option.low, row.option.high}, what);
  }
  if constexpr (std::is_same_v<Value, TextValue>) {
    return AddText(command, name, value, what, row.flag_value);
  }
  if constexpr (std::is_same_v<Value, EnumValue>) {
    return AddEnum(command, name, value, row.option.choices, what);
  }
  return nullptr;
}

}  // namespace

CLI::Option* AddNumber(CLI::App& command, const std::string& name, int64_t& value,
                       NumberRange range, const std::string& what) {
  return AddWhole(command, name, value, range, what);
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
                       const std::vector<std::string>& choices, const std::string& what,
                       const std::map<std::string, std::string>& spellings) {
  return command.add_option(name, value, WithDefault(what, value))
      ->transform(CLI::Validator(
          [spellings](std::string& text) {
            if (const auto meant = spellings.find(text); meant != spellings.end()) {
              text = meant->second;
            }
            return std::string();
          },
          ""))
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->check([choices](const std::string& text) {
        if (std::ranges::find(choices, text) != choices.end()) return std::string();
        return fmt::format("{} is not one of {}", text, fmt::join(choices, ", "));
      });
}

void AddSourceOptions(CLI::App& command, std::vector<std::string>& given) {
  command
      .add_option("--source-option", given,
                  "an option of the source, as in a loader spec (docs/loader-spec.md): label=, "
                  "image=png, 'columns=caption txt', masks=DIR; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void AddLimits(CLI::App& command, LimitArguments& given) {
  constexpr DecodeLimits kUsual;
  const auto add = [&](const char* option, int64_t& value, int64_t usual) {
    const LoaderOptionRow& row = LoaderOptionNamed(option);
    AddNumber(command, FlagOf(option), value, RangeOf(row.option), WithDefault(row.doc, usual));
  };
  add("max_pixels", given.max_pixels, kUsual.max_pixels);
  add("max_scans", given.max_scans, kUsual.max_scans);
  const auto add_flag = [&](const char* option, bool& value) {
    command.add_flag(FlagOf(option), value, LoaderOptionNamed(option).doc);
  };
  add_flag("accept_truncated", given.accept_truncated);
  add_flag("accept_16_bits", given.accept_16_bits);
}

void AddLoaderOptions(CLI::App& command, LoaderOptions& options) {
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    if (row.flag_group == nullptr) continue;
    CLI::Option* flag = std::visit([&](const auto& value) { return AddFlag(command, row, value); },
                                   row.option.in(options));
    if (flag != nullptr && *row.flag_group != 0) flag->group(row.flag_group);
  }
}

CLI::Option* AddDeviceOption(CLI::App& command, std::string_view name, DeviceOptions& options) {
  const auto row = std::ranges::find_if(
      AllDeviceOptions(), [name](const DeviceOptionRow& row) { return row.option.name == name; });
  const auto add = [&](const auto& value) -> CLI::Option* {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, int*> || std::is_same_v<Value, uint32_t*>) {
      return AddWhole(command, FlagOf(name), *value, RangeOf(row->option), row->doc);
    }
    return nullptr;
  };
  return std::visit(add, row->option.in(options));
}

void SetLimits(const LimitArguments& given, DecodeLimits& limits) {
  if (given.max_pixels != 0) limits.max_pixels = given.max_pixels;
  if (given.max_scans != 0) limits.max_scans = static_cast<int>(given.max_scans);
  if (given.accept_truncated) limits.accept_truncated = true;
  if (given.accept_16_bits) limits.accept_16_bits = true;
}

}  // namespace stoker::cli
