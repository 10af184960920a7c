// Reads manifests of JSON lines: an object on each line.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/annotations/object_json.h"
#include "io/files/text_file.h"
#include "io/manifest/manifest_roles.h"
#include "io/manifest/manifest_table.h"

namespace stoker {

namespace {

constexpr size_t kMostKeys = 4096;
constexpr char kOrLeaveOut[] = "; or name the wanted columns (columns=[…])";

// Reads the lines that have more than blanks.
class JsonLines {
 public:
  explicit JsonLines(TextFile file) : file_(std::move(file)) {}

  // Replaces `line`, which is valid until the next call; returns false at the end of the file.
  Result<bool> Next(std::string_view& line) {
    for (;;) {
      file_.Skip(std::exchange(taken_, 0));
      position_ = {.line = ++line_, .offset = file_.offset()};
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
    return RefuseText(file_.path(), {position_.line, position_.offset + at}, cause,
                      std::move(advice));
  }

 private:
  TextFile file_;
  TextPosition position_;
  uint64_t line_ = 0;
  size_t taken_ = 0;  // bytes of the last line
};

// A key of the first line, and how its values are used.
struct JsonKey {
  std::string name;
  bool is_path = false;
  bool is_label = false;
  bool is_mask = false;
  std::optional<size_t> column{};  // of the table
  uint64_t line = 0;               // the last line that had it, from 1
};

// Takes lines apart as a parser calls it: first only the keys of the first line, then, once their
// roles are known, values. A function that returns false ends the line, and cause() says why.
class JsonRows {
 public:
  const std::string& cause() const { return cause_; }
  const std::string& advice() const { return advice_; }
  // The byte of the line, from 1, that the parser did not understand; 0 means it understood all.
  size_t at() const { return at_; }
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
    table_.masks = roles.masks;
    for (size_t i = 0; i < roles.values.size(); ++i) {
      JsonKey& key = keys_[roles.values[i]];
      key.is_label = roles.has_label && i == 0;
      key.is_mask = i + roles.masks >= roles.values.size();
      key.column = i;
      table_.columns.emplace_back(roles.fields[i]);
    }
  }

  bool EndLine() {
    ++lines_;
    next_ = 0;
    for (const JsonKey& key : keys_) {
      const bool wanted = key.is_path || key.column;
      if (wanted && key.line != lines_) {
        return Fail("key '" + key.name + "' is missing",
                    std::string("Write the key on each line") + kOrLeaveOut);
      }
    }
    return true;
  }

  ManifestTable TakeTable() { return std::move(table_); }

  // ---- Functions that nlohmann::json::sax_parse calls

  bool null() {
    return Value([this](JsonKey&) { return FailValue("is null", FillIn()); });
  }
  bool binary(nlohmann::json::binary_t& /*bytes*/) { return Fail("this is not JSON"); }
  bool boolean(bool value) {
    return OfColumn(value ? "true" : "false", [&](ValueColumn& column) {
      if (in_vector_) return false;
      return key_->is_label ? column.AddInteger(value ? 1 : 0) : column.AddBoolean(value);
    });
  }
  bool number_integer(int64_t value) {
    return OfColumn("a number", [value](ValueColumn& column) { return column.AddInteger(value); });
  }
  bool number_unsigned(uint64_t value) {
    if (std::in_range<int64_t>(value)) return number_integer(static_cast<int64_t>(value));
    return Value([this](JsonKey&) { return TooLarge(); });
  }
  bool number_float(double value, const std::string& text) {
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    if (whole) return Value([this](JsonKey&) { return TooLarge(); });
    return OfColumn("a number", [value](ValueColumn& column) { return column.AddNumber(value); });
  }
  bool string(const std::string& text) {
    return Value([&](JsonKey& key) {
      if (in_vector_) return FailList();
      if (key.is_path || key.is_mask) {
        if (text.empty()) return FailValue("is an empty path");
        if (text.find('\0') != std::string::npos) return FailValue("is a path with a NUL");
      }
      if (key.is_path) table_.paths.Add(text);
      if (key.is_label && text.empty()) return FailValue("is an empty label");
      return !key.column || table_.columns[*key.column].AddText(text) || Differs("text");
    });
  }
  bool start_object(size_t /*size*/) {
    if (depth_++ == 0) return true;
    return Value([this](JsonKey&) { return FailValue("is an object", AsText()); });
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t /*size*/) {
    if (depth_++ == 0) return NotObject("a list");
    if (in_vector_) return FailList();
    return OfColumn("a list",
                    [this](ValueColumn& column) { return in_vector_ = column.BeginVector(); });
  }
  bool end_array() {
    --depth_;
    if (!std::exchange(in_vector_, false)) return true;
    return table_.columns[*key_->column].EndVector() || OtherLength();
  }
  bool key(const std::string& name) {
    if (depth_ != 1) return true;
    if (!reads_values_) return AddKey(name);
    if (next_ == keys_.size() || keys_[next_].name != name) {
      const auto found = indexes_.find(name);
      next_ = found == indexes_.end() ? keys_.size() : found->second;
    }
    const bool there = next_ < keys_.size();
    key_ = nullptr;
    if (!there) return others_ || Fail(WithName("key", name) + " is not in the first line");
    JsonKey& key = keys_[next_++];
    if (std::exchange(key.line, lines_ + 1) == lines_ + 1) {
      return Fail("key '" + key.name + "' occurs twice");
    }
    if (key.is_path || key.column) key_ = &key;
    return true;
  }
  bool parse_error(size_t at, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    constexpr int kNumberTooLarge = 406;
    if (error.id == kNumberTooLarge) return Fail("a number is too large for float64");
    at_ = std::max<size_t>(at, 1);
    return false;
  }

