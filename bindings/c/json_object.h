// Reading one JSON object strictly. bindings/c's own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stoker {

// Gives the values of an object's keys, each checked. The first failure is kept, and everything
// after it does nothing: callers read all keys, and then ask Finish.
//
// Keys that are not there leave the value as it was, unless they are required.
class JsonObject {
 public:
  // InvalidArgument where the text is no JSON, or no object. `what`: what messages call it.
  static Result<JsonObject> Parse(std::string_view text, const std::string& what);

  ~JsonObject();
  JsonObject(JsonObject&&) noexcept;

  void Required(const char* key);
  bool Has(const char* key) const;

  // Whole numbers in [low, high].
  template <typename T>
  void Integer(const char* key, T& value, uint64_t low, uint64_t high) {
    if (const std::optional<uint64_t> read = Whole(key, low, high)) value = static_cast<T>(*read);
  }
  void Boolean(const char* key, bool& value);
  void Text(const char* key, std::string& value);
  // One of `names`: its place among them.
  std::optional<size_t> Choice(const char* key, std::span<const char* const> names);
  void Number(const char* key, double& value, double low, double high);
  void Numbers(const char* key, std::span<double> values);  // a list of exactly so many
  void Integers(const char* key, std::span<int> values, int low, int high);  // likewise

  // An object inside this one; empty where there is none.
  JsonObject Object(const char* key);
  // A list of objects.
  std::vector<JsonObject> Objects(const char* key, size_t most);

  // A failure of what was read out of this object.
  void Fail(Status status);
  void FailKey(const char* key, const std::string& what);

  // The first failure; else InvalidArgument where a key was never asked for.
  Status Finish() const;

 private:
  struct State;
  explicit JsonObject(std::unique_ptr<State> state);
  std::optional<uint64_t> Whole(const char* key, uint64_t low, uint64_t high);

  std::unique_ptr<State> state_;
};

}  // namespace stoker
