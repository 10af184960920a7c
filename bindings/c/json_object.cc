#include "bindings/c/json_object.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace stoker {

namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 24;  // the loader spec needs 20: two for each level of transforms

// Returns a value for messages: one line of printable ASCII, truncated.
std::string DisplayText(const Json& value) {
  constexpr size_t kMax = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMax) text.replace(kMax, std::string::npos, "…");
  return text;
}

// Returns what a value must be. A message stays short enough to read.
std::string Listed(std::span<const char* const> names) {
  constexpr size_t kMost = 20;
  if (names.size() > kMost) {
    return "one of the " + std::to_string(names.size()) + " names in docs/loader-spec.md";
  }
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  }
  return all;
}

}  // namespace

struct JsonObject::State {
  Json value = Json::object();
  std::string path;                // "transforms[2]"; empty for the outermost object
  std::vector<std::string> known;  // keys that have been read
  Status status;

  std::string PathOf(const std::string& key) const { return path.empty() ? key : path + "." + key; }

  void Fail(const char* key, const std::string& what) {
    if (status.ok()) status = Error{Code::kInvalidArgument, PathOf(key) + " " + what};
  }

  // Returns the key's value; null if it is missing, or if reading has failed before.
  const Json* Find(const char* key) {
    known.emplace_back(key);
    if (!status.ok()) return nullptr;
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }

  std::optional<double> Finite(const Json& number) const {
    if (!number.is_number() || !std::isfinite(number.get<double>())) return {};
    return number.get<double>();
  }

  // Reads a list of values.size() integers.
  void ReadIntegers(const char* key, const Json& list, std::span<int> values, int low, int high) {
    const std::string must = "; it must be a list of " + std::to_string(values.size()) +
                             " integers from " + std::to_string(low) + " to " +
                             std::to_string(high);
    if (!list.is_array() || list.size() != values.size()) {
      return Fail(key, "is " + DisplayText(list) + must);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Json& element = list[i];
      const bool fits = element.is_number_unsigned()
                            ? element.get<uint64_t>() <= static_cast<uint64_t>(high)
                            : element.is_number_integer() && element.get<int64_t>() <= high;
      if (!fits || element.get<int64_t>() < low) {
        return Fail(key, "holds " + DisplayText(element) + must);
      }
      values[i] = element.get<int>();
    }
  }

  // Returns the list of a key; null if it is missing, or longer than `most`, which fails.
  const Json* ListOf(const char* key, size_t most, const char* elements) {
    const Json* list = Find(key);
    if (list == nullptr || (list->is_array() && list->size() <= most)) return list;
    Fail(key, "is " + DisplayText(*list) + "; it must be a list of at most " +
                  std::to_string(most) + " " + elements);
    return nullptr;
  }

  // Reads the elements of a list of values.size() numbers.
  void ReadNumbers(const char* key, const Json& list, std::span<double> values,
                   const std::string& must) {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::optional<double> number = Finite(list[i]);
      if (!number) return Fail(key, "holds " + DisplayText(list[i]) + "; it must be " + must);
      values[i] = *number;
    }
  }
};

JsonObject::JsonObject(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonObject::~JsonObject() = default;
JsonObject::JsonObject(JsonObject&&) noexcept = default;

Result<JsonObject> JsonObject::Parse(std::string_view text, const std::string& what) {
  auto state = std::make_unique<State>();
  bool too_deep = false;
  std::array<std::set<std::string>, kDeepest + 2> keys;  // of the open object of each depth
  std::optional<std::string> twice;
  // Copying and comparing values is recursive; parsing is not.
  const auto shallow = [&](int depth, Json::parse_event_t event, const Json& key) {
    too_deep = too_deep || depth > kDeepest;
    if (too_deep) return false;
    const auto level = static_cast<size_t>(depth);
    if (event == Json::parse_event_t::object_start) keys[level + 1].clear();
    if (event == Json::parse_event_t::key && !keys[level].insert(key.get<std::string>()).second) {
      twice = DisplayText(key);
    }
    return true;
  };
  try {
    state->value = Json::parse(text.begin(), text.end(), shallow);
  } catch (const Json::parse_error& error) {
    return Error{Code::kInvalidArgument,
                 what + " is not JSON: byte " + std::to_string(error.byte) + " is wrong"};
  } catch (const Json::exception&) {  // a number such as 1e999
    return Error{Code::kInvalidArgument, what + " has a number that is too large"};
  }
  if (too_deep) {
    return Error{Code::kInvalidArgument, what + " has lists or objects more than " +
                                             std::to_string(kDeepest) + " levels deep"};
  }
  if (twice) return Error{Code::kInvalidArgument, what + " has the key " + *twice + " twice"};
  if (!state->value.is_object()) {
    return Error{Code::kInvalidArgument,
                 what + " is " + DisplayText(state->value) + "; it must be an object"};
  }
  return JsonObject(std::move(state));
}

void JsonObject::Replace(const JsonObject& others) { state_->value.update(others.state_->value); }

bool JsonObject::Has(const char* key) const { return state_->value.contains(key); }

bool JsonObject::IsNull(const char* key) {
  const Json* read = state_->Find(key);
  return read != nullptr && read->is_null();
}

bool JsonObject::IsObject(const char* key) const {
  const auto found = state_->value.find(key);
  return found != state_->value.end() && found->is_object();
}

void JsonObject::RequireKey(const char* key) {
  if (!Has(key)) state_->Fail(key, "is missing");
}

std::optional<uint64_t> JsonObject::Whole(const char* key, uint64_t low, uint64_t high) {
  const Json* value = state_->Find(key);
  if (value == nullptr) return {};
  if (value->is_number_unsigned()) {
    const auto number = value->get<uint64_t>();
    if (number >= low && number <= high) return number;
  }
  state_->Fail(key, "is " + DisplayText(*value) + "; it must be a whole number from " +
                        std::to_string(low) + " to " + std::to_string(high));
  return {};
}

void JsonObject::Boolean(const char* key, bool& value) {
  const Json* read = state_->Find(key);
  if (read == nullptr) return;
  if (read->is_boolean()) {
    value = read->get<bool>();
  } else {
    state_->Fail(key, "is " + DisplayText(*read) + "; it must be true or false");
  }
}

void JsonObject::Text(const char* key, std::string& value) {
  const Json* read = state_->Find(key);
  if (read == nullptr) return;
  if (!read->is_string())
    return state_->Fail(key, "is " + DisplayText(*read) + "; it must be a string");
  const auto& text = read->get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) return state_->Fail(key, "has a NUL in it");
  value = text;
}

