#include "io/folder/image_folder.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/folder/list_images.h"
#include "io/index/dataset_index.h"
#include "io/index/image_list.h"
#include "io/remote/object_url.h"

namespace stoker {
namespace {

struct FoundIndex {
  std::optional<DatasetIndex> index;
  std::string warning;  // why an existing index is not used, or is of little use
};

Result<FoundIndex> FindIndex(const std::string& directory, const ImageFolderOptions& options) {
  FoundIndex found;
  if (options.crop_index == ImageFolderOptions::CropIndex::kOff) return found;
  const bool chosen = options.crop_index == ImageFolderOptions::CropIndex::kFile;
  if (chosen && options.crop_index_file.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "image_folder: crop_index_file is empty",
                 .advice = "Give the file that `stoker index` wrote"};
  }
  Result<DatasetIndex> index =
      DatasetIndex::Open(chosen ? options.crop_index_file : directory + "/" + kIndexName);
  if (index.ok()) {
    found.index = *std::move(index);
  } else if (chosen) {
    return std::move(index).error();
  } else if (index.error().code != Code::kNotFound) {
    Error error = std::move(index).error();
    if (error.code == Code::kInvalidArgument) error.advice = "Run `stoker index` again";
    found.warning =
        "the folder is listed and photographs are decoded without the index: " + error.Message();
  }
  return found;
}

// The list comes from the index, or is a new listing; in that case `positions` maps each file to
// its image in the index.
class FolderSource final : public SampleSource {
 public:
  // The files are the index'. `fingerprint`: nullopt if the labels are not.
  FolderSource(std::string directory, ImageList list, FoundIndex found,
               std::optional<uint64_t> fingerprint)
      : FolderSource(std::move(directory), std::move(list), std::move(found),
                     std::vector<uint32_t>()) {
    files_are_indexs_ = true;
    fingerprint_ = fingerprint;
  }

  FolderSource(std::string directory, ImageList list, FoundIndex found,
               std::vector<uint32_t> positions)
      : directory_(std::move(directory)),
        list_(std::move(list)),
        found_(std::move(found)),
        positions_(std::move(positions)),
        prefix_(WithSlash(directory_)) {}

  uint64_t size() const override { return list_.files.size(); }

  std::span<const Field> fields() const override {
    return ImageFields(/*labels=*/!list_.classes.empty());
  }

  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }

  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(prefix_);
    list_.AppendPath(file, path);
  }

  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = list_.LabelOf(id);
  }

  bool may_have_crop_index() const override { return true; }

  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override {
    const uint32_t position = IndexEntryOf(id);
    if (position == kNowhere) return {};
    return found_.index->Read(position, most, memory);
  }

  ImageFacts FactsOf(uint64_t id) const override {
    const uint32_t position = IndexEntryOf(id);
    return position == kNowhere ? ImageFacts() : found_.index->FactsOf(position);
  }

  std::string Warning() const override { return found_.warning; }

  SkippedFiles Skipped() const override {
    SkippedFiles all = list_.skipped;
    all.Add(list_.skipped_in_root);
    return all;
  }

  const std::vector<std::string>& classes() const override { return list_.classes; }

  uint64_t memory_bytes() const override {
    return sizeof(*this) + directory_.capacity() + prefix_.capacity() + list_.memory_bytes() +
           positions_.capacity() * sizeof(uint32_t) +
           (found_.index ? found_.index->memory_bytes() : 0);
  }

  uint64_t Fingerprint() const override {
    return fingerprint_ ? *fingerprint_ : list_.Fingerprint();
  }

  std::string Describe() const override { return "image_folder(" + directory_ + ")"; }

 private:
  // Returns the image's number in the index; kNowhere if it has none.
  uint32_t IndexEntryOf(uint64_t id) const {
    if (!found_.index) return kNowhere;
    return files_are_indexs_ ? static_cast<uint32_t>(id) : positions_[id];
  }

  std::string directory_;  // as given
  ImageList list_;
  FoundIndex found_;
  std::vector<uint32_t> positions_;  // empty if the files are the index'
  bool files_are_indexs_ = false;
  std::optional<uint64_t> fingerprint_;  // nullopt: it is the list's
  std::string prefix_;                   // of all paths
};

