#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/manifest/csv_reader.h"
#include "io/manifest/manifest_roles.h"
#include "io/manifest/manifest_table.h"

namespace stoker {

namespace {

// Reads the file from front to back, once.
class CsvManifest {
 public:
  explicit CsvManifest(CsvReader reader) : reader_(std::move(reader)) {}

  // `texts`: the indices of columns that are known to be text; empty when the file is read for the
  // first time.
  Result<ManifestTable> Read(const ManifestOptions& options, const std::vector<size_t>& texts) {
    TRY(ReadHeader(options));
    for (const size_t column : texts) {
      if (column < table_.columns.size()) table_.columns[column].BeText();
    }
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, reader_.Next(fields_));
      if (!more) break;
      TRY(AddRow());
    }
    if (table_.paths.size() == 0) return reader_.Refuse("the file ends without a row");
    TRY(CheckEmpty());
    return std::move(table_);
  }

 private:
  Status ReadHeader(const ManifestOptions& options) {
    ASSIGN_OR_RETURN(const bool there, reader_.Next(fields_));
    if (!there) return reader_.Refuse("the file is empty", "Its first line names the columns");
    names_.assign(fields_.begin(), fields_.end());
    Result<ManifestRoles> roles = FindRoles(names_, options);
    if (!roles.ok()) return reader_.Refuse(roles.error().cause, roles.error().advice);
    roles_ = *std::move(roles);
    table_.has_label = roles_.has_label;
    table_.masks = roles_.masks;
    for (const std::string& field : roles_.fields) table_.columns.emplace_back(field);
    for (size_t i = 0; i < table_.masks; ++i) table_.columns[FirstMask() + i].BeText();
    return {};
  }

  size_t FirstMask() const { return table_.columns.size() - table_.masks; }

  Status AddRow() {
    if (fields_.size() != names_.size()) {
      return reader_.Refuse(
          std::to_string(fields_.size()) + Plural(fields_.size(), " field", " fields") + " for " +
              std::to_string(names_.size()) + Plural(names_.size(), " column", " columns"),
          fields_.size() > names_.size() ? "Put fields that contain the delimiter into quotes"
                                         : "Write a field for each column, which may be empty");
    }
    const std::string_view path = fields_[roles_.path];
    if (path.empty()) {
      return reader_.Refuse("no path in column '" + names_[roles_.path] + "'",
                            "Fill it in, or leave the row out");
    }
    table_.paths.Add(path);
    for (size_t i = 0; i < roles_.values.size(); ++i) {
      table_.columns[i].AddField(fields_[roles_.values[i]], reader_.position());
    }
    return {};
  }

  // Refuses empty fields, except of text; a label and a mask may not be empty, either.
  Status CheckEmpty() const {
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      const ValueColumn& column = table_.columns[i];
      const bool may_be = column.type() == ValueColumn::Type::kText &&
                          !(i == 0 && table_.has_label) && i < FirstMask();
      if (!column.first_empty() || may_be) continue;
      return RefuseText(reader_.path(), *column.first_empty(),
                        "no value in column '" + names_[roles_.values[i]] + "'",
                        "Fill it in, or leave the row or the column out");
    }
    return {};
  }

  CsvReader reader_;
  std::vector<std::string_view> fields_;  // of the record
  std::vector<std::string> names_;
  ManifestRoles roles_;
  ManifestTable table_;
};

Result<ManifestTable> ReadCsvOnce(const std::string& path, char delimiter,
                                  const ManifestOptions& options,
                                  const std::vector<size_t>& texts) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  return CsvManifest(CsvReader(std::move(file), delimiter)).Read(options, texts);
}

std::vector<size_t> LostTexts(const ManifestTable& table) {
  std::vector<size_t> lost;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].lost_text()) lost.push_back(i);
  }
  return lost;
}

}  // namespace

Result<ManifestTable> ReadCsvManifest(const std::string& path, char delimiter,
                                      const ManifestOptions& options) {
  if (std::ranges::any_of(options.keyed, &KeyedColumn::is_of_objects)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "boxes and other values of objects are read from JSON lines only",
                 .file = path,
                 .advice = "Write a .jsonl file, or give them to stoker.files"};
  }
  ASSIGN_OR_RETURN(ManifestTable table, ReadCsvOnce(path, delimiter, options, {}));
  const std::vector<size_t> texts = LostTexts(table);
  if (texts.empty()) return table;
  table = {};
  ASSIGN_OR_RETURN(table, ReadCsvOnce(path, delimiter, options, texts));
  if (!LostTexts(table).empty()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "the file has changed while it was read",
                 .file = path,
                 .advice = "Try again"};
  }
  return table;
}

}  // namespace stoker
