#include "io/annotations/voc.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/machine.h"
#include "io/annotations/column_of_objects.h"
#include "io/annotations/voc_annotation.h"
#include "io/files/text_file.h"
#include "io/folder/list_images.h"
#include "io/ranges/path_source.h"
#include "io/remote/object_url.h"
#include "io/shards/for_each_shard.h"

namespace stoker {

namespace {

constexpr std::array<const char*, 20> kVocClasses = {
    "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
    "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
    "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};

Error WrongVoc(const std::string& file, std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = file,
          .advice = std::move(advice)};
}

bool IsFolder(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

// Returns the folder VOC2012 that `root` is or has; empty if there is none.
std::string FolderOf(const std::string& root, const std::string& year) {
  const std::filesystem::path given(root);
  const std::string name = "VOC" + year;
  for (const auto& folder :
       {given / "VOCdevkit" / name, given / name, given / "TrainVal" / "VOCdevkit" / name}) {
    if (IsFolder(folder / "ImageSets")) return folder.string();
  }
  return {};
}

// The year in the name VOC2012 of a folder; empty if it has another name.
std::string YearOf(const std::string& folder) {
  std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  const bool is_year = name.size() == 7 && name.starts_with("VOC") &&
                       name.find_first_not_of("0123456789", 3) == std::string::npos;
  return is_year ? name.substr(3) : "";
}

// `of_year` is VocOptions::year.
Result<std::string> FindFolder(const std::string& root, const std::string& of_year) {
  if (IsObjectUrl(root)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "data sets of Pascal VOC's layout are not read from servers",
                 .file = root,
                 .advice = "Copy the data set to a local disk"};
  }
  const bool is_one = IsFolder(std::filesystem::path(root) / "ImageSets");
  const std::string own = is_one ? YearOf(root) : "";
  const std::string year = !of_year.empty() ? of_year : !own.empty() ? own : "2012";
  std::string folder = FolderOf(root, year);
  if (!folder.empty()) return folder;
  if (!own.empty() && own != year) {
    return WrongVoc(root, "this is the folder of the year " + own + ", not " + Printable(year),
                    "Give its year, or none");
  }
  if (is_one) return root;
  return Error{.code = Code::kNotFound,
               .cause = "there is no folder VOC" + Printable(year.substr(0, 20)) +
                        " with a folder ImageSets",
               .file = root,
               .advice = "Give this folder, the folder VOCdevkit, or the one that it is in"};
}

// The names that a split lists.
struct VocList {
  std::string path;
  PathTable names;
};

Error NoSuchSplit(const std::string& folder, const std::string& path) {
  std::string there;
  std::error_code failed;
  for (const char* const split : {"train", "val", "trainval", "test"}) {
    if (std::filesystem::exists(folder + "/" + split + ".txt", failed)) {
      there += (there.empty() ? "" : ", ") + std::string(split);
    }
  }
  return {.code = Code::kNotFound,
          .cause = "there is no list of this split",
          .file = path,
          .advice = there.empty() ? "" : "The folder has: " + there};
}

Result<VocList> ReadList(const std::string& folder, const std::string& split) {
  if (split.empty() || split.find('/') != std::string::npos ||
      split.find('\0') != std::string::npos) {
    return WrongVoc(folder, "'" + Printable(split.substr(0, 80)) + "' is not the name of a split",
                    "Give train, val, trainval or test");
  }
  VocList list{.path = folder + "/" + split + ".txt", .names = {}};
  Result<TextFile> file = TextFile::Open(list.path);
  if (!file.ok()) {
    if (file.error().code == Code::kNotFound) return NoSuchSplit(folder, list.path);
    return std::move(file).error();
  }
  TRY(file->ForEachLine([&](const TextPosition&, std::string_view line) -> Status {
    if (!line.empty()) list.names.Add(line);
    return {};
  }));
  if (list.names.size() > 0) return list;
  return WrongVoc(list.path, "the list has no name of an image");
}

// The files of a folder by their names without extension.
class NamedFiles {
 public:
  static Result<NamedFiles> List(const std::string& folder, int threads) {
    NamedFiles files;
    files.folder_ = folder;
    ASSIGN_OR_RETURN(files.below_, ListImagesBelow(folder, threads));
    const PathTable& paths = files.below_.paths;
    files.named_.reserve(paths.size());
    for (size_t i = 0; i < paths.size(); ++i) {
      const auto [there, is_new] = files.named_.emplace(
          std::string(paths[i].substr(0, paths[i].rfind('.'))), Found{.first = i, .last = i});
      if (!is_new) there->second.last = i;
    }
    return files;
  }

  // Returns the file of each name in the list.
  Result<PathTable> Find(const VocList& list) const {
    PathTable found;
    found.Reserve(list.names.size());
    for (size_t i = 0; i < list.names.size(); ++i) {
      const auto file = named_.find(std::string(list.names[i]));
      if (file == named_.end()) return Missing(list, i);
      const auto [first, last] = file->second;
      if (first != last) {
        return WrongVoc(folder_,
                        "two images differ in their extensions only: '" +
                            std::string(below_.paths[first]) + "' and '" +
                            std::string(below_.paths[last]) + "'",
                        "Rename or remove one of them");
      }
      found.Add(below_.paths[first]);
    }
    return found;
  }