// Returns the warning that the index describes another folder, or an earlier state of this one.
std::string IsOlder(const DatasetIndex& index, const std::vector<uint32_t>& positions) {
  const auto known = std::count_if(positions.begin(), positions.end(),
                                   [](uint32_t position) { return position != kNowhere; });
  return Error{.cause =
                   "the folder has changed since this index was made, and had to be listed; "
                   "the index knows " +
                   std::to_string(known) + " of its " + std::to_string(positions.size()) +
                   Plural(positions.size(), " image", " images"),
               .file = index.path(),
               .advice = "Run `stoker index` again"}
      .Message();
}

bool HasEmptyClass(const ImageList& list) {
  std::vector<bool> has(list.classes.size());
  for (size_t i = 0; i < list.folders.size() && !has.empty(); ++i) {
    if (list.EndOf(i) > list.folders[i].first_file) has[list.folders[i].top] = true;
  }
  return std::ranges::find(has, false) != has.end();
}

Error WrongNames(const std::string& directory, std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = directory,
          .advice = std::move(advice)};
}

// Returns the labels of the list's classes in `names`.
Result<std::vector<uint32_t>> LabelsIn(const std::vector<std::string>& names, const ImageList& list,
                                       const std::string& directory) {
  std::unordered_map<std::string_view, uint32_t> label_of;
  for (const std::string& name : names) {
    if (!label_of.emplace(name, static_cast<uint32_t>(label_of.size())).second) {
      return WrongNames(directory, "class_names has '" + name + "' twice");
    }
  }
  std::vector<uint32_t> labels;
  for (const std::string& folder : list.classes) {
    const auto found = label_of.find(folder);
    if (found == label_of.end()) {
      return WrongNames(directory,
                        "class folder '" + folder + "' is not one of the " +
                            std::to_string(names.size()) +
                            Plural(names.size(), " class name", " class names") + " given",
                        "Give the names of all classes of the training set");
    }
    labels.push_back(found->second);
  }
  return labels;
}

// Gives the list's classes the labels that `class_names` say.
Status NumberClasses(const ImageFolderOptions& options, const std::string& directory,
                     ImageList& list) {
  const std::vector<std::string>& names = options.class_names;
  if (names.empty()) return {};
  if (list.classes.empty()) {
    return WrongNames(directory, "class names were given, and the folder has no class folders");
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> labels, LabelsIn(names, list, directory));
  if (labels.size() < names.size() && !options.allow_empty) {
    size_t missing = 0;
    while (std::ranges::find(labels, missing) != labels.end()) ++missing;
    return WrongNames(directory,
                      std::to_string(names.size() - labels.size()) +
                          " of the classes given have no folder, such as '" + names[missing] + "'",
                      "Set allow_empty if they may be without images");
  }
  for (ImageList::Folder& folder : list.folders) folder.top = labels[folder.top];
  list.classes = names;
  return {};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> ImageFolder(const std::string& directory,
                                                        const ImageFolderOptions& options) {
  using SourcePtr = std::shared_ptr<const SampleSource>;
  TRY(CheckThreads(options.threads));
  if (IsObjectUrl(directory)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "folders of objects are not listed",
                 .file = directory,
                 .advice = "List the objects in a manifest, or put them into tar archives"};
  }
  ASSIGN_OR_RETURN(FoundIndex found, FindIndex(directory, options));
  std::optional<DatasetIndex>& index = found.index;
  SkippedFiles in_root;
  // An empty class that is refused is found again by listing, which has more to say about it.
  if (index && (options.allow_empty || !HasEmptyClass(index->list())) &&
      IsStill(directory, index->list(), options.threads, in_root)) {
    ImageList list = index->TakeList();
    list.skipped_in_root = std::move(in_root);
    TRY(NumberClasses(options, directory, list));
    std::optional<uint64_t> fingerprint;
    if (options.class_names.empty()) fingerprint = index->fingerprint();
    return SourcePtr(
        std::make_shared<FolderSource>(directory, std::move(list), std::move(found), fingerprint));
  }
  ASSIGN_OR_RETURN(ImageList list,
                   ListImages(directory, options.threads,
                              options.allow_empty ? EmptyClasses::kAllow : EmptyClasses::kRefuse));
  std::vector<uint32_t> positions;
  if (index) {
    positions = PositionsIn(index->TakeList(), list);
    // Otherwise it is a copy, or something else has changed, and the index is as good as new.
    if (list.Fingerprint() != index->fingerprint()) found.warning = IsOlder(*index, positions);
  }
  TRY(NumberClasses(options, directory, list));
  return SourcePtr(std::make_shared<FolderSource>(directory, std::move(list), std::move(found),
                                                  std::move(positions)));
}

}  // namespace stoker
