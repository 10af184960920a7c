#include "io/annotations/yolo.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "core/system/machine.h"
#include "io/annotations/column_of_objects.h"
#include "io/annotations/yolo_data.h"
#include "io/annotations/yolo_labels.h"
#include "io/files/text_file.h"
#include "io/folder/list_images.h"
#include "io/ranges/path_source.h"
#include "io/remote/object_url.h"
#include "io/shards/for_each_shard.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

Error WrongYolo(const std::string& file, std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = file,
          .advice = std::move(advice)};
}

Error OnServers(const std::string& file) {
  return {.code = Code::kUnimplemented,
          .cause = "data sets for YOLO are not read from servers",
          .file = file,
          .advice = "Copy the data set to a local disk"};
}

std::string JoinPaths(const std::string& folder, const std::string& path) {
  return (fs::path(folder) / path).lexically_normal().string();
}

bool PathExists(const std::string& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

// The images of a split, with their absolute paths.
struct SplitImages {
  PathTable paths;
  SkippedFiles skipped;
};

Status AddFolder(const std::string& folder, int threads, SplitImages& images) {
  ASSIGN_OR_RETURN(const ImagesBelow below, ListImagesBelow(folder, threads));
  if (below.paths.size() == 0) return NoImage(folder, below.skipped);
  const std::string prefix = folder.ends_with('/') ? folder : folder + "/";
  for (size_t i = 0; i < below.paths.size(); ++i) {
    images.paths.Add(prefix + std::string(below.paths[i]));
  }
  images.skipped.Add(below.skipped);
  return {};
}

Status AddLine(const std::string& list, const TextPosition& position, std::string_view line,
               PathTable& paths) {
  if (line.empty()) return {};
  if (IsObjectUrl(line)) return OnServers(list);
  if (line.find('\0') != std::string_view::npos) {
    return RefuseText(list, position, "a path has a NUL");
  }
  paths.Add(JoinPaths(fs::path(list).parent_path().string(), std::string(line)));
  return {};
}

// Adds the images that a .txt file lists.
Status AddList(const std::string& list, PathTable& paths) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(list));
  const size_t before = paths.size();
  TRY(file.ForEachLine([&](const TextPosition& position, std::string_view line) {
    return AddLine(list, position, line, paths);
  }));
  if (paths.size() == before) return WrongYolo(list, "the list has no path of an image");
  return {};
}

// Adds those of `path`, a folder or a list.
Status AddImages(const std::string& path, int threads, SplitImages& images) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return AddFolder(path, threads, images);
  if (path.ends_with(".txt")) return AddList(path, images.paths);
  return Error{.code = Code::kNotFound,
               .cause = "there is no such folder of images",
               .file = path,
               .advice =
                   "Paths of a split are relative to the key 'path', and that is relative to the "
                   "folder of the YAML file (not to the data sets of Ultralytics' settings): "
                   "correct it, or write it as an absolute path"};
}

// Returns the path of an image's labels.
std::string LabelsOf(std::string_view image) {
  constexpr std::string_view kImages = "/images/", kLabels = "/labels/";
  std::string path(image);
  const size_t slash = path.rfind('/');
  if (const size_t dot = path.rfind('.'); dot != std::string::npos && dot + 1 > slash + 1) {
    path.resize(dot);
  }
  path += ".txt";
  const size_t folder = path.rfind(kImages);
  if (folder != std::string::npos) path.replace(folder, kImages.size(), kLabels);
  return path;
}

// The objects of some images that follow each other.
struct LabelledBlock {
  YoloLabels labels;
  std::vector<int64_t> counts;  // by image
  std::vector<int64_t> words;   // likewise, of their shapes
  size_t files = 0;
};

// Reads the label files of all images, with several threads.
class LabelFiles {
 public:
  LabelFiles(const PathTable& images, const YoloLines& lines)
      : images_(images), lines_(lines), blocks_((images.size() + kBlock - 1) / kBlock) {}

  // Returns the error of the first image that has one.
  Status Read(int threads) {
    std::vector<std::string> firsts;  // for messages
    firsts.reserve(blocks_.size());
    for (size_t i = 0; i < blocks_.size(); ++i) firsts.push_back(LabelsOf(images_[i * kBlock]));
    return ForEachShard(firsts, threads, [this](size_t block) { return ReadBlock(block); });
  }

  const std::vector<LabelledBlock>& blocks() const { return blocks_; }

 private:
  static constexpr size_t kBlock = 256;

  Status ReadBlock(size_t number) {
    LabelledBlock& block = blocks_[number];
    const size_t end = std::min((number + 1) * kBlock, images_.size());
    for (size_t i = number * kBlock; i < end; ++i) {
      const size_t before = block.labels.classes.size();
      const size_t words = block.labels.shapes.words().size();
      TRY(ReadFile(LabelsOf(images_[i]), block));
      block.words.push_back(static_cast<int64_t>(block.labels.shapes.words().size() - words));
      block.counts.push_back(static_cast<int64_t>(block.labels.classes.size() - before));
    }
    return {};
  }

  Status ReadFile(const std::string& path, LabelledBlock& block) {
    constexpr size_t kBytesAtOnce = 8192;
    constexpr size_t kMostLabelBytes = size_t{15} << 20;  // TextFile holds 16 MiB
    Result<TextFile> file = TextFile::Open(path, kBytesAtOnce);
    if (!file.ok()) {
      if (file.error().code == Code::kNotFound) return {};
      return std::move(file).error();
    }
    ASSIGN_OR_RETURN(const bool whole, file->GrowToEnd(kMostLabelBytes));
    if (!whole) {
      return WrongYolo(path, "the file has more than 15 MiB, so it is not one of labels");
    }
    ++block.files;
    return ParseYoloLabels(file->bytes(), path, lines_, block.labels);
  }