 private:
  struct Found {
    size_t first;
    size_t last;  // of several files of this name
  };

  Error Missing(const VocList& list, size_t i) const {
    const std::string skipped = below_.skipped.empty() ? "" : "; " + below_.skipped.Summary();
    return WrongVoc(list.path,
                    "'" + Printable(list.names[i].substr(0, 200)) + "' has no file in '" + folder_ +
                        "'" + skipped,
                    below_.skipped.empty()
                        ? "Each line is the name of a file without extension; lists of a single "
                          "class, which have a second number, are not read"
                        : kConvertSkipped);
  }

  std::string folder_;
  ImagesBelow below_;
  std::unordered_map<std::string, Found> named_;
};

Result<VocAnnotation> ReadAnnotation(const std::string& path) {
  constexpr size_t kBytesAtOnce = 8192;
  constexpr size_t kMostBytes = size_t{1} << 20;
  Result<TextFile> opened = TextFile::Open(path, kBytesAtOnce);
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    if (error.code == Code::kNotFound) {
      error.advice = "Restore the file, or remove its name from the list of the split";
    }
    return error;
  }
  TextFile& file = *opened;
  ASSIGN_OR_RETURN(const bool whole, file.GrowToEnd(kMostBytes));
  if (!whole) {
    return WrongVoc(path, "the file has more than 1 MiB, so it is not one of annotations",
                    "Remove it, or divide its objects among several images");
  }
  return ParseVocAnnotation(file.bytes(), path);
}

// The objects of all images.
struct VocColumns {
  std::vector<ImageSize> sizes;     // by sample; empty without check_sizes
  std::vector<int64_t> offsets{0};  // of the samples' objects
  std::vector<float> boxes;
  std::vector<int64_t> labels;
  std::vector<uint8_t> difficult;
  std::vector<uint8_t> truncated;
  std::vector<uint8_t> occluded;
};

// Puts the objects of annotations into columns.
class VocObjects {
 public:
  VocObjects(const std::vector<std::string>& classes, const VocOptions& options)
      : options_(options) {
    for (size_t i = 0; i < classes.size(); ++i) {
      labels_.emplace(classes[i], static_cast<int64_t>(i));
    }
  }

  Status Add(const std::string& path, const VocAnnotation& annotation) {
    if (options_.check_sizes) columns_.sizes.push_back(annotation.size);
    for (const VocObject& object : annotation.objects) {
      if (object.difficult != 0 && !options_.keep_difficult) continue;
      const auto label = labels_.find(object.name);
      if (label == labels_.end()) AddUnknown(path, object);
      if (!unknown_.empty()) continue;  // the error needs only the names of the others
      TRY(AddBox(path, object));
      columns_.labels.push_back(label->second);
      columns_.difficult.push_back(object.difficult);
      columns_.truncated.push_back(object.truncated);
      columns_.occluded.push_back(object.occluded);
    }
    columns_.offsets.push_back(static_cast<int64_t>(columns_.labels.size()));
    return {};
  }

  // The error of the first object whose class has no name, if there is one.
  Result<VocColumns> Take() && {
    if (unknown_.empty()) return std::move(columns_);
    std::string names;
    for (const std::string& name : unknown_) {
      names += (names.empty() ? "'" : ", '") + Printable(name.substr(0, 80)) + "'";
    }
    if (unknown_.size() == kMostUnknown) names += ", …";
    first_unknown_.cause += names;
    return std::move(first_unknown_);
  }

 private:
  static constexpr size_t kMostUnknown = 50;

  Status AddBox(const std::string& path, const VocObject& object) {
    const double first = options_.one_based ? 1 : 0;
    const double* const box = object.box;
    if (options_.one_based && (box[0] < first || box[1] < first)) {
      return RefuseText(path, object.position,
                        "the box of '" + Printable(object.name.substr(0, 80)) +
                            "' begins before pixel 1, the first one of VOC's",
                        "Correct the box; or if coordinates count from 0, say that they are not "
                        "one-based (one_based)");
    }
    for (const double side : {box[0] - first, box[1] - first, box[2], box[3]}) {
      columns_.boxes.push_back(static_cast<float>(side));
    }
    return {};
  }

  void AddUnknown(const std::string& path, const VocObject& object) {
    if (unknown_.empty()) {
      first_unknown_ =
          RefuseText(path, object.position,
                     "'" + Printable(object.name.substr(0, 80)) + "' is not one of the " +
                         std::to_string(labels_.size()) +
                         Plural(labels_.size(), " class", " classes") + ". Such classes are: ",
                     "Give the names of all classes, in an order that you keep for all splits "
                     "(class_names)");
    }
    if (unknown_.size() < kMostUnknown) unknown_.insert(object.name);
  }

