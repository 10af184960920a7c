// Reads manifests of JSON lines: an object on each line.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/try.h"
#include "io/sources/manifest_roles.h"
#include "io/sources/manifest_table.h"
#include "io/sources/text_file.h"

namespace stoker {

namespace {

constexpr size_t kMostKeys = 4096;

// Reads the lines that have more than blanks.
class JsonLines {
 public:
  explicit JsonLines(TextFile file) : file_(std::move(file)) {}

  // Replaces `line`, which is valid until the next call; returns false at the end of the file.
  Result<bool> Next(std::string_view& line) {
    for (;;) {
      file_.Skip(std::exchange(taken_, 0));
      place_ = {.line = ++line_, .offset = file_.offset()};
      size_t end = file_.bytes().find('\n');
      for (bool more = true; more && end == std::string_view::npos;) {
        const size_t before = file_.bytes().size();
        ASSIGN_OR_RETURN(more, file_.Grow());
        end = file_.bytes().find('\n', before);
      }
      line = file_.bytes().substr(0, end);
      taken_ = line.size() + (end == std::string_view::npos ? 0 : 1);
      if (taken_ == 0) return false;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) return true;
    }
  }

  // Returns an error in the present line; `at`: its byte in the line.
  Error Refuse(const std::string& cause, std::string advice = "", size_t at = 0) const {
    return RefuseText(file_.path(), {place_.line, place_.offset + at}, cause, std::move(advice));
  }

 private:
  TextFile file_;
  TextPlace place_;
  uint64_t line_ = 0;
  size_t taken_ = 0;  // bytes of the last line
};

// A key of the first line, and how its values are used.
struct JsonKey {
  std::string name;
  bool is_path = false;
  bool is_label = false;
  std::optional<size_t> column{};  // of the table
  uint64_t line = 0;               // the last line that had it, from 1
};

// Takes lines apart as a parser calls it: first only the keys of the first line, then, once their
// roles are known, values. A function that returns false ends the line, and cause() says why.
class JsonRows {
 public:
  const std::string& cause() const { return cause_; }
  size_t at() const { return at_; }  // the byte of the line that the parser did not understand
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    names.reserve(keys_.size());
    for (const JsonKey& key : keys_) names.push_back(key.name);
    return names;
  }

  // `others`: whether lines may have keys that the first one lacks.
  void Begin(const ManifestRoles& roles, bool others) {
    others_ = others;
    reads_values_ = true;
    keys_[roles.path].is_path = true;
    table_.has_label = roles.has_label;
    for (size_t i = 0; i < roles.values.size(); ++i) {
      JsonKey& key = keys_[roles.values[i]];
      key.is_label = roles.has_label && i == 0;
      key.column = i;
      table_.columns.emplace_back(key.is_label ? "label" : key.name);
    }
  }

  bool EndLine() {
    ++lines_;
    next_ = 0;
    for (const JsonKey& key : keys_) {
      const bool wanted = key.is_path || key.column;
      if (wanted && key.line != lines_) return Fail("key '" + key.name + "' is missing");
    }
    return true;
  }

  ManifestTable TakeTable() { return std::move(table_); }

  // ---- Functions that nlohmann::json::sax_parse calls

  bool null() {
    return Value([this](JsonKey&) { return FailValue("is null"); });
  }
  bool binary(nlohmann::json::binary_t& /*bytes*/) { return Fail("is not JSON"); }
  bool boolean(bool value) {
    return OfColumn([value](ValueColumn& column) { return column.AddBoolean(value); });
  }
  bool number_integer(int64_t value) {
    return OfColumn([value](ValueColumn& column) { return column.AddInteger(value); });
  }
  bool number_unsigned(uint64_t value) {
    if (std::in_range<int64_t>(value)) return number_integer(static_cast<int64_t>(value));
    return Value([this](JsonKey&) { return TooLarge(); });
  }
  bool number_float(double value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    if (whole) return Value([this](JsonKey&) { return TooLarge(); });
    return OfColumn([value](ValueColumn& column) { return column.AddNumber(value); });
  }
  bool string(const std::string& text) {
    return Value([&](JsonKey& key) {
      if (in_vector_) return FailValue("is a list of more than numbers");
      if (key.is_path) {
        if (text.empty()) return FailValue("is an empty path");
        if (text.find('\0') != std::string::npos) return FailValue("is a path with a NUL");
        table_.paths.Add(text);
      }
      if (key.is_label && text.empty()) return FailValue("is an empty label");
      return !key.column || table_.columns[*key.column].AddText(text) || Differs();
    });
  }
  bool start_object(size_t /*size*/) {
    if (depth_++ == 0) return true;
    return Value([this](JsonKey&) { return FailValue("is an object"); });
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t /*size*/) {
    if (depth_++ == 0) return Fail("is not an object");
    if (in_vector_) return FailValue("is a list of more than numbers");
    return OfColumn([this](ValueColumn& column) { return in_vector_ = column.BeginVector(); });
  }
  bool end_array() {
    --depth_;
    if (!std::exchange(in_vector_, false)) return true;
    return table_.columns[*key_->column].EndVector() || Differs();
  }
  bool key(const std::string& name) {
    if (depth_ != 1) return true;
    if (!reads_values_) return AddKey(name);
    if (next_ == keys_.size() || keys_[next_].name != name) {
      const auto found = places_.find(name);
      next_ = found == places_.end() ? keys_.size() : found->second;
    }
    const bool there = next_ < keys_.size();
    key_ = nullptr;
    if (!there) return others_ || Fail(Named("key", name) + " is not in the first line");
    JsonKey& key = keys_[next_++];
    if (std::exchange(key.line, lines_ + 1) == lines_ + 1) {
      return Fail("key '" + key.name + "' is there twice");
    }
    if (key.is_path || key.column) key_ = &key;
    return true;
  }
  bool parse_error(size_t at, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    constexpr int kNumberTooLarge = 406;
    at_ = at;
    return Fail(error.id == kNumberTooLarge ? "a number is too large for float64"
                                            : "this is not JSON");
  }

