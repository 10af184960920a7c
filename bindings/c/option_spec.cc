#include "bindings/c/option_spec.h"

#include <array>
#include <cfloat>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/batch/channels.h"
#include "transforms/spec/transform.h"

namespace stoker {

namespace {

// Reads an option's value from JSON, by its type.
struct OptionReader {
  JsonObject& object;
  const OptionInfo& option;

  void operator()(bool* value) const { object.Boolean(option.name, *value); }

  template <std::integral Integer>
  void operator()(Integer* value) const {
    if (option.low < 0) return ReadSigned(value);
    uint64_t high = static_cast<uint64_t>(option.high);
    if constexpr (std::is_same_v<Integer, uint64_t>) high = std::numeric_limits<uint64_t>::max();
    object.Integer(option.name, *value, static_cast<uint64_t>(option.low), high);
  }

  template <std::integral Integer>
  void ReadSigned(Integer* value) const {
    auto number = static_cast<double>(*value);
    object.Number(option.name, number, option.low, option.high);
    if (number != std::floor(number)) return object.FailKey(option.name, "is not a whole number");
    *value = static_cast<Integer>(number);
  }

  void operator()(double* value) const {
    object.Number(option.name, *value, option.low, option.high);
  }

  void operator()(std::array<double, 2>* range) const { object.Numbers(option.name, *range); }

  void operator()(std::array<float, 3>* channels) const {
    std::array<double, 3> read{(*channels)[0], (*channels)[1], (*channels)[2]};
    object.Numbers(option.name, read);
    ToFloats(read, *channels);
  }

  void operator()(std::vector<float>* channels) const {
    std::vector<double> read(channels->begin(), channels->end());
    object.Numbers(option.name, read, kMostChannels);
    channels->resize(read.size());
    ToFloats(read, *channels);
  }

  void ToFloats(std::span<const double> read, std::span<float> floats) const {
    for (size_t i = 0; i < read.size(); ++i) {
      if (std::fabs(read[i]) > FLT_MAX) {
        return object.FailKey(option.name, "does not fit a float32");
      }
      floats[i] = static_cast<float>(read[i]);
    }
  }

  void operator()(std::vector<double>* numbers) const {
    object.Numbers(option.name, *numbers, kMaxTransforms);
  }

  void operator()(std::vector<int>* integers) const {
    object.Integers(option.name, *integers, static_cast<int>(option.low),
                    static_cast<int>(option.high), kMaxTransforms);
  }

  void operator()(Margins* margins) const {
    std::array<int, 4> sides{margins->left, margins->top, margins->right, margins->bottom};
    object.Integers(option.name, sides, static_cast<int>(option.low),
                    static_cast<int>(option.high));
    *margins = {sides[0], sides[1], sides[2], sides[3]};
  }

  void operator()(Fill* fill) const {
    std::array<int, 3> read{(*fill)[0], (*fill)[1], (*fill)[2]};
    object.Integers(option.name, read, 0, 255);
    for (size_t c = 0; c < fill->size(); ++c) (*fill)[c] = static_cast<uint8_t>(read[c]);
  }

  template <typename Value>
  void operator()(std::optional<Value>* value) const {
    if (object.IsNull(option.name)) return value->reset();
    if (!object.Has(option.name)) return;
    *value = Value{};
    (*this)(&**value);
  }

  void operator()(const TextValue& value) const {
    std::string text = value.get(value.at);
    if (std::string_view(option.name) == "channels") {
      object.TextOrWhole(option.name, text);
    } else {
      object.Text(option.name, text);
    }
    if (auto refusal = value.set(value.at, text)) {
      object.FailKey(option.name, "is \"" + text + "\". " + refusal->advice);
    }
  }

  void operator()(const EnumValue& value) const {
    std::vector<const char*> names;
    names.reserve(option.choices.size());
    for (const OptionInfo::Choice& choice : option.choices) names.push_back(choice.name);
    if (const std::optional<size_t> place = object.Choice(option.name, names)) {
      value.set(value.at, option.choices[*place].value);
    }
  }
};

}  // namespace

void ReadOption(JsonObject& object, const OptionInfo& option, const OptionValue& value) {
  if (option.required) object.RequireKey(option.name);
  std::visit(OptionReader{object, option}, value);
}

}  // namespace stoker
