#include "transforms/spec/option.h"

#include <charconv>
#include <concepts>

namespace stoker {

namespace {

using Check = std::optional<Refusal>;

template <typename Number>
std::string Shortest(Number value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string Between(const OptionInfo& option) {
  return "between " + NumberText(option.low) + " and " + NumberText(option.high) + option.unit;
}

std::string NameOf(const OptionInfo& option, int value) {
  for (const OptionInfo::Choice& choice : option.choices) {
    if (choice.value == value) return choice.name;
  }
  return "";
}

template <typename Values>
std::string List(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "(" : ", ") + Shortest(value);
  return text + ")";
}

struct Checks {
  const OptionInfo& option;

  Check operator()(const bool*) const { return {}; }
  Check operator()(const uint64_t*) const { return {}; }
  template <std::integral Integer>
  Check operator()(const Integer* value) const {
    return CheckInteger(option, static_cast<int64_t>(*value), static_cast<int64_t>(option.low),
                        static_cast<int64_t>(option.high));
  }
  Check operator()(const double* value) const {
    if (*value >= option.low && *value <= option.high) return {};  // and is a number
    return Refusal{std::string(option.name) + " = " + NumberText(*value),
                   std::string("Give ") + option.name + " " + Between(option)};
  }
  Check operator()(const std::array<double, 2>* range) const {
    const auto [least, most] = *range;
    if (least >= option.low && least <= most && most <= option.high) return {};
    return Refusal{
        std::string(option.name) + " = (" + NumberText(least) + ", " + NumberText(most) + ")",
        std::string("Give ") + option.name + " as (smallest, largest), both " + Between(option)};
  }
  Check operator()(const Margins* margins) const {
    for (const auto& [side, value] :
         {std::pair(".left", margins->left), std::pair(".top", margins->top),
          std::pair(".right", margins->right), std::pair(".bottom", margins->bottom)}) {
      const std::string name = std::string(option.name) + side;
      OptionInfo named = option;
      named.name = name.c_str();
      if (Check check = Checks{named}(&value)) return check;
    }
    return {};
  }
  Check operator()(const std::array<float, 3>*) const { return {}; }
  template <std::floating_point Real>
  Check operator()(const std::vector<Real>*) const {
    return {};
  }
  Check operator()(const std::vector<int>* integers) const {
    for (size_t i = 0; i < integers->size(); ++i) {
      const std::string name = std::string(option.name) + "[" + std::to_string(i) + "]";
      OptionInfo named = option;
      named.name = name.c_str();
      if (Check check = Checks{named}(&(*integers)[i])) return check;
    }
    return {};
  }
  Check operator()(const Fill*) const { return {}; }
  template <typename Value>
  Check operator()(const std::optional<Value>* value) const {
    return *value ? (*this)(&**value) : Check();
  }
  Check operator()(const TextValue&) const { return {}; }  // checked when it was set
  Check operator()(const EnumValue& value) const {
    const int number = value.get(value.at);
    if (!NameOf(option, number).empty()) return {};
    std::string all;
    for (const OptionInfo::Choice& choice : option.choices) {
      all += (all.empty() ? "" : ", ") + std::string(choice.name);
    }
    return Refusal{std::string(option.name) + " = " + std::to_string(number),
                   std::string("Give ") + option.name + " as one of " + all};
  }
};

struct Texts {
  const OptionInfo& option;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const double* value) const { return NumberText(*value); }
  template <std::integral Integer>
  std::string operator()(const Integer* value) const {
    return std::to_string(*value);
  }
  std::string operator()(const std::array<double, 2>* range) const {
    const auto [least, most] = *range;
    return least == most ? NumberText(least) : NumberText(least) + " to " + NumberText(most);
  }
  std::string operator()(const std::array<float, 3>* channels) const { return List(*channels); }
  // One number for all channels is as it was when each had to have its own: three, in saved states.
  std::string operator()(const std::vector<float>* channels) const {
    if (channels->size() != 1) return List(*channels);
    return List(std::vector(3, channels->front()));
  }
  std::string operator()(const std::vector<double>* numbers) const {
    return numbers->empty() ? "none" : List(*numbers);
  }
  std::string operator()(const std::vector<int>* integers) const {
    if (integers->size() == 1) return std::to_string(integers->front());
    return integers->empty() ? "none" : List(*integers);
  }
  std::string operator()(const Margins* m) const {
    if (m->left == m->top && m->left == m->right && m->left == m->bottom) {
      return std::to_string(m->left);
    }
    return List(std::array{m->left, m->top, m->right, m->bottom});
  }
  std::string operator()(const Fill* fill) const { return List(*fill); }
  template <typename Value>
  std::string operator()(const std::optional<Value>* value) const {
    return *value ? (*this)(&**value) : "none";
  }
  std::string operator()(const TextValue& value) const { return value.get(value.at); }
  std::string operator()(const EnumValue& value) const {
    return NameOf(option, value.get(value.at));
  }
};

}  // namespace

std::optional<Refusal> CheckInteger(const OptionInfo& option, int64_t value, int64_t low,
                                    int64_t high) {
  if (value >= low && value <= high && (value - low) % option.step == 0) return {};
  std::string values = " between " + std::to_string(low) + " and ";
  if (option.step != 1) {
    const int64_t second = low + option.step;
    const std::string more = second == high ? "" : ", " + std::to_string(second) + ", …";
    values = " as " + std::to_string(low) + more + " or ";
  }
  return Refusal{std::string(option.name) + " = " + std::to_string(value),
                 std::string("Give ") + option.name + values + std::to_string(high) + option.unit};
}

std::optional<Refusal> CheckOption(const OptionInfo& option, const OptionValue& value) {
  return std::visit(Checks{option}, value);
}

std::string TextOf(const OptionInfo& option, const OptionValue& value) {
  return std::visit(Texts{option}, value);
}

std::string NumberText(double value) { return Shortest(value); }
std::string NumberText(float value) { return Shortest(value); }

}  // namespace stoker
