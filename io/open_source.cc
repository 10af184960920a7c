#include "io/open_source.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/result/try.h"
#include "io/annotations/coco.h"
#include "io/annotations/keyed_column.h"
#include "io/annotations/voc.h"
#include "io/annotations/yolo.h"
#include "io/arrow/arrow.h"
#include "io/folder/image_folder.h"
#include "io/folder/masks.h"
#include "io/manifest/csv_reader.h"
#include "io/manifest/manifest.h"
#include "io/memory/record_text.h"
#include "io/memory/records.h"
#include "io/packed/packed.h"
#include "io/remote/object_url.h"
#include "io/tar/tar.h"
#include "io/tfrecord/tfrecord.h"

namespace stoker {

namespace {

using Opened = Result<std::shared_ptr<const SampleSource>>;

// A source that only the process that made it has.
Error OtherProcessError(const std::string& samples, const char* advice) {
  return {.code = Code::kFailedPrecondition,
          .cause = samples +
                   " in the memory of the process that made the loader; this is another one, or "
                   "the loader is gone",
          .advice = advice};
}

// A list, one item to a line.
std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  if (text.empty()) return lines;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// `paths`: one a line.
Opened OpenRecords(const std::string& paths, std::string_view record, std::string_view offset) {
  const std::vector<std::string> listed = LinesOf(paths);
  const auto is_absolute = [](const std::string& path) {
    return path.starts_with('/') || IsObjectUrl(path);
  };
  if (!std::ranges::all_of(listed, is_absolute)) {
    return Error{.code = Code::kInvalidArgument, .cause = "paths are not absolute, one a line"};
  }
  uint64_t bytes = 0;
  const auto [behind, error] = std::from_chars(offset.data(), offset.data() + offset.size(), bytes);
  if (error != std::errc() || behind != offset.data() + offset.size()) {
    return Error{.code = Code::kInvalidArgument, .cause = "offset is not a number of bytes"};
  }
  ASSIGN_OR_RETURN(std::vector<Field> fields, ParseRecord(record));
  return Records(listed, std::move(fields), bytes);
}

// The names in a CSV record; "auto": nullopt.
Result<std::optional<std::vector<std::string>>> ColumnsOf(const std::string& record) {
  if (record == "auto") return std::optional<std::vector<std::string>>();
  CsvReader reader(TextFile("columns", record), ',');
  std::vector<std::string_view> names;
  TRY(reader.Next(names));
  return std::optional<std::vector<std::string>>(std::in_place, names.begin(), names.end());
}

Opened OpenManifest(const SourceArguments& given, int /*threads*/) {
  const auto unless_auto = [&given](const char* name) {
    const std::string& value = given.at(name);
    return value == "auto" ? std::string() : value;
  };
  ManifestOptions options{.root = unless_auto("root"), .path_column = unless_auto("path_column")};
  if (given.at("label_column") != "auto") options.label_column = given.at("label_column");
  ASSIGN_OR_RETURN(options.columns, ColumnsOf(given.at("columns")));
  ASSIGN_OR_RETURN(options.keyed, ParseKeyedColumns(given.at("keyed_columns")));
  return Manifest(given.at("path"), options);
}

Result<CacheOptions> CacheOf(const SourceArguments& given) {
  CacheOptions cache;
  if (given.at("cache") != "off") cache.folder = given.at("cache");
  const std::string& text = given.at("cache_bytes");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cache.bytes);
  if (error == std::errc() && end == text.data() + text.size()) return cache;
  return Error{.code = Code::kInvalidArgument, .cause = "cache_bytes is not a number of bytes"};
}

// The root of a pattern's relative paths; empty means they are refused.
std::string RootOf(const SourceArguments& given) {
  const std::string& root = given.at("root");
  return root == "off" ? std::string() : root;
}

// Returns whether an argument is "on"; an error if it is not "off" either.
Result<bool> IsOn(const SourceArguments& given, const char* name) {
  const std::string& value = given.at(name);
  if (value == "on" || value == "off") return value == "on";
  return Error{.code = Code::kInvalidArgument,
               .cause = std::string(name) + " is neither on nor off"};
}

Opened OpenImageFolder(const SourceArguments& given, int threads) {
  using CropIndex = ImageFolderOptions::CropIndex;
  const std::string& index = given.at("crop_index");
  ASSIGN_OR_RETURN(const bool allow_empty, IsOn(given, "allow_empty"));
  return ImageFolder(given.at("directory"), {.threads = threads,
                                             .crop_index = index == "auto"  ? CropIndex::kAuto
                                                           : index == "off" ? CropIndex::kOff
                                                                            : CropIndex::kFile,
                                             .crop_index_file = index,
                                             .class_names = LinesOf(given.at("class_names")),
                                             .allow_empty = allow_empty});
}

Result<DrawnMasks> MasksOf(const SourceArguments& given) {
  const auto crowd = given.find("mask_crowd");
  return ParseMasks(given.at("masks"), given.at("mask_dtype"), given.at("mask_background"),
                    crowd == given.end() ? "off" : crowd->second);
}

Opened OpenCoco(const SourceArguments& given, int /*threads*/) {
  CocoOptions options;
  ASSIGN_OR_RETURN(options.keep_empty, IsOn(given, "keep_empty"));
  ASSIGN_OR_RETURN(options.keep_crowd, IsOn(given, "keep_crowd"));
  ASSIGN_OR_RETURN(options.contiguous_labels, IsOn(given, "contiguous_labels"));
  ASSIGN_OR_RETURN(options.check_sizes, IsOn(given, "check_sizes"));
  using Keypoints = CocoOptions::Keypoints;
  const std::string& keypoints = given.at("keypoints");
  if (keypoints != "auto" && keypoints != "on" && keypoints != "off") {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "keypoints is neither auto nor on nor off"};
  }
  options.keypoints = keypoints == "on"    ? Keypoints::kOn
                      : keypoints == "off" ? Keypoints::kOff
                                           : Keypoints::kAuto;
  ASSIGN_OR_RETURN(options.masks, MasksOf(given));
  return Coco(given.at("json"), given.at("images"), options);
}