 private:
  static std::string WithName(const char* what, const std::string& name) {
    return IsColumnName(name) ? what + (" '" + name + "'") : "a " + std::string(what);
  }

  bool AddKey(const std::string& name) {
    if (keys_.size() == kMostKeys) return Fail("more than " + std::to_string(kMostKeys) + " keys");
    if (!indexes_.emplace(name, keys_.size()).second)
      return Fail(WithName("key", name) + " occurs twice");
    keys_.push_back({.name = name});
    return true;
  }

  bool Fail(std::string cause, std::string advice = "") {
    cause_ = std::move(cause);
    advice_ = std::move(advice);
    return false;
  }
  bool NotObject(const std::string& what) {
    return Fail("this line is " + what + ", not an object",
                "Write each sample as a JSON object on one line, {\"path\": …}");
  }

  static std::string FillIn() {
    return std::string("Fill it in, or leave the line out") + kOrLeaveOut;
  }
  static std::string AsText() {
    return std::string("Write it as text, in quotes (json.dumps)") + kOrLeaveOut +
           "; or take boxes and other values of objects (columns={\"boxes\": stoker.Boxes(…)})";
  }
  static std::string AsTextOrPadded() {
    return std::string(
               "Pad the lists to one length, or write them as text, in quotes "
               "(json.dumps)") +
           kOrLeaveOut;
  }

  // Preconditions: the values of the key are wanted.
  bool FailValue(const std::string& what, std::string advice = "") {
    return Fail("key '" + key_->name + "' " + what, std::move(advice));
  }
  bool FailList() { return FailValue("is a list of more than numbers", AsText()); }
  bool Differs(const std::string& what) {
    if (in_vector_) return FailList();
    return FailValue("is " + what + OnLinesBefore(),
                     std::string("Write one type on all lines") + kOrLeaveOut);
  }
  bool OtherLength() {
    const size_t elements = table_.columns[*key_->column].elements();
    if (elements == 0) return FailValue("is an empty list", AsTextOrPadded());
    return FailValue("is a list of " + std::to_string(elements) + OnLinesBefore(),
                     AsTextOrPadded());
  }
  std::string OnLinesBefore() const {
    const ValueColumn& column = table_.columns[*key_->column];
    const bool may_be_bool = key_->is_label && column.type() == ValueColumn::Type::kInteger;
    return "; on the lines before it is " + column.DescribeRow() +
           (may_be_bool ? ", true or false" : "");
  }
  bool TooLarge() {
    return FailValue("is an integer that int64 cannot hold; it can be written as text");
  }

  // Calls `take` with the key, if its values are wanted.
  template <typename F>
  bool Value(F take) {
    if (depth_ == 0) return NotObject("a single value");
    return key_ == nullptr || take(*key_);
  }
  // Does the same for a value that cannot be a path.
  template <typename F>
  bool OfColumn(const char* what, F add) {
    return Value([&](JsonKey& key) {
      if (key.is_path || key.is_mask) {
        return FailValue(std::string("is ") + what + ", not a path");
      }
      return add(table_.columns[*key.column]) || Differs(what);
    });
  }

  std::vector<JsonKey> keys_;  // in the order of the first line
  std::map<std::string, size_t, std::less<>> indexes_;
  bool reads_values_ = false;
  bool others_ = false;
  ManifestTable table_;