void JsonObject::TextOrWhole(const char* key, std::string& value) {
  const Json* read = state_->Find(key);
  if (read == nullptr || !read->is_number_unsigned()) return Text(key, value);
  value = read->dump();
}

std::optional<size_t> JsonObject::Choice(const char* key, std::span<const char* const> names) {
  const Json* read = state_->Find(key);
  if (read == nullptr) return {};
  for (size_t i = 0; i < names.size(); ++i) {
    if (read->is_string() && read->get_ref<const std::string&>() == names[i]) return i;
  }
  state_->Fail(key, "is " + DisplayText(*read) + "; it must be " + Listed(names));
  return {};
}

void JsonObject::Number(const char* key, double& value, double low, double high) {
  const Json* read = state_->Find(key);
  if (read == nullptr) return;
  const std::optional<double> number = state_->Finite(*read);
  if (!number || *number < low || *number > high) {
    return state_->Fail(key, "is " + DisplayText(*read) + "; it must be a number from " +
                                 Json(low).dump() + " to " + Json(high).dump());
  }
  value = *number;
}

void JsonObject::Numbers(const char* key, std::span<double> values) {
  const Json* read = state_->Find(key);
  if (read == nullptr) return;
  const std::string must = "a list of " + std::to_string(values.size()) + " numbers";
  if (!read->is_array() || read->size() != values.size()) {
    return state_->Fail(key, "is " + DisplayText(*read) + "; it must be " + must);
  }
  state_->ReadNumbers(key, *read, values, must);
}

void JsonObject::Numbers(const char* key, std::vector<double>& values, size_t most) {
  const Json* read = state_->ListOf(key, most, "numbers");
  if (read == nullptr) return;
  values.resize(read->size());
  state_->ReadNumbers(key, *read, values, "a list of at most " + std::to_string(most) + " numbers");
}

void JsonObject::Integers(const char* key, std::span<int> values, int low, int high) {
  const Json* read = state_->Find(key);
  if (read != nullptr) state_->ReadIntegers(key, *read, values, low, high);
}

void JsonObject::IntegerPairs(const char* key, std::vector<std::array<int, 2>>& pairs, int low,
                              int high, size_t most) {
  const Json* read = state_->ListOf(key, most, "pairs of integers");
  if (read == nullptr) return;
  pairs.resize(read->size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    state_->ReadIntegers(key, (*read)[i], pairs[i], low, high);
  }
}

void JsonObject::Integers(const char* key, std::vector<int>& values, int low, int high,
                          size_t most) {
  const Json* read = state_->ListOf(key, most, "integers");
  if (read == nullptr) return;
  values.resize(read->size());
  Integers(key, std::span(values), low, high);
}

JsonObject JsonObject::Object(const char* key) {
  auto inner = std::make_unique<State>();
  inner->path = state_->PathOf(key);
  if (const Json* read = state_->Find(key); read != nullptr) {
    if (read->is_object()) {
      inner->value = *read;
    } else {
      state_->Fail(key, "is " + DisplayText(*read) + "; it must be an object");
    }
  }
  return JsonObject(std::move(inner));
}

std::vector<JsonObject> JsonObject::Objects(const char* key, size_t most) {
  std::vector<JsonObject> objects;
  const Json* read = state_->ListOf(key, most, "objects");
  if (read == nullptr) return objects;
  for (size_t i = 0; i < read->size(); ++i) {
    const Json& element = (*read)[i];
    auto inner = std::make_unique<State>();
    inner->path = state_->PathOf(key) + "[" + std::to_string(i) + "]";
    if (!element.is_object()) {
      state_->status = Error{Code::kInvalidArgument, inner->path + " is " + DisplayText(element) +
                                                         "; it must be an object"};
      return objects;
    }
    inner->value = element;
    objects.push_back(JsonObject(std::move(inner)));
  }
  return objects;
}

void JsonObject::Fail(Status status) {
  if (state_->status.ok()) state_->status = std::move(status);
}

void JsonObject::FailKey(const char* key, const std::string& what) { state_->Fail(key, what); }

Status JsonObject::CheckAllRead() const {
  if (!state_->status.ok()) return state_->status;
  for (const auto& [key, unused] : state_->value.items()) {
    if (std::find(state_->known.begin(), state_->known.end(), key) != state_->known.end()) continue;
    const std::string where = state_->path.empty() ? "" : " in " + state_->path;
    return Error{Code::kInvalidArgument, DisplayText(Json(key)) + where + " is not a known key"};
  }
  return {};
}

}  // namespace stoker