 private:
  static std::string Named(const char* what, const std::string& name) {
    return IsColumnName(name) ? what + (" '" + name + "'") : "a " + std::string(what);
  }

  bool AddKey(const std::string& name) {
    if (keys_.size() == kMostKeys) return Fail("more than " + std::to_string(kMostKeys) + " keys");
    if (!places_.emplace(name, keys_.size()).second)
      return Fail(Named("key", name) + " is there twice");
    keys_.push_back({.name = name});
    return true;
  }

  bool Fail(std::string cause) {
    cause_ = std::move(cause);
    return false;
  }
  // Precondition: the values of the key are wanted.
  bool FailValue(const char* what) { return Fail("key '" + key_->name + "' " + what); }
  bool Differs() {
    return FailValue("is of another type or length than on the lines before, or empty");
  }
  bool TooLarge() {
    return FailValue("is an integer that int64 cannot hold; it can be written as text");
  }

  // Calls `take` with the key, if its values are wanted.
  template <typename F>
  bool Value(F take) {
    if (depth_ == 0) return Fail("is not an object");
    return key_ == nullptr || take(*key_);
  }
  // Does the same for a value that cannot be a path.
  template <typename F>
  bool OfColumn(F add) {
    return Value([&](JsonKey& key) {
      if (key.is_path) return FailValue("is not a path");
      return add(table_.columns[*key.column]) || Differs();
    });
  }

  std::vector<JsonKey> keys_;  // in the order of the first line
  std::map<std::string, size_t, std::less<>> places_;
  bool reads_values_ = false;
  bool others_ = false;
  ManifestTable table_;

  uint64_t lines_ = 0;      // complete ones
  size_t next_ = 0;         // the expected next key: the one that most lines have next
  JsonKey* key_ = nullptr;  // the key whose value comes next; null: its value is not wanted
  int depth_ = 0;           // of objects and lists
  bool in_vector_ = false;
  std::string cause_;
  size_t at_ = 0;
};

Status ParseLine(const JsonLines& lines, std::string_view line, JsonRows& rows) {
  const bool good = nlohmann::json::sax_parse(line.begin(), line.end(), &rows);
  if (good) return {};
  const size_t at = rows.at() == 0 ? 0 : std::min(rows.at() - 1, line.size());
  return lines.Refuse(rows.cause(), "", at);
}

}  // namespace

Result<ManifestTable> ReadJsonManifest(const std::string& path, const ManifestOptions& options) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  JsonLines lines(std::move(file));
  JsonRows rows;
  std::string_view line;
  ASSIGN_OR_RETURN(bool more, lines.Next(line));
  if (!more) return lines.Refuse("the file is empty", "Each line is a JSON object");
  TRY(ParseLine(lines, line, rows));
  Result<ManifestRoles> roles = FindRoles(rows.names(), options);
  if (!roles.ok()) return lines.Refuse(roles.error().cause, roles.error().advice);
  rows.Begin(*roles, options.columns.has_value());
  while (more) {
    TRY(ParseLine(lines, line, rows));
    if (!rows.EndLine()) return lines.Refuse(rows.cause());
    ASSIGN_OR_RETURN(more, lines.Next(line));
  }
  return rows.TakeTable();
}

}  // namespace stoker