  const VocOptions& options_;
  std::unordered_map<std::string, int64_t> labels_;  // by name
  VocColumns columns_;
  std::set<std::string> unknown_;
  Error first_unknown_;
};

// Returns the columns of `from`, which must live as long as they are used.
std::vector<ArrayColumn> ColumnsOfVoc(const VocColumns& from) {
  const auto flag = [&](const char* name, const std::vector<uint8_t>& values) {
    return ColumnOfObjects(name, DType::kU8, values.data(), from.offsets);
  };
  return {
      ColumnOfObjects("boxes", DType::kF32, from.boxes.data(), from.offsets, Field::Kind::kBoxes),
      ColumnOfObjects("labels", DType::kI64, from.labels.data(), from.offsets),
      flag("difficult", from.difficult), flag("truncated", from.truncated),
      flag("occluded", from.occluded)};
}

// Reads the annotations of all images in the list.
Result<VocColumns> ReadObjects(const std::string& folder, const VocList& list,
                               const std::vector<std::string>& classes, const VocOptions& options) {
  std::vector<std::string> paths;
  paths.reserve(list.names.size());
  for (size_t i = 0; i < list.names.size(); ++i) {
    paths.push_back(folder + "/Annotations/" + std::string(list.names[i]) + ".xml");
  }
  std::vector<VocAnnotation> annotations(paths.size());
  TRY(ForEachShard(paths, options.threads, [&](size_t i) -> Status {
    ASSIGN_OR_RETURN(annotations[i], ReadAnnotation(paths[i]));
    return {};
  }));
  VocObjects objects(classes, options);
  for (size_t i = 0; i < paths.size(); ++i) {
    TRY(objects.Add(paths[i], annotations[i]));
    annotations[i] = {};
  }
  return std::move(objects).Take();
}

Status AddMasks(const std::string& folder, const char* name, const VocList& list,
                const VocOptions& options, FilesOptions& files) {
  ASSIGN_OR_RETURN(const NamedFiles masks, NamedFiles::List(folder, options.threads));
  ASSIGN_OR_RETURN(PathTable paths, masks.Find(list));
  files.further.push_back(
      {.name = name, .fill = options.fill, .paths = std::move(paths), .root = folder});
  return {};
}

Status CheckTask(const std::string& root, const VocOptions& options) {
  const bool detects = options.task == VocOptions::Task::kDetection;
  if (detects && (options.instances || options.fill != VocOptions{}.fill)) {
    return WrongVoc(root, "instances and fill are of segmentation, not of detection");
  }
  if (!detects && (!options.class_names.empty() || !options.keep_difficult || !options.one_based ||
                   !options.check_sizes)) {
    return WrongVoc(root,
                    "class_names, keep_difficult, one_based and check_sizes are of detection, not "
                    "of segmentation");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Voc(const std::string& root,
                                                const VocOptions& options) {
  TRY(CheckThreads(options.threads));
  TRY(CheckTask(root, options));
  ASSIGN_OR_RETURN(const std::string folder, FindFolder(root, options.year));
  const bool detects = options.task == VocOptions::Task::kDetection;
  ASSIGN_OR_RETURN(
      const VocList list,
      ReadList(folder + (detects ? "/ImageSets/Main" : "/ImageSets/Segmentation"), options.split));
  const std::string images = folder + "/JPEGImages";
  ASSIGN_OR_RETURN(const NamedFiles named, NamedFiles::List(images, options.threads));
  ASSIGN_OR_RETURN(PathTable paths, named.Find(list));
  FilesOptions files{.root = images, .description = "voc(" + folder + ", " + options.split + ")"};
  if (detects) {
    files.class_names = options.class_names;
    if (files.class_names.empty()) files.class_names.assign(kVocClasses.begin(), kVocClasses.end());
    ASSIGN_OR_RETURN(VocColumns objects, ReadObjects(folder, list, files.class_names, options));
    const auto columns = std::make_shared<VocColumns>(std::move(objects));
    files.columns = ColumnsOfVoc(*columns);
    files.owner = columns;
    files.annotated_sizes = std::move(columns->sizes);
    files.annotation_of = [folder](std::string_view image) {
      return folder + "/Annotations/" + std::string(image.substr(0, image.rfind('.'))) + ".xml";
    };
  } else {
    TRY(AddMasks(folder + "/SegmentationClass", "mask", list, options, files));
    if (options.instances) {
      TRY(AddMasks(folder + "/SegmentationObject", "instances", list, options, files));
    }
  }
  return Files(std::move(paths), std::move(files));
}

bool IsVocFolder(const std::string& root) {
  if (IsFolder(std::filesystem::path(root) / "ImageSets") &&
      IsFolder(std::filesystem::path(root) / "JPEGImages")) {
    return true;
  }
  return std::ranges::any_of(std::array{"2007", "2008", "2009", "2010", "2011", "2012"},
                             [&](const char* year) { return !FolderOf(root, year).empty(); });
}

}  // namespace stoker
