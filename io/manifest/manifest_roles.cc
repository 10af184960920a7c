#include "io/manifest/manifest_roles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

constexpr size_t kMostListed = 300;  // bytes of names in a message

Error WrongColumn(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

Status CheckNames(const std::vector<std::string>& names) {
  std::vector<std::string_view> sorted;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (!IsColumnName(name)) {
      return WrongColumn("the name of column " + std::to_string(i + 1) +
                         " is too long, not UTF-8, or has control characters");
    }
    if (name.starts_with(' ') || name.ends_with(' ')) {
      return WrongColumn("column '" + name + "' has a blank around its name", "Remove it");
    }
    if (!name.empty()) sorted.push_back(name);
  }
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end())
    return WrongColumn("column '" + std::string(*twice) + "' occurs twice");
  return {};
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (text.size() > kMostListed) return text + ", …";
    text += (text.empty() ? "'" : ", '") + name + "'";
  }
  return text;
}

std::optional<size_t> IndexOf(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (name.empty() || found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

Result<size_t> Need(const std::vector<std::string>& names, const std::string& name) {
  if (const std::optional<size_t> index = IndexOf(names, name)) return *index;
  return WrongColumn("there is no column '" + Printable(name) + "'; the columns are " +
                     Listed(names));
}

Result<size_t> FindPath(const std::vector<std::string>& names, const std::string& wanted) {
  if (!wanted.empty()) return Need(names, wanted);
  for (const char* usual : {"path", "file_name", "filename", "image", "filepath"}) {
    if (const std::optional<size_t> index = IndexOf(names, usual)) return *index;
  }
  return WrongColumn(
      "no column has a usual name of paths, such as 'path' or 'file_name'; the columns are " +
          Listed(names),
      "Name it with path_column");
}

// Returns the columns that `columns` names, or all that are neither the path nor the label.
Result<std::vector<size_t>> FindFurther(const std::vector<std::string>& names,
                                        const ManifestOptions& options, size_t path,
                                        std::optional<size_t> label) {
  std::vector<size_t> further;
  if (options.columns) {
    for (const std::string& name : *options.columns) {
      ASSIGN_OR_RETURN(const size_t index, Need(names, name));
      if (std::ranges::find(further, index) != further.end()) {
        return WrongColumn("columns names '" + name + "' twice");
      }
      further.push_back(index);
    }
    return further;
  }
  if (!options.keyed.empty()) return further;
  const bool no_labels = options.label_column && options.label_column->empty();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool left_out = names[i].empty() || (no_labels && names[i] == "label");
    if (i != path && i != label && !left_out) further.push_back(i);
  }
  return further;
}

// Adds the keyed columns that are values, and then the masks.
Status AddKeyed(const std::vector<std::string>& names, const ManifestOptions& options,
                ManifestRoles& roles) {
  for (const bool masks : {false, true}) {
    for (const KeyedColumn& column : options.keyed) {
      if (column.is_of_objects() || column.is_mask() != masks) continue;
      ASSIGN_OR_RETURN(const size_t index, Need(names, column.key));
      if (std::ranges::find(roles.values, index) != roles.values.end()) {
        return WrongColumn("column '" + column.key + "' is wanted twice");
      }
      roles.values.push_back(index);
      roles.fields.push_back(column.field.name);
      roles.masks += masks ? 1 : 0;
    }
  }
  return {};
}

}  // namespace

Result<ManifestRoles> FindRoles(const std::vector<std::string>& names,
                                const ManifestOptions& options) {
  TRY(CheckNames(names));
  ManifestRoles roles;
  ASSIGN_OR_RETURN(roles.path, FindPath(names, options.path_column));
  std::optional<size_t> label = IndexOf(names, options.label_column.value_or("label"));
  if (options.label_column && !options.label_column->empty()) {
    ASSIGN_OR_RETURN(label, Need(names, *options.label_column));
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> further,
                   FindFurther(names, options, roles.path, label));
  for (const size_t index : further) {
    if (index == label || names[index] == "label" || names[index] == "image") {
      return WrongColumn("column '" + names[index] + "' cannot be a further column: batches have " +
                             (index == label ? "it as their label" : "another one of this name"),
                         "Name the wanted ones with columns");
    }
  }
  roles.has_label = label.has_value();
  if (label) roles.values.push_back(*label);
  roles.values.insert(roles.values.end(), further.begin(), further.end());
  for (const size_t index : roles.values) roles.fields.push_back(names[index]);
  if (label) roles.fields.front() = "label";
  TRY(AddKeyed(names, options, roles));
  return roles;
}

}  // namespace stoker
