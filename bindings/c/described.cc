#include "bindings/c/described.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "engine/metrics/counters.h"
#include "engine/options/option_table.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

using Json = nlohmann::json;

// The value of an option.
struct ValueJson {
  const OptionInfo& option;

  template <typename Value>
  Json operator()(const Value* value) const {
    return *value;
  }
  // Writes the number as people do, 0.485, and not as the double that is nearest to the float.
  Json operator()(const std::array<float, 3>* channels) const { return Numbers(*channels); }
  Json operator()(const std::vector<float>* channels) const { return Numbers(*channels); }
  static Json Numbers(std::span<const float> values) {
    Json list = Json::array();
    for (const float value : values) list.push_back(Json::parse(NumberText(value)));
    return list;
  }
  Json operator()(const Margins* m) const { return {m->left, m->top, m->right, m->bottom}; }
  template <typename Value>
  Json operator()(const std::optional<Value>* value) const {
    return *value ? (*this)(&**value) : Json(nullptr);
  }
  Json operator()(const EnumValue& value) const { return TextOf(option, OptionValue(value)); }
  Json operator()(const TextValue& value) const { return TextOf(option, OptionValue(value)); }
};

// Adds a number's bounds, as whole numbers where it is one.
void AddBounds(Json& json, const OptionInfo& option, const OptionValue& value) {
  if (std::holds_alternative<uint64_t*>(value)) {
    json["low"] = 0;
    json["high"] = std::numeric_limits<uint64_t>::max();
  } else if (option.low < option.high) {
    const bool is_real = std::holds_alternative<double*>(value) ||
                         std::holds_alternative<std::array<double, 2>*>(value) ||
                         std::holds_alternative<std::optional<double>*>(value) ||
                         std::holds_alternative<std::optional<std::array<double, 2>>*>(value);
    json["low"] = is_real ? Json(option.low) : Json(static_cast<int64_t>(option.low));
    json["high"] = is_real ? Json(option.high) : Json(static_cast<int64_t>(option.high));
    if (option.step != 1) json["step"] = option.step;
  }
}

template <typename Owner>
Json Describe(const Option<Owner>& option, Owner& standard) {
  Json json = {{"name", option.name}};
  for (const OptionInfo::Choice& choice : option.choices) json["choices"].push_back(choice.name);
  if (option.required) json["required"] = true;
  if (option.below != nullptr) json["below"] = option.below;
  if (*option.note != 0) json["note"] = option.note;
  if (option.in == nullptr) return json;
  const OptionValue value = option.in(standard);
  if (!option.required) json["default"] = std::visit(ValueJson{option}, value);
  AddBounds(json, option, value);
  return json;
}

Json Describe(const TransformRow& row) {
  Json json = {{"name", row.name}, {"doc", row.doc}, {"parameters", Json::array()}};
  json["can_be_held"] = CanBeHeld(row);
  Transform standard = row.standard;
  for (const Parameter& parameter : row.parameters) {
    Json described = {{"name", parameter.name}, {"kind", parameter.kind}, {"doc", parameter.doc}};
    for (const Option<Transform>& option : parameter.options) {
      described["options"].push_back(Describe(option, standard));
    }
    json["parameters"].push_back(std::move(described));
  }
  return json;
}

Json Describe(const DeviceOptionRow& row) {
  DeviceOptions standard;
  Json json = Describe(row.option, standard);
  json["doc"] = row.doc;
  return json;
}

Json Describe(const LoaderOptionRow& row) {
  LoaderOptions standard;
  Json json = Describe(row.option, standard);
  if (row.option.in == nullptr) json["default"] = false;
  json["doc"] = row.doc;
  json["more"] = row.more;
  json["zero"] = row.zero == nullptr ? Json(nullptr) : Json(row.zero);
  json["of_images"] = row.of_images;
  return json;
}

const char* NameOf(CounterUnit unit) {
  switch (unit) {
    case CounterUnit::kCount:
      return "";
    case CounterUnit::kBytes:
      return "bytes";
    case CounterUnit::kNanoseconds:
      return "seconds";
    case CounterUnit::kShare:
      return "share";
    case CounterUnit::kText:
      return "text";
  }
  return "";
}

Json Describe(const CounterRow& row) {
  const MetricSample& sample = row.sample;
  Json metric =
      sample.metric == nullptr ? Json(nullptr) : Json("stoker_" + std::string(sample.metric));
  return {{"name", row.name},
          {"of_cache", row.part == CounterPart::kCache},
          {"of_device", row.of_device},
          {"unit", NameOf(row.unit)},
          {"metric", std::move(metric)},
          {"doc", row.doc},
          {"more", row.more}};
}

}  // namespace

std::string DescribedAsJson() {
  Json json;
  for (const TransformRow& row : AllTransforms()) json["transforms"].push_back(Describe(row));
  for (const LoaderOptionRow& row : AllLoaderOptions()) json["loader"].push_back(Describe(row));
  for (const DeviceOptionRow& row : AllDeviceOptions()) json["device"].push_back(Describe(row));
  for (const CounterRow& row : AllCounters()) {
    if (*row.name != 0) json["counters"].push_back(Describe(row));
  }
  return json.dump();
}

}  // namespace stoker
