// An option of a transform or of a loader: its name, the values it accepts, and where its value is
// stored. The tables of both (transform_table.h, engine/options/option_table.h) consist of these;
// checks, messages, the JSON spec, `stoker explain`, flags and Python's signatures read the tables.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "transforms/spec/fill.h"

namespace stoker {

// A value of any enum, read and written as a number.
struct EnumValue {
  template <typename Enum>
  explicit EnumValue(Enum* value)
      : at(value),
        get([](const void* from) { return static_cast<int>(*static_cast<const Enum*>(from)); }),
        set([](void* to, int number) { *static_cast<Enum*>(to) = static_cast<Enum>(number); }) {}

  void* at;
  int (*get)(const void* from);
  void (*set)(void* to, int number);
};

// The reason why a value is refused, and advice.
struct Refusal {
  std::string cause;   // "p = 2"
  std::string advice;  // "Give p between 0 and 1"
};

// A value that is read and written as a text.
struct TextValue {
  void* at;
  std::string (*get)(const void* from);
  // Returns nullopt if the text is valid; otherwise the fault, and `to` is unchanged.
  std::optional<Refusal> (*set)(void* to, const std::string& text);
};

// The place of an option's value.
using OptionValue =
    std::variant<bool*, int*, uint32_t*, int64_t*, uint64_t*, double*, std::array<double, 2>*,
                 std::array<float, 3>*, std::vector<float>*, std::vector<double>*,
                 std::vector<int>*, Margins*, Fill*, std::optional<double>*,
                 std::optional<std::array<double, 2>>*, std::optional<Fill>*, EnumValue, TextValue>;

template <typename Value>
OptionValue ValueAt(Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return EnumValue(&value);
  } else {
    return &value;
  }
}

struct OptionInfo {
  struct Choice {
    template <typename Enum>
    Choice(const char* enum_name, Enum enum_value)
        : name(enum_name), value(static_cast<int>(enum_value)) {}

    const char* name;
    int value;
  };

  const char* name = "";  // the member, and the key in JSON
  bool required = false;
  // Bounds of a number, or of both ends of a range. A uint64_t has no bounds.
  double low = 0;
  double high = 0;
  int step = 1;                   // between the integers from `low` on that are accepted
  const char* unit = "";          // " pixels"
  const char* below = nullptr;    // the name of an option that must be larger
  std::vector<Choice> choices{};  // an enum's values
  const char* note = "";          // what docs/loader-spec.md adds to default and range
};

// An option of an `Owner`. Its default is the value in a new Owner.
template <typename Owner>
struct Option : OptionInfo {
  OptionValue (*in)(Owner& owner) = nullptr;  // null if its readers handle it separately
};

// Return nullopt if the value is in its range.
std::optional<Refusal> CheckOption(const OptionInfo& option, const OptionValue& value);
std::optional<Refusal> CheckInteger(const OptionInfo& option, int64_t value, int64_t low,
                                    int64_t high);

// Returns the value as `stoker explain` writes it: "0.5", "0.2 to 1", "(0, 0, 255)", "reflect".
// Different values have different texts.
std::string TextOf(const OptionInfo& option, const OptionValue& value);

// Returns the shortest text that reads as the same number, independent of the locale.
std::string NumberText(double value);
std::string NumberText(float value);

}  // namespace stoker