  uint64_t lines_ = 0;      // complete ones
  size_t next_ = 0;         // the expected next key: the one that most lines have next
  JsonKey* key_ = nullptr;  // the key whose value comes next; null means its value is not wanted
  int depth_ = 0;           // of objects and lists
  bool in_vector_ = false;
  std::string cause_, advice_;
  size_t at_ = 0;
};

// Returns the number of four hexadecimal digits at the start of a text; nullopt means it has
// others.
std::optional<uint32_t> FourDigits(std::string_view text) {
  uint32_t number = 0;
  const std::string_view four = text.substr(0, 4);
  const auto [end, error] = std::from_chars(four.data(), four.data() + four.size(), number, 16);
  if (error != std::errc() || end - four.data() != 4) return std::nullopt;
  return number;
}

// Finds the first escape that is half of a surrogate pair, which has no other half next to it.
size_t LoneSurrogate(std::string_view line) {
  for (size_t at = line.find('\\'); at < line.size(); at = line.find('\\', at)) {
    const std::string_view rest = line.substr(at);
    const std::optional<uint32_t> unit =
        rest.starts_with("\\u") ? FourDigits(rest.substr(2)) : std::nullopt;
    const bool is_half = unit && (*unit & 0xF800) == 0xD800;
    if (is_half && (*unit & 0xFC00) == 0xD800 && rest.substr(6).starts_with("\\u")) {
      const std::optional<uint32_t> other = FourDigits(rest.substr(8));
      if (other && (*other & 0xFC00) == 0xDC00) {
        at += 12;
        continue;
      }
    }
    if (is_half) return at;
    at += 2;
  }
  return std::string_view::npos;
}

// Returns how many bytes at the start of a text are UTF-8.
size_t ValidUtf8(std::string_view text) {
  size_t valid = 0;
  while (valid < text.size()) {
    const size_t length = Utf8Length(text.substr(valid));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

// Returns the error of a line that has half of a surrogate pair at this byte.
Error HalfOfPair(const JsonLines& lines, std::string_view line, size_t half) {
  const std::string cause =
      "'" + std::string(line.substr(half, 6)) + "' is half of a surrogate pair";
  const bool is_byte = (*FourDigits(line.substr(half + 2)) & 0xFF80) == 0xDC80;  // PEP 383
  if (!is_byte) return lines.Refuse(cause, "Write the whole character, or leave it out", half);
  return lines.Refuse(
      cause + "; Python's json writes bytes of a file name that are not UTF-8 this way",
      "Rename the file to UTF-8, or give its name as bytes to stoker.files", half);
}

// Returns the error of a line whose byte `at` the parser did not understand.
Error NotJson(const JsonLines& lines, std::string_view line, size_t at) {
  if (const size_t half = LoneSurrogate(line); half < at) return HalfOfPair(lines, line, half);
  const size_t word = line.find_last_not_of("-INafinty", at);
  const size_t begin = word == std::string_view::npos ? 0 : word + 1;
  for (const std::string_view number : {"NaN", "Infinity", "-Infinity"}) {
    if (!line.substr(begin).starts_with(number)) continue;
    return lines.Refuse(std::string(number) + " is not JSON, though Python's json writes it",
                        "Write a number in its place, or leave the line out; a .csv manifest may "
                        "have nan and inf",
                        begin);
  }
  if (const size_t wrong = ValidUtf8(line); wrong < line.size()) {
    return lines.Refuse("the line is not UTF-8", "Save the file as UTF-8", wrong);
  }
  constexpr size_t kMostShown = 30;
  std::string_view shown = line.substr(at, kMostShown);
  shown = shown.substr(0, ValidUtf8(shown));
  return lines.Refuse(
      "this is not JSON: " + (shown.empty() ? "the line ends here" : "found " + Printable(shown)),
      "Write each sample as a JSON object on one line, as json.dumps does", at);
}

Status ParseLine(const JsonLines& lines, std::string_view line, JsonRows& rows) {
  const bool good = nlohmann::json::sax_parse(line.begin(), line.end(), &rows);
  if (good) return {};
  if (rows.at() != 0) return NotJson(lines, line, std::min(rows.at() - 1, line.size()));
  return lines.Refuse(rows.cause(), rows.advice());
}

// Reads the objects of a line that is an object of JSON.
Status ReadObjects(const JsonLines& lines, std::string_view line, const std::string& path,
                   ObjectJson& objects) {
  const Status read = objects.Read(TextFile(path, std::string(line)));
  if (read.ok()) return {};
  const Error& error = read.error();
  return lines.Refuse(error.cause, error.advice, error.offset.value_or(0));
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
  rows.Begin(*roles, options.columns.has_value() || !options.keyed.empty());
  std::vector<KeyedColumn> keyed;
  std::ranges::copy_if(options.keyed, std::back_inserter(keyed), &KeyedColumn::is_of_objects);
  Result<ObjectJson> objects = ObjectJson::Make(keyed);
  if (!objects.ok()) return Error(objects.error()).WithFile(path);
  while (more) {
    TRY(ParseLine(lines, line, rows));
    if (!rows.EndLine()) return lines.Refuse(rows.cause(), rows.advice());
    if (!keyed.empty()) TRY(ReadObjects(lines, line, path, *objects));
    ASSIGN_OR_RETURN(more, lines.Next(line));
  }
  ManifestTable table = rows.TakeTable();
  table.objects = std::move(objects->columns());
  return table;
}

}  // namespace stoker