Opened OpenMasks(const SourceArguments& given, int threads) {
  ASSIGN_OR_RETURN(const DType dtype, ParseMaskType("dtype", given.at("dtype")));
  ASSIGN_OR_RETURN(const uint16_t fill, ParseMaskValue("fill", given.at("fill"), dtype));
  return Masks(given.at("images"), given.at("masks"),
               {.suffix = given.at("suffix"), .dtype = dtype, .fill = fill, .threads = threads});
}

Opened OpenVoc(const SourceArguments& given, int threads) {
  using Task = VocOptions::Task;
  const std::string& task = given.at("task");
  if (task != "detection" && task != "segmentation") {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "task is neither detection nor segmentation"};
  }
  VocOptions options{.year = given.at("year"),
                     .split = given.at("split"),
                     .task = task == "detection" ? Task::kDetection : Task::kSegmentation,
                     .class_names = LinesOf(given.at("class_names")),
                     .threads = threads};
  ASSIGN_OR_RETURN(options.keep_difficult, IsOn(given, "keep_difficult"));
  ASSIGN_OR_RETURN(options.one_based, IsOn(given, "one_based"));
  ASSIGN_OR_RETURN(options.check_sizes, IsOn(given, "check_sizes"));
  ASSIGN_OR_RETURN(options.instances, IsOn(given, "instances"));
  ASSIGN_OR_RETURN(options.fill, ParseMaskValue("fill", given.at("fill"), DType::kU8));
  return Voc(given.at("root"), options);
}

// Columns of tars, one to a line: the name, a space, and the extension.
std::vector<TarColumn> TarColumnsOf(const std::string& text) {
  std::vector<TarColumn> columns;
  for (const std::string& line : LinesOf(text)) {
    const size_t space = std::min(line.rfind(' '), line.size());
    columns.push_back({line.substr(0, space), line.substr(std::min(space + 1, line.size()))});
  }
  return columns;
}

Opened OpenTar(const SourceArguments& given, int threads) {
  ASSIGN_OR_RETURN(CacheOptions cache, CacheOf(given));
  ASSIGN_OR_RETURN(std::vector<KeyedColumn> keyed, ParseKeyedColumns(given.at("keyed_columns")));
  return Tar(given.at("shards"), {.image = given.at("image"),
                                  .label = given.at("label"),
                                  .columns = TarColumnsOf(given.at("columns")),
                                  .keyed = std::move(keyed),
                                  .threads = threads,
                                  .root = RootOf(given),
                                  .cache = std::move(cache)});
}

