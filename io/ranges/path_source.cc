#include "io/ranges/path_source.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/memory/memory_columns.h"
#include "io/remote/object_url.h"
#include "io/remote/object_version.h"

namespace stoker {

namespace {

constexpr size_t kLabel = 0;  // the column of labels, if there are any

bool HasLabels(const std::vector<ArrayColumn>& columns) {
  return !columns.empty() && columns[kLabel].name == "label";
}

Error Invalid(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

bool IsAbsolute(std::string_view path) { return path.starts_with('/') || IsObjectUrl(path); }

Status CheckPaths(const PathTable& paths) {
  if (paths.size() == 0) return Invalid("files: no path was given");
  if (paths.size() >= std::numeric_limits<uint32_t>::max()) {
    return Invalid("files: a source has fewer than 2^32 - 1 paths; " +
                   std::to_string(paths.size()) + " were given");
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    const char* wrong = paths[i].empty()                                ? " is empty"
                        : paths[i].find('\0') != std::string_view::npos ? " contains a NUL"
                                                                        : nullptr;
    if (wrong != nullptr) return Invalid("paths[" + std::to_string(i) + "]" + wrong);
  }
  return {};
}

Status CheckBesidePaths(const PathTable& paths, const std::vector<ArrayColumn>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const ArrayColumn& column = columns[i];
    if (column.samples != paths.size()) {
      return RefuseColumn(column, "has " + std::to_string(column.samples) +
                                      Plural(column.samples, " row", " rows") + " for " +
                                      std::to_string(paths.size()) +
                                      Plural(paths.size(), " path", " paths"));
    }
    if (column.name == "image") {
      return RefuseColumn(column, "has the name of the images", "Give it another name");
    }
    if (column.name == "label" && i != kLabel) {
      return RefuseColumn(column, "is the label, which is the first column");
    }
  }
  return {};
}

// Checks that each label has a name.
Status CheckClassNames(const std::vector<std::string>& names, const MemoryColumns& columns) {
  if (names.empty()) return {};
  if (!HasLabels(columns.columns())) return Invalid("class names were given, and no labels");
  const ArrayColumn& labels = columns.columns()[kLabel];
  const Field field = FieldOf(labels);
  if (!field.is_class_number()) {
    return RefuseColumn(labels, "has class names, but its rows are " + DescribeRow(field),
                        "Give one integer or bool per path, or no class names");
  }
  for (uint64_t id = 0; id < labels.samples; ++id) {
    const int64_t label = field.ClassNumberIn(labels.Row(id));
    if (label < 0 || static_cast<uint64_t>(label) >= names.size()) {
      return RefuseColumn(labels, "has " + std::to_string(label) + " at " + std::to_string(id) +
                                      ", and there" + Plural(names.size(), " is ", " are ") +
                                      std::to_string(names.size()) +
                                      Plural(names.size(), " class name", " class names"));
    }
  }
  return {};
}

// Returns the absolute folder of relative paths, with a slash at its end; empty if it is not
// needed.
Result<std::string> PrefixOf(const std::string& root, const PathTable& paths) {
  if (root.find('\0') != std::string::npos) return Invalid("files: the root contains a NUL");
  TRY(CheckFolderUrl(root));
  std::string folder = root;
  if (!IsAbsolute(root)) {
    bool relative = !root.empty();
    for (size_t i = 0; i < paths.size() && !relative; ++i) relative = !IsAbsolute(paths[i]);
    if (!relative) return std::string();
    std::error_code failed;
    folder = (std::filesystem::current_path(failed) / root).string();
    if (failed) return SystemError(failed.value(), "cannot find the working folder", "");
  }
  while (folder.ends_with('/')) folder.pop_back();
  return folder + "/";
}

class PathSource final : public SampleSource {
 public:
  PathSource(PathTable paths, std::string prefix, MemoryColumns columns, FilesOptions options)
      : paths_(std::move(paths)),
        prefix_(std::move(prefix)),
        columns_(std::move(columns)),
        classes_(std::move(options.class_names)),
        description_(std::move(options.description)) {
    fields_.push_back({.name = "image", .kind = Field::Kind::kImage});
    for (const ArrayColumn& column : columns_.columns()) fields_.push_back(FieldOf(column));
    if (HasLabels(columns_.columns())) fields_[1 + kLabel].is_label = true;
    bool remote = IsObjectUrl(prefix_);
    for (size_t i = 0; i < paths_.size() && !remote; ++i) remote = IsObjectUrl(paths_[i]);
    if (remote) objects_.emplace();
    names_hash_ = paths_.Hash();
    for (const std::string& name : classes_) names_hash_ = Hash64(name, names_hash_);
  }

  GivenPaths given() const { return {.paths = paths_, .root = prefix_}; }

  uint64_t size() const override { return paths_.size(); }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  const std::vector<std::string>& classes() const override { return classes_; }

  void PathOf(uint32_t file, std::string& path) const override {
    const std::string_view given = paths_[file];
    if (IsAbsolute(given)) {
      path.assign(given);
    } else {
      AppendName(given, path.assign(prefix_));
    }
  }

  const ObjectVersions* objects() const override { return objects_ ? &*objects_ : nullptr; }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    columns_.CopyRows(field - 1, ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return columns_.View(field - 1, id);
  }

  uint64_t memory_bytes() const override {
    return sizeof(*this) + paths_.memory_bytes() + prefix_.capacity() +
           classes_.capacity() * sizeof(std::string);
  }

  // Relative paths are hashed without their folder, which may differ in another process. Columns
  // may change until a loader uses them, so they are hashed each time.
  uint64_t Fingerprint() const override { return columns_.Hash(/*all_numbers=*/true, names_hash_); }

  // Returns "files(photos/1.jpg and 99 more)".
  std::string Describe() const override {
    if (!description_.empty()) return description_;
    const std::string others =
        paths_.size() == 1 ? "" : " and " + std::to_string(paths_.size() - 1) + " more";
    return "files(" + std::string(paths_[0]) + others + ")";
  }

 private:
  const PathTable paths_;     // as given
  const std::string prefix_;  // for relative paths
  const MemoryColumns columns_;
  std::vector<Field> fields_;              // the image, and the columns
  std::optional<ObjectVersions> objects_;  // empty, since none is opened; nullopt without URLs
  const std::vector<std::string> classes_;
  const std::string description_;  // empty: made of the paths
  uint64_t names_hash_ = 0;        // of paths as given, and of classes
};

}  // namespace

Result<std::shared_ptr<const SampleSource>> Files(PathTable paths, FilesOptions options) {
  TRY(CheckPaths(paths));
  TRY(CheckBesidePaths(paths, options.columns));
  ASSIGN_OR_RETURN(std::string prefix, PrefixOf(options.root, paths));
  ASSIGN_OR_RETURN(MemoryColumns columns,
                   MemoryColumns::Make(std::move(options.columns), std::move(options.owner)));
  TRY(CheckClassNames(options.class_names, columns));
  paths.ShrinkToFit();
  return std::shared_ptr<const SampleSource>(std::make_shared<PathSource>(
      std::move(paths), std::move(prefix), std::move(columns), std::move(options)));
}

std::optional<GivenPaths> GivenPathsOf(const SampleSource& source) {
  const auto* listed = dynamic_cast<const PathSource*>(&source);
  if (listed == nullptr) return std::nullopt;
  return listed->given();
}

}  // namespace stoker
