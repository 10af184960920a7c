// Reads manifests of JSON lines: an object on each line.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "io/annotations/object_json.h"
#include "io/files/json_reader.h"
#include "io/files/text_file.h"
#include "io/manifest/manifest_roles.h"
#include "io/manifest/manifest_table.h"
#include "io/source/source.h"

namespace stoker {

namespace {

constexpr size_t kMostKeys = 4096;
constexpr char kOrLeaveOut[] = "; or name the wanted columns (columns=[…])";
constexpr char kAsDumps[] = "Write each sample as a JSON object on one line, as json.dumps does";

// A key of the first line, and how its values are used.
struct JsonKey {
  std::string name;
  bool is_path = false;
  bool is_label = false;
  bool is_mask = false;
  std::optional<size_t> column{};  // of the table
  uint64_t line = 0;               // the last line that had it, from 1

  bool is_wanted() const { return is_path || column; }
  bool has_paths() const { return is_path || is_mask; }
  std::string shown() const { return "key '" + name + "'"; }
};

Error WrongLine(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

// Reads lines: first only the keys of the first one, then, once their roles are known, values.
// Errors are those of JsonReader; others have no file and no offset.
class JsonRows {
 public:
  using Type = JsonReader::Type;

  explicit JsonRows(const JsonWords& words) : words_(words) {}

  uint64_t lines() const { return lines_; }  // with the one that is being read
  ManifestTable TakeTable() { return std::move(table_); }

  Status ReadKeys(TextFile line, const ManifestOptions& options) {
    JsonReader reader(std::move(line), words_);
    std::vector<std::string> names;
    TRY(CheckLine(reader));
    TRY(reader.ForEachMember([&]() -> Status {
      const std::string& name = reader.key();
      if (keys_.size() == kMostKeys) {
        return WrongLine("more than " + std::to_string(kMostKeys) + " keys");
      }
      if (!indexes_.emplace(name, keys_.size()).second) {
        return WrongLine(WithName("key", name) + " occurs twice");
      }
      keys_.push_back({.name = name});
      names.push_back(name);
      return reader.Skip();
    }));
    TRY(reader.End());
    ASSIGN_OR_RETURN(const ManifestRoles roles, FindRoles(names, options));
    others_ = options.columns.has_value() || !options.keyed.empty();
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
    return {};
  }

  Status ReadRow(TextFile line) {
    JsonReader reader(std::move(line), words_);
    TRY(CheckLine(reader));
    ++lines_;
    next_ = 0;
    TRY(reader.ForEachMember([&] { return ReadMember(reader); }));
    TRY(reader.End());
    for (const JsonKey& key : keys_) {
      if (!key.is_wanted() || key.line == lines_) continue;
      return WrongLine(key.shown() + " is missing",
                       std::string("Write the key on each line") + kOrLeaveOut);
    }
    return {};
  }

 private:
  static std::string WithName(const char* what, const std::string& name) {
    return IsColumnName(name) ? what + (" '" + name + "'") : "a " + std::string(what);
  }
  static Status CheckLine(JsonReader& reader) {
    ASSIGN_OR_RETURN(const Type type, reader.Peek());
    if (type == Type::kObject) return {};
    return WrongLine(std::string("this line is ") +
                         (type == Type::kList ? "a list" : "a single value") + ", not an object",
                     "Write each sample as a JSON object on one line, {\"path\": …}");
  }
  static std::string AsText() {
    return std::string("Write it as text, in quotes (json.dumps)") + kOrLeaveOut +
           "; or take boxes and other values of objects (columns={\"boxes\": stoker.Boxes(…)})";
  }

  Status ReadMember(JsonReader& reader) {
    const std::string& name = reader.key();
    if (next_ == keys_.size() || keys_[next_].name != name) {
      const auto found = indexes_.find(name);
      if (found == indexes_.end()) {
        return others_ ? reader.Skip()
                       : WrongLine(WithName("key", name) + " is not in the first line");
      }
      next_ = found->second;
    }
    JsonKey& key = keys_[next_++];
    if (std::exchange(key.line, lines_) == lines_) {
      return WrongLine(key.shown() + " occurs twice");
    }
    return key.is_wanted() ? ReadValue(reader, key) : reader.Skip();
  }

  Status ReadValue(JsonReader& reader, const JsonKey& key) {
    ASSIGN_OR_RETURN(const Type type, reader.Peek());
    switch (type) {
      case Type::kNull:
        return Refuse(key, "is null",
                      std::string("Fill it in, or leave the line out") +
                          (key.is_path ? "; without images, write [] here and lists of paths on "
                                         "all lines"
                                       : kOrLeaveOut));
      case Type::kObject:
        return Refuse(key, "is an object", AsText());
      case Type::kString:
        return ReadText(reader, key);
      case Type::kList:
        if (key.is_path) return ReadPaths(reader, key);
        return key.is_mask ? NotPath(key, "a list") : ReadList(reader, key);
      case Type::kBool: {
        ASSIGN_OR_RETURN(const bool value, reader.Bool(""));
        const char* const shown = value ? "true" : "false";
        if (key.has_paths()) return NotPath(key, shown);
        ValueColumn& column = ColumnOf(key);
        const bool fits =
            key.is_label ? column.AddInteger(value ? 1 : 0) : column.AddBoolean(value);
        return fits ? Status() : Differs(key, shown);
      }
      case Type::kNumber:
        break;
    }
    if (key.has_paths()) return NotPath(key, "a number");
    ASSIGN_OR_RETURN(const bool fits, ReadNumber(reader, key));
    return fits ? Status() : Differs(key, "a number");
  }

  Status ReadText(JsonReader& reader, const JsonKey& key) {
    if (key.is_path && !table_.ends.empty()) return Differs(key, "a path", "a list of paths");
    TRY(reader.String("", text_));
    if (key.has_paths()) TRY(CheckPath(key));
    if (key.is_path) table_.paths.Add(text_);
    if (key.is_label && text_.empty()) return Refuse(key, "is an empty label");
    if (!key.column || ColumnOf(key).AddText(text_)) return {};
    return Differs(key, "text");
  }

  Status CheckPath(const JsonKey& key) {
    if (text_.empty()) return Refuse(key, "is an empty path");
    if (text_.find('\0') != std::string::npos) return Refuse(key, "is a path with a NUL");
    return {};
  }

  // Reads the paths of a sample that may have any number of images.
  Status ReadPaths(JsonReader& reader, const JsonKey& key) {
    if (table_.ends.size() + 1 != lines_) return Differs(key, "a list", "a path");
    const uint64_t begin = table_.paths.size();
    TRY(reader.ForEachValue([&]() -> Status {
      ASSIGN_OR_RETURN(const Type type, reader.Peek());
      if (type != Type::kString) return Refuse(key, "has something other than paths");
      if (table_.paths.size() - begin == kMostPieces) {
        return Refuse(key, "has more than " + std::to_string(kMostPieces) + " paths",
                      "Make samples of fewer images");
      }
      TRY(reader.String("", text_));
      TRY(CheckPath(key));
      table_.paths.Add(text_);
      return {};
    }));
    table_.ends.push_back(table_.paths.size());
    return {};
  }

  Status ReadList(JsonReader& reader, const JsonKey& key) {
    ValueColumn& column = ColumnOf(key);
    if (!column.BeginVector()) return Differs(key, "a list");
    TRY(reader.ForEachValue([&]() -> Status {
      ASSIGN_OR_RETURN(const Type type, reader.Peek());
      if (type != Type::kNumber) return Refuse(key, "is a list of more than numbers", AsText());
      TRY(ReadNumber(reader, key));
      return {};
    }));
    if (column.EndVector()) return {};
    const std::string found =
        column.elements() == 0
            ? "is an empty list"
            : "is a list of " + std::to_string(column.elements()) + OnLinesBefore(key);
    return Refuse(key, found,
                  std::string("Pad the lists to one length, or write them as text, in quotes "
                              "(json.dumps)") +
                      kOrLeaveOut);
  }

  // Returns whether the number fits the column.
  Result<bool> ReadNumber(JsonReader& reader, const JsonKey& key) {
    ASSIGN_OR_RETURN(const bool is_integer, reader.IsInteger());
    if (is_integer) {
      Result<int64_t> value = reader.Integer(key.shown().c_str());
      if (value.ok()) return ColumnOf(key).AddInteger(*value);
      Error error = value.error();
      if (error.advice.empty())
        error.advice = std::string("Write it as text, in quotes") + kOrLeaveOut;
      return error;
    }
    ASSIGN_OR_RETURN(const double value, reader.Number(key.shown().c_str()));
    return ColumnOf(key).AddNumber(value);
  }

  ValueColumn& ColumnOf(const JsonKey& key) { return table_.columns[*key.column]; }

  static Error Refuse(const JsonKey& key, const std::string& what, std::string advice = "") {
    return WrongLine(key.shown() + " " + what, std::move(advice));
  }
  static Error NotPath(const JsonKey& key, const std::string& what) {
    return Refuse(key, "is " + what + ", not a path");
  }
  Error Differs(const JsonKey& key, const std::string& what) {
    return Refuse(key, "is " + what + OnLinesBefore(key),
                  std::string("Write one type on all lines") + kOrLeaveOut);
  }
  static Error Differs(const JsonKey& key, const std::string& what, const std::string& before) {
    return Refuse(key, "is " + what + "; on the lines before it is " + before,
                  "Write a list of paths on all lines, [] without images");
  }
  std::string OnLinesBefore(const JsonKey& key) {
    const ValueColumn& column = ColumnOf(key);
    const bool may_be_bool = key.is_label && column.type() == ValueColumn::Type::kInteger;
    return "; on the lines before it is " + column.DescribeRow() +
           (may_be_bool ? ", true or false" : "");
  }

  JsonWords words_;
  std::vector<JsonKey> keys_;  // in the order of the first line
  std::map<std::string, size_t, std::less<>> indexes_;
  bool others_ = false;  // whether lines may have keys that the first one lacks
  ManifestTable table_;
  uint64_t lines_ = 0;
  size_t next_ = 0;  // the expected next key: the one that most lines have next
  std::string text_;
};

}  // namespace

Result<ManifestTable> ReadJsonManifest(const std::string& path, const ManifestOptions& options) {
  std::vector<KeyedColumn> keyed;
  std::ranges::copy_if(options.keyed, std::back_inserter(keyed), &KeyedColumn::is_of_objects);
  Result<ObjectJson> objects = ObjectJson::Make(keyed);
  if (!objects.ok()) return Error(objects.error()).WithFile(path);
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  // A .csv manifest has no objects.
  const JsonWords words{
      .truncated = "this is not JSON: the line ends here",
      .write_again = kAsDumps,
      .write_json = kAsDumps,
      .write_number = keyed.empty() ? "Write a number, or leave the line out; a .csv manifest may "
                                      "have nan and inf"
                                    : "Write a number, or leave the line out"};
  JsonRows rows(words);
  TRY(file.ForEachLine([&](const TextPosition& position, std::string_view line) -> Status {
    if (line.empty()) return {};
    const auto text = [&] { return TextFile(path, std::string(line)); };
    Status read;
    if (rows.lines() == 0) read = rows.ReadKeys(text(), options);
    if (read.ok()) read = rows.ReadRow(text());
    if (read.ok() && !keyed.empty()) read = objects->Read(text(), words);
    if (read.ok()) return {};
    const Error& error = read.error();
    return RefuseText(path, {position.line, position.offset + error.offset.value_or(0)},
                      error.cause, error.advice);
  }));
  if (rows.lines() == 0) {
    return RefuseText(path, {}, "the file is empty", "Each line is a JSON object");
  }
  ManifestTable table = rows.TakeTable();
  table.objects = std::move(objects->columns());
  return table;
}

}  // namespace stoker