  const PathTable& images_;
  const YoloLines lines_;
  std::vector<LabelledBlock> blocks_;
};

// The objects of all images.
struct YoloColumns {
  YoloLabels labels;
  std::vector<int64_t> offsets{0};
  std::vector<uint32_t> shapes;
  std::vector<int64_t> shape_offsets{0};  // in words
};

YoloColumns Concatenate(const std::vector<LabelledBlock>& blocks) {
  YoloColumns all;
  size_t objects = 0;
  for (const LabelledBlock& block : blocks) objects += block.labels.classes.size();
  all.labels.boxes.reserve(4 * objects);
  all.labels.classes.reserve(objects);
  for (const LabelledBlock& block : blocks) {
    const YoloLabels& labels = block.labels;
    all.labels.boxes.insert(all.labels.boxes.end(), labels.boxes.begin(), labels.boxes.end());
    all.labels.classes.insert(all.labels.classes.end(), labels.classes.begin(),
                              labels.classes.end());
    for (const int64_t count : block.counts) all.offsets.push_back(all.offsets.back() + count);
    const std::span<const uint32_t> words = labels.shapes.words();
    all.shapes.insert(all.shapes.end(), words.begin(), words.end());
    for (const int64_t count : block.words) {
      all.shape_offsets.push_back(all.shape_offsets.back() + count);
    }
  }
  return all;
}

// Returns the columns of `from`, which must live as long as they are used.
std::vector<ArrayColumn> ColumnsOfYolo(const YoloColumns& from, const DrawnMasks& masks) {
  const YoloLabels& labels = from.labels;
  std::vector<ArrayColumn> columns{
      ColumnOfObjects("boxes", DType::kF32, labels.boxes.data(), from.offsets, Field::Kind::kBoxes),
      ColumnOfObjects("labels", DType::kI64, labels.classes.data(), from.offsets)};
  columns.front().box_format = BoxFormat::kCxcywh;
  columns.front().normalized = true;
  if (masks.kind != DrawnMasks::Kind::kNone) {
    columns.push_back(ColumnOf(masks, from.shapes, from.shape_offsets));
    columns.back().normalized = true;
  }
  return columns;
}

// Returns the key of a split in the file: "validation" is another name of "val".
std::string KeyOf(const YoloData& given, const std::string& split) {
  if (given.lists.contains(split)) return split;
  if (split == "val") return "validation";
  return split == "validation" ? "val" : split;
}

// Returns the images of a split.
Result<SplitImages> ImagesOf(const std::string& data, const YoloData& given,
                             const std::string& split, int threads) {
  const auto listed = given.lists.find(KeyOf(given, split));
  if (listed == given.lists.end() || listed->second.empty()) {
    std::string keys;
    for (const char* const key : {"train", "val", "validation", "test"}) {
      if (given.lists.contains(key)) keys += (keys.empty() ? "" : ", ") + std::string(key);
    }
    return WrongYolo(data, "there are no images for '" + Printable(split.substr(0, 80)) + "'",
                     keys.empty() ? "" : "The file has: " + keys);
  }
  const std::string root = JoinPaths(fs::path(data).parent_path().string(), given.path);
  SplitImages images;
  for (const std::string& path : listed->second) {
    if (IsObjectUrl(path) || IsObjectUrl(given.path)) return OnServers(data);
    std::string whole = JoinPaths(root, path);
    if (path.starts_with("../") && !PathExists(whole)) whole = JoinPaths(root, path.substr(3));
    TRY(AddImages(whole, threads, images));
  }
  return images;
}

// Checks that there are label files, unless there are no images for them.
Status CheckLabelFiles(const std::vector<LabelledBlock>& blocks, const PathTable& images) {
  for (const LabelledBlock& block : blocks) {
    if (block.files > 0) return {};
  }
  return WrongYolo(LabelsOf(images[0]),
                   std::to_string(images.size()) +
                       Plural(images.size(), " image has", " images have") +
                       " no file of labels; this would be that of the first image",
                   "Labels of a/images/7.jpg are in a/labels/7.txt");
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Yolo(const std::string& data, const std::string& split,
                                                 const YoloOptions& options) {
  TRY(CheckThreads(options.threads));
  if (IsObjectUrl(data)) return OnServers(data);
  std::error_code failed;
  const std::string absolute = fs::absolute(data, failed).string();
  if (failed) return SystemError(failed.value(), "cannot find the working folder", data);
  ASSIGN_OR_RETURN(YoloData given, ReadYoloData(data));
  ASSIGN_OR_RETURN(SplitImages images, ImagesOf(absolute, given, split, options.threads));
  LabelFiles files(images.paths, {.classes = given.names.size(),
                                  .keypoints = given.lists.contains("kpt_shape"),
                                  .shapes = options.masks.kind != DrawnMasks::Kind::kNone});
  TRY(files.Read(options.threads));
  TRY(CheckLabelFiles(files.blocks(), images.paths));
  const auto columns = std::make_shared<YoloColumns>(Concatenate(files.blocks()));
  const DrawnObjects drawn{
      .labels = columns->labels.classes, .crowds = {}, .shapes = columns->shapes};
  if (const Status checked = CheckClasses(options.masks, drawn); !checked.ok()) {
    return Error(checked.error()).WithFile(data);
  }
  FilesOptions made{.columns = ColumnsOfYolo(*columns, options.masks),
                    .owner = columns,
                    .class_names = std::move(given.names),
                    .description = "yolo(" + data + ", " + split + ")",
                    .skipped = std::move(images.skipped)};
  return Files(std::move(images.paths), std::move(made));
}

}  // namespace stoker