Opened OpenTfRecord(const SourceArguments& given, int threads) {
  ASSIGN_OR_RETURN(CacheOptions cache, CacheOf(given));
  ASSIGN_OR_RETURN(std::vector<KeyedColumn> keyed, ParseKeyedColumns(given.at("keyed_columns")));
  return TfRecord(given.at("shards"), {.image = given.at("image"),
                                       .label = given.at("label"),
                                       .columns = LinesOf(given.at("columns")),
                                       .keyed = std::move(keyed),
                                       .class_names = LinesOf(given.at("class_names")),
                                       .threads = threads,
                                       .root = RootOf(given),
                                       .cache = std::move(cache)});
}

Opened OpenArrow(const SourceArguments& given, int threads) {
  ASSIGN_OR_RETURN(CacheOptions cache, CacheOf(given));
  ArrowOptions options{.image = given.at("image"),
                       .columns = LinesOf(given.at("columns")),
                       .threads = threads,
                       .root = RootOf(given),
                       .cache = std::move(cache)};
  if (given.at("label") != "auto") options.label = given.at("label");
  return Arrow(given.at("shards"), options);
}

Opened OpenPacked(const SourceArguments& given, int threads) {
  ASSIGN_OR_RETURN(CacheOptions cache, CacheOf(given));
  return Packed(given.at("folder"), {.threads = threads, .cache = std::move(cache)});
}

