// JsonObject: reads a JSON object strictly. Private to bindings/c.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// Reads the values of an object's keys, and checks each. The first failure is kept, and all later
// calls do nothing: callers read all keys, and then call CheckAllRead.
//
// Missing keys leave the value unchanged, unless they are required.
class JsonObject {
 public:
  // InvalidArgument if the text is not JSON, not an object, too deep, or has a key twice. `what`:
  // its name in messages.
  static Result<JsonObject> Parse(std::string_view text, const std::string& what);

  ~JsonObject();
  JsonObject(JsonObject&&) noexcept;

  // Adds the keys of another object, whose values replace those that are there. Call before
  // reading.
  void Replace(const JsonObject& others);

  void RequireKey(const char* key);
  bool Has(const char* key) const;
  bool IsNull(const char* key);  // reads null; returns false if the key is missing, or has a value
  bool IsObject(const char* key) const;

  // Integers in [low, high].
  template <typename T>
  void Integer(const char* key, T& value, uint64_t low, uint64_t high) {
    if (const std::optional<uint64_t> read = Whole(key, low, high)) value = static_cast<T>(*read);
  }
  void Boolean(const char* key, bool& value);
  void Text(const char* key, std::string& value);
  void TextOrWhole(const char* key, std::string& value);  // 5 is read as "5"
  // Reads one of `names`; returns its index.
  std::optional<size_t> Choice(const char* key, std::span<const char* const> names);
  void Number(const char* key, double& value, double low, double high);
  void Numbers(const char* key, std::span<double> values);  // a list of exactly values.size()
  void Numbers(const char* key, std::vector<double>& values, size_t most);   // of any length
  void Integers(const char* key, std::span<int> values, int low, int high);  // likewise
  void Integers(const char* key, std::vector<int>& values, int low, int high, size_t most);

  // Reads a list of at most `most` pairs.
  void IntegerPairs(const char* key, std::vector<std::array<int, 2>>& pairs, int low, int high,
                    size_t most);

  // Returns a nested object, which is empty if the key is missing.
  JsonObject Object(const char* key);
  // Returns a list of objects, at most `most`.
  std::vector<JsonObject> Objects(const char* key, size_t most);

  // Records an error about a value that was read from this object.
  void Fail(Status status);
  void FailKey(const char* key, const std::string& what);

  // Returns the first failure, or InvalidArgument if a key was never read.
  Status CheckAllRead() const;

 private:
  struct State;
  explicit JsonObject(std::unique_ptr<State> state);
  std::optional<uint64_t> Whole(const char* key, uint64_t low, uint64_t high);

  std::unique_ptr<State> state_;
};

}  // namespace stoker
