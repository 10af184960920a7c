#include "io/ranges/path_source.h"

#include <algorithm>
#include <array>
#include <cstddef>
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
#include "io/source/image_numbers.h"

namespace stoker {

namespace {

constexpr size_t kLabel = 0;  // the column of labels, if there are any

bool HasLabels(const std::vector<ArrayColumn>& columns) {
  return !columns.empty() && columns[kLabel].name == "label" && columns[kLabel].offsets == nullptr;
}

Error Invalid(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

bool IsAbsolute(std::string_view path) { return path.starts_with('/') || IsObjectUrl(path); }

// `name`: of their list, for messages.
Status CheckPaths(const std::string& name, const PathTable& paths,
                  const ImageNumbers& images = {}) {
  for (size_t i = 0; i < paths.size(); ++i) {
    const char* wrong = paths[i].empty()                                ? " is empty"
                        : paths[i].find('\0') != std::string_view::npos ? " contains a NUL"
                                                                        : nullptr;
    if (wrong == nullptr) continue;
    const auto [sample, piece] = images.PlaceOf(i);
    std::string where = name + "[" + std::to_string(sample) + "]";
    if (images.vary()) where += "[" + std::to_string(piece) + "]";
    return Invalid(where + wrong);
  }
  return {};
}

Status CheckNumberOfPaths(const PathTable& paths, size_t fields) {
  if (paths.size() == 0) return Invalid("files: no path was given");
  if (paths.size() < std::numeric_limits<uint32_t>::max() / fields) return {};
  return Invalid("files: a source has fewer than 2^32 - 1 paths; " +
                 std::to_string(paths.size() * fields) + " were given");
}

// `described` names the masks in messages.
Status CheckMask(const std::string& described, const FurtherImages& masks) {
  if (masks.dtype != DType::kU8 && masks.dtype != DType::kU16) {
    return Invalid(described + "has masks of " + NameOf(masks.dtype), "Give uint8 or uint16");
  }
  if (masks.dtype == DType::kU16 || masks.fill <= 255) return {};
  return Invalid(described + "has masks of uint8 with the fill " + std::to_string(masks.fill),
                 "Give 0 to 255, or uint16");
}

// Checks `all[i]`.
Status CheckFurther(const PathTable& paths, const std::vector<FurtherImages>& all, size_t i) {
  const FurtherImages& further = all[i];
  const std::string described = "files: '" + further.name + "' ";
  if (further.name.empty()) return Invalid("files: further images have no name");
  const bool is_taken = std::any_of(all.begin(), all.begin() + static_cast<ptrdiff_t>(i),
                                    [&](const auto& other) { return other.name == further.name; });
  if (is_taken) return Invalid(described + "was given twice");
  if (further.name == "image" || further.name == "label") {
    return Invalid(described + "is the name of another field", "Give it another name");
  }
  if (further.kind != Field::Kind::kImage && further.kind != Field::Kind::kMask) {
    return Invalid(described + "is neither images nor masks");
  }
  if (further.kind == Field::Kind::kMask) TRY(CheckMask(described, further));
  if (further.paths.size() != paths.size()) {
    return Invalid(described + "has " + std::to_string(further.paths.size()) +
                   Plural(further.paths.size(), " path", " paths") + " for " +
                   std::to_string(paths.size()) + Plural(paths.size(), " image", " images"));
  }
  return CheckPaths(further.name, further.paths);
}

Status CheckImages(const PathTable& paths, const FilesOptions& options) {
  const std::vector<FurtherImages>& further = options.further;
  TRY(CheckNumberOfPaths(paths, 1 + further.size()));
  TRY(CheckPaths("paths", paths, options.images));
  for (size_t i = 0; i < further.size(); ++i) TRY(CheckFurther(paths, further, i));
  return {};
}

Status CheckLists(const PathTable& paths, const FilesOptions& options) {
  if (!options.images.vary()) return {};
  if (!options.further.empty()) {
    return Invalid("files: '" + options.further.front().name +
                       "' has one file for each sample, and samples have lists of images",
                   "Put its paths into the lists, or give one image for each sample");
  }
  const std::vector<uint64_t>& ends = options.images.ends();
  if (!std::ranges::is_sorted(ends) || ends.back() != paths.size()) {
    return Invalid("files: the lists have other numbers of paths");
  }
  for (uint64_t id = 0; id < ends.size(); ++id) {
    const size_t images = options.images.CountOf(id);
    if (images <= kMostPieces) continue;
    return Invalid("files: paths[" + std::to_string(id) + "] has " + std::to_string(images) +
                       " images; at most " + std::to_string(kMostPieces) + " are possible",
                   "Make samples of fewer images");
  }
  return {};
}

Status CheckBesidePaths(const PathTable& paths, const FilesOptions& options) {
  const std::vector<ArrayColumn>& columns = options.columns;
  const bool lists = options.images.vary();
  const uint64_t samples = lists ? options.images.ends().size() : paths.size();
  for (size_t i = 0; i < columns.size(); ++i) {
    const ArrayColumn& column = columns[i];
    if (column.samples != samples) {
      return RefuseColumn(column, "has " + std::to_string(column.samples) +
                                      Plural(column.samples, " row", " rows") + " for " +
                                      std::to_string(samples) +
                                      (lists ? Plural(samples, " list of paths", " lists of paths")
                                             : Plural(samples, " path", " paths")));
    }
    if (column.name == "image") {
      return RefuseColumn(column, "has the name of the images", "Give it another name");
    }
    if (column.name == "label" && column.offsets != nullptr) {
      return RefuseColumn(column, "holds objects; 'label' is one value for each image",
                          "Give it another name: \"labels\"");
    }
    if (column.name == "label" && i != kLabel) {
      return RefuseColumn(column, "is the label, which is the first column");
    }
    if (std::ranges::find(options.further, column.name, &FurtherImages::name) !=
        options.further.end()) {
      return RefuseColumn(column, "was given twice");
    }
  }
  return {};
}

// Returns the column whose values have class names: the label, or "labels" of objects. Null if
// there is neither.
const ArrayColumn* ClassColumnOf(const std::vector<ArrayColumn>& columns) {
  if (HasLabels(columns)) return &columns[kLabel];
  const auto found = std::ranges::find_if(columns, [](const ArrayColumn& column) {
    return column.name == "labels" && column.kind == Field::Kind::kObject;
  });
  return found == columns.end() ? nullptr : &*found;
}

// Checks that each label has a name.
Status CheckClassNames(const std::vector<std::string>& names, const MemoryColumns& columns) {
  if (names.empty()) return {};
  const ArrayColumn* const labels = ClassColumnOf(columns.columns());
  if (labels == nullptr) return Invalid("class names were given, and no labels");
  const Field field = FieldOf(*labels);
  if (!field.is_class_number()) {
    return RefuseColumn(*labels, "has class names, but its rows are " + DescribeRow(field),
                        labels->offsets == nullptr
                            ? "Give one integer or bool per path, or no class names"
                            : "Give one integer or bool per object, or no class names");
  }
  const auto begin = static_cast<uint64_t>(labels->offsets == nullptr ? 0 : labels->offsets[0]);
  const auto end = labels->offsets == nullptr
                       ? labels->samples
                       : static_cast<uint64_t>(labels->offsets[labels->samples]);
  for (uint64_t row = begin; row < end; ++row) {
    const int64_t label = field.ClassNumberIn(labels->Row(row));
    if (label < 0 || static_cast<uint64_t>(label) >= names.size()) {
      return RefuseColumn(*labels, "has " + std::to_string(label) + " at " + std::to_string(row) +
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

std::string PixelsOf(ImageSize size) {
  return std::to_string(size.width) + " × " + std::to_string(size.height);
}

Error NotAsAnnotated(ImageSize viewed, ImageSize annotated, const std::string& file) {
  const bool is_turned = viewed == ImageSize{annotated.height, annotated.width};
  return {
      .code = Code::kDataLoss,
      .cause = "the image has " + PixelsOf(viewed) + " pixels, but " + file + " says that it has " +
               PixelsOf(annotated),
      .advice =
          std::string(is_turned
                          ? "If the image has an EXIF orientation, set exif_orientation to False "
                            "for objects of the image as it is stored, to True for those of the "
                            "image as viewed"
                          : "Use the image that was annotated, or scale its objects to this size") +
          "; if only the width and height are wrong, correct them, or turn off check_sizes"};
}

// The files of one field.
struct ListedFiles {
  PathTable paths;     // as given
  std::string prefix;  // for relative paths
};

bool HasUrls(const ListedFiles& files) {
  if (IsObjectUrl(files.prefix)) return true;
  for (size_t i = 0; i < files.paths.size(); ++i) {
    if (IsObjectUrl(files.paths[i])) return true;
  }
  return false;
}

class PathSource final : public SampleSource {
 public:
  // `options`: without columns and paths, which are in `columns` and `files`.
  PathSource(std::vector<ListedFiles> files, MemoryColumns columns, FilesOptions options)
      : files_(std::move(files)),
        images_(std::move(options.images)),
        columns_(std::move(columns)),
        classes_(std::move(options.class_names)),
        annotated_sizes_(std::move(options.annotated_sizes)),
        annotation_of_(std::move(options.annotation_of)),
        description_(std::move(options.description)),
        skipped_(std::move(options.skipped)) {
    fields_.push_back({.name = "image",
                       .kind = Field::Kind::kImage,
                       .count = images_.Most(),
                       .varies = images_.vary()});
    for (const FurtherImages& further : options.further) {
      fields_.push_back({.name = further.name, .kind = further.kind});
      if (further.kind != Field::Kind::kMask) continue;
      fields_.back().dtype = further.dtype;
      fields_.back().fill = further.fill;
    }
    for (const ArrayColumn& column : columns_.columns()) fields_.push_back(FieldOf(column));
    if (HasLabels(columns_.columns())) fields_[files_.size() + kLabel].is_label = true;
    if (std::ranges::any_of(files_, HasUrls)) objects_.emplace();
    names_hash_ = HashNames();
  }

  std::vector<GivenPaths> given() const {
    std::vector<GivenPaths> all;
    all.reserve(files_.size());
    for (size_t i = 0; i < files_.size(); ++i) {
      all.push_back({.field = fields_[i], .paths = files_[i].paths, .root = files_[i].prefix});
    }
    return all;
  }

  uint64_t size() const override {
    return images_.vary() ? images_.ends().size() : files_.front().paths.size();
  }
  uint64_t files() const override {
    return images_.vary() ? uint64_t{NoFile()} + 1 : files_.size() * size();
  }
  std::span<const Field> fields() const override { return fields_; }
  size_t PiecesOf(uint64_t id) const override {
    return images_.vary() ? images_.CountOf(id) : files_.size();
  }
  ByteRange RangeOf(uint64_t id) const override {
    if (PiecesOf(id) == 0) return {.file = NoFile(), .length = 0};
    return {.file = static_cast<uint32_t>(images_.Begin(id))};
  }
  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    if (images_.vary()) return {.file = static_cast<uint32_t>(images_.Begin(id) + piece)};
    return {.file = static_cast<uint32_t>(piece * size() + id)};
  }
  const std::vector<std::string>& classes() const override { return classes_; }

  void PathOf(uint32_t file, std::string& path) const override {
    if (images_.vary() && file == NoFile()) return path.clear();
    const uint32_t paths = NoFile();
    const ListedFiles& files = files_[file / paths];
    const std::string_view given = files.paths[file % paths];
    if (IsAbsolute(given)) {
      path.assign(given);
    } else {
      AppendName(given, path.assign(files.prefix));
    }
  }

  Status CheckViewed(uint64_t id, ImageSize viewed) const override {
    const ImageSize annotated = annotated_sizes_.empty() ? ImageSize() : annotated_sizes_[id];
    if (annotated == ImageSize() || annotated == viewed) return {};
    return NotAsAnnotated(viewed, annotated, annotation_of_(files_.front().paths[id]));
  }

  SkippedFiles Skipped() const override { return skipped_; }

  const ObjectVersions* objects() const override { return objects_ ? &*objects_ : nullptr; }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    columns_.CopyRows(field - files_.size(), ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return columns_.View(field - files_.size(), id);
  }

  uint32_t max_objects() const override { return columns_.max_objects(); }

  uint64_t memory_bytes() const override {
    uint64_t bytes = sizeof(*this) + classes_.capacity() * sizeof(std::string) +
                     annotated_sizes_.capacity() * sizeof(ImageSize) + skipped_.memory_bytes() +
                     images_.memory_bytes();
    for (const ListedFiles& files : files_) {
      bytes += sizeof(files) + files.paths.memory_bytes() + files.prefix.capacity();
    }
    return bytes;
  }

  // Relative paths are hashed without their folder, which may differ in another process. Columns
  // may change until a loader uses them, so they are hashed each time.
  uint64_t Fingerprint() const override { return columns_.Hash(/*all_numbers=*/true, names_hash_); }

  // Returns "files(photos/1.jpg and 99 more)".
  std::string Describe() const override {
    if (!description_.empty()) return description_;
    const size_t paths = files_.front().paths.size();
    const std::string others = paths == 1 ? "" : " and " + std::to_string(paths - 1) + " more";
    return "files(" + std::string(files_.front().paths[0]) + others + ")";
  }

 private:
  static constexpr uint64_t kOf16Bits = 1 << 16;

  // The number of the file that samples without images have: of paths.
  uint32_t NoFile() const { return static_cast<uint32_t>(files_.front().paths.size()); }

  // Returns a hash of all paths as given, of the kinds of further images, and of classes.
  uint64_t HashNames() const {
    uint64_t hash = files_.front().paths.Hash();
    for (size_t i = 1; i < files_.size(); ++i) {
      const Field& field = fields_[i];
      const uint64_t fill = field.dtype == DType::kU16 ? field.fill + kOf16Bits : field.fill;
      const std::array<uint64_t, 3> described{static_cast<uint64_t>(field.kind), fill,
                                              files_[i].paths.Hash()};
      const auto* const bytes = reinterpret_cast<const uint8_t*>(described.data());
      hash = Hash64(std::span(bytes, sizeof(described)), Hash64(field.name, hash));
    }
    for (const std::string& name : classes_) hash = Hash64(name, hash);
    return images_.Hash(hash);
  }

  const std::vector<ListedFiles> files_;  // of the images, then of further ones
  const ImageNumbers images_;
  const MemoryColumns columns_;
  std::vector<Field> fields_;              // the images, and the columns
  std::optional<ObjectVersions> objects_;  // empty, since none is opened; nullopt without URLs
  const std::vector<std::string> classes_;
  const std::vector<ImageSize> annotated_sizes_;  // these two as in FilesOptions
  const std::function<std::string(std::string_view image)> annotation_of_;
  const std::string description_;  // empty: made of the paths
  const SkippedFiles skipped_;
  uint64_t names_hash_ = 0;
};

}  // namespace

Result<std::shared_ptr<const SampleSource>> Files(PathTable paths, FilesOptions options) {
  TRY(CheckLists(paths, options));
  TRY(CheckImages(paths, options));
  TRY(CheckBesidePaths(paths, options));
  std::vector<ListedFiles> files;
  const auto add = [&files](const std::string& root, PathTable listed) -> Status {
    ASSIGN_OR_RETURN(std::string prefix, PrefixOf(root, listed));
    listed.ShrinkToFit();
    files.push_back({.paths = std::move(listed), .prefix = std::move(prefix)});
    return {};
  };
  TRY(add(options.root, std::move(paths)));
  for (FurtherImages& further : options.further) {
    TRY(add(further.root.empty() ? options.root : further.root, std::move(further.paths)));
  }
  ASSIGN_OR_RETURN(MemoryColumns columns,
                   MemoryColumns::Make(std::move(options.columns), std::move(options.owner)));
  TRY(CheckClassNames(options.class_names, columns));
  return std::shared_ptr<const SampleSource>(
      std::make_shared<PathSource>(std::move(files), std::move(columns), std::move(options)));
}

std::vector<GivenPaths> GivenPathsOf(const SampleSource& source) {
  const auto* listed = dynamic_cast<const PathSource*>(&source);
  if (listed == nullptr) return {};
  return listed->given();
}

}  // namespace stoker