std::vector<SourceRow> MakeTable() {
  return {
      {.kind = "image_folder",
       .arguments = {{.name = "directory"},
                     {.name = "crop_index", .standard = "auto", .words = {"auto", "off"}},
                     {.name = "class_names", .standard = "", .is_path = false},
                     {.name = "allow_empty", .standard = "off", .is_path = false}},
       .open = &OpenImageFolder},
      {.kind = "masks",
       .arguments = {{.name = "images"},
                     {.name = "masks"},
                     {.name = "suffix", .standard = "", .is_path = false},
                     {.name = "fill", .standard = "0", .is_path = false},
                     {.name = "dtype", .standard = "uint8", .is_path = false}},
       .open = &OpenMasks},
      {.kind = "coco",
       .arguments = {{.name = "json"},
                     {.name = "images"},
                     {.name = "keep_empty", .standard = "on", .is_path = false},
                     {.name = "keep_crowd", .standard = "on", .is_path = false},
                     {.name = "contiguous_labels", .standard = "off", .is_path = false},
                     {.name = "keypoints", .standard = "auto", .is_path = false},
                     {.name = "masks", .standard = "off", .is_path = false},
                     {.name = "mask_dtype", .standard = "uint8", .is_path = false},
                     {.name = "mask_background", .standard = "255", .is_path = false},
                     {.name = "mask_crowd", .standard = "off", .is_path = false},
                     {.name = "check_sizes", .standard = "on", .is_path = false}},
       .open = &OpenCoco},
      {.kind = "yolo",
       .arguments = {{.name = "data"},
                     {.name = "split", .standard = "train", .is_path = false},
                     {.name = "masks", .standard = "off", .is_path = false},
                     {.name = "mask_dtype", .standard = "uint8", .is_path = false},
                     {.name = "mask_background", .standard = "255", .is_path = false}},
       .open = [](const SourceArguments& given, int threads) -> Opened {
         ASSIGN_OR_RETURN(DrawnMasks masks, MasksOf(given));
         return Yolo(given.at("data"), given.at("split"),
                     {.threads = threads, .masks = std::move(masks)});
       }},
      {.kind = "voc",
       .arguments = {{.name = "root"},
                     {.name = "year", .standard = "", .is_path = false},
                     {.name = "split", .standard = "train", .is_path = false},
                     {.name = "task", .standard = "detection", .is_path = false},
                     {.name = "keep_difficult", .standard = "on", .is_path = false},
                     {.name = "one_based", .standard = "on", .is_path = false},
                     {.name = "check_sizes", .standard = "on", .is_path = false},
                     {.name = "class_names", .standard = "", .is_path = false},
                     {.name = "instances", .standard = "off", .is_path = false},
                     {.name = "fill", .standard = "255", .is_path = false}},
       .open = &OpenVoc},
      {.kind = "packed",
       .arguments = {{.name = "folder"},
                     {.name = "cache", .standard = "off", .words = {"off"}},
                     {.name = "cache_bytes", .standard = "0", .is_path = false}},
       .open = &OpenPacked},
      {.kind = "records",
       .arguments = {{.name = "paths"},
                     {.name = "record", .is_path = false},
                     {.name = "offset", .standard = "0", .is_path = false}},
       .open = [](const SourceArguments& given, int /*threads*/) -> Opened {
         return OpenRecords(given.at("paths"), given.at("record"), given.at("offset"));
       }},
      {.kind = "tar",
       .arguments = {{.name = "shards", .is_path = false},  // each of its paths is checked
                     {.name = "root", .standard = "off", .words = {"off"}},
                     {.name = "image", .standard = kTarImages, .is_path = false},
                     {.name = "label", .standard = kTarLabel, .is_path = false},
                     {.name = "columns", .standard = "", .is_path = false},
                     {.name = "keyed_columns", .standard = "", .is_path = false},
                     {.name = "cache", .standard = "off", .words = {"off"}},
                     {.name = "cache_bytes", .standard = "0", .is_path = false}},
       .open = &OpenTar},
      {.kind = "tfrecord",
       .arguments = {{.name = "shards", .is_path = false},  // each of its paths is checked
                     {.name = "root", .standard = "off", .words = {"off"}},
                     {.name = "image", .standard = kTfRecordImage, .is_path = false},
                     {.name = "label", .standard = kTfRecordLabel, .is_path = false},
                     {.name = "columns", .standard = "", .is_path = false},
                     {.name = "keyed_columns", .standard = "", .is_path = false},
                     {.name = "class_names", .standard = "", .is_path = false},
                     {.name = "cache", .standard = "off", .words = {"off"}},
                     {.name = "cache_bytes", .standard = "0", .is_path = false}},
       .open = &OpenTfRecord},
      {.kind = "arrow",
       .arguments = {{.name = "shards", .is_path = false},  // each of its paths is checked
                     {.name = "root", .standard = "off", .words = {"off"}},
                     {.name = "image", .standard = "image", .is_path = false},
                     {.name = "label", .standard = "auto", .is_path = false},
                     {.name = "columns", .standard = "", .is_path = false},
                     {.name = "cache", .standard = "off", .words = {"off"}},
                     {.name = "cache_bytes", .standard = "0", .is_path = false}},
       .open = &OpenArrow},
      {.kind = "arrays",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return OtherProcessError("these arrays are",
                                  "Keep the loader, make it here, or read from files");
       }},
      {.kind = "files",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return OtherProcessError("this list of files is", "Keep the loader, or make it here");
       }},
      {.kind = "dataset",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return OtherProcessError("this dataset is", "Keep the loader, or make it here");
       }},
      {.kind = "derived",
       .arguments = {{.name = "key", .standard = "", .is_path = false}},
       .open = [](const SourceArguments& /*given*/, int /*threads*/) -> Opened {
         return OtherProcessError("this choice of samples is", "Keep the loader, or make it here");
       }},
      {.kind = "manifest",
       .arguments = {{.name = "path"},
                     {.name = "root", .standard = "auto", .words = {"auto"}},
                     {.name = "path_column", .standard = "auto", .is_path = false},
                     {.name = "label_column", .standard = "auto", .is_path = false},
                     {.name = "columns", .standard = "auto", .is_path = false},
                     {.name = "keyed_columns", .standard = "", .is_path = false}},
       .open = &OpenManifest},
  };
}

}  // namespace

std::span<const SourceRow> AllSources() {
  static const std::vector<SourceRow> table = MakeTable();
  return table;
}

Result<std::shared_ptr<const SampleSource>> OpenSource(std::string_view kind,
                                                       SourceArguments arguments, int threads) {
  const auto row =
      std::ranges::find_if(AllSources(), [kind](const SourceRow& r) { return r.kind == kind; });
  for (const SourceArgument& argument : row->arguments) {
    if (argument.standard != nullptr) arguments.emplace(argument.name, argument.standard);
  }
  return row->open(arguments, threads);
}

}  // namespace stoker
