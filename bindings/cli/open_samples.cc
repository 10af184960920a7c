#include "bindings/cli/open_samples.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "bindings/cli/outcome.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/annotations/voc.h"
#include "io/arrow/huggingface.h"
#include "io/index/split_folders.h"
#include "io/manifest/manifest.h"
#include "io/open_source.h"
#include "io/packed/open_packed.h"

namespace stoker::cli {

namespace {

// The kind of source that DIR is, by its name.
const char* KindOf(const std::string& given) {
  if (IsManifest(given)) return "manifest";
  std::error_code failed;
  if (std::filesystem::is_directory(given, failed)) {
    if (IsPackedSet(given)) return "packed";
    if (IsSavedDataset(given)) return "arrow";
    return IsVocFolder(given) ? "voc" : "image_folder";
  }
  if (given.ends_with(".arrow") || given.ends_with(".feather")) return "arrow";
  if (given.ends_with(".parquet")) return "arrow";  // which says how such files are read
  if (given.ends_with(".tar")) return "tar";
  if (given.ends_with(".json")) return "coco";
  if (given.ends_with(".yaml") || given.ends_with(".yml")) return "yolo";
  // As TensorFlow Datasets names them: "mnist-train.tfrecord-00000-of-00001".
  if (given.find(".tfrecord") != std::string::npos) return "tfrecord";
  return "image_folder";
}

// Adds --source-option's values, NAME=VALUE, to the arguments of this kind of source. Those with
// the same name are lines of one.
Status AddOptions(const std::string& kind, const std::vector<std::string>& options,
                  SourceArguments& arguments) {
  const auto row =
      std::ranges::find_if(AllSources(), [&](const SourceRow& r) { return r.kind == kind; });
  SourceArguments added;
  for (const std::string& option : options) {
    const size_t equals = std::min(option.find('='), option.size());
    const std::string name = option.substr(0, equals);
    const bool known = !arguments.contains(name) &&
                       std::ranges::any_of(row->arguments, [&](const SourceArgument& argument) {
                         return argument.name == name;
                       });
    if (!known || equals == option.size()) {
      std::string names;
      for (const SourceArgument& argument : row->arguments) {
        if (!arguments.contains(argument.name)) names += std::string(" ") + argument.name;
      }
      return Error{.code = Code::kInvalidArgument,
                   .cause = "--source-option is '" + Printable(option) + "'; it must be NAME=VALUE",
                   .advice = "The names for " + kind + " are:" + (names.empty() ? " none" : names)};
    }
    const auto [there, is_new] = added.emplace(name, option.substr(equals + 1));
    if (!is_new) there->second += "\n" + option.substr(equals + 1);
  }
  arguments.merge(added);
  return {};
}

std::vector<std::string> ClassesWithoutSamples(const SampleSource& source) {
  std::vector<bool> has(source.classes().size());
  if (has.empty()) return {};
  for (uint64_t id = 0; id < source.size(); ++id) {
    has[static_cast<size_t>(source.LabelOf(id))] = true;
  }
  std::vector<std::string> without;
  for (size_t label = 0; label < has.size(); ++label) {
    if (!has[label]) without.push_back(source.classes()[label]);
  }
  return without;
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> OpenSamples(const std::string& given,
                                                        const std::string& crop_index,
                                                        const std::vector<std::string>& options,
                                                        int threads) {
  std::string kind = KindOf(given);
  const bool has_masks = std::ranges::any_of(
      options, [](const std::string& option) { return option.starts_with("masks="); });
  if (kind == "image_folder" && has_masks) kind = "masks";
  SourceArguments arguments;
  if (kind == "image_folder") {
    arguments = {{"directory", given}, {"crop_index", crop_index}, {"allow_empty", "on"}};
  } else if (kind == "manifest") {
    arguments = {{"path", given}};
  } else {
    if (crop_index != "auto" && crop_index != "off") {
      return Error{.code = Code::kInvalidArgument,
                   .cause = kind == "masks"
                                ? "--crop-index is for folders of images without masks"
                                : "--crop-index is for folders of images; files of many have none"};
    }
    if (kind == "packed") {
      arguments = {{"folder", given}};
    } else if (kind == "masks") {
      arguments = {{"images", given}};
    } else if (kind == "coco") {
      arguments = {{"json", given}};
    } else if (kind == "voc") {
      arguments = {{"root", given}};
    } else if (kind == "yolo") {
      arguments = {{"data", given}};
    } else {
      arguments = {{"shards", given}, {"root", "."}};
    }
  }
  TRY(AddOptions(kind, options, arguments));
  if (kind == "coco" && !arguments.contains("images")) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "'" + Printable(given) + "' does not say where its images are",
                 .advice = "Give their folder: --source-option images=DIR"};
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   OpenSource(kind, std::move(arguments), threads));
  if (kind == "image_folder") WarnOfFolder(given, *source);
  if (kind == "packed") WarnOfPackedSplits(given, source->classes());
  return source;
}

Status CheckIsFolder(const std::string& command, const std::string& given) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> kOthers = {
      {{"tar", "tar archives"},
       {"tfrecord", "TFRecord files"},
       {"arrow", "Arrow or Parquet files"},
       {"manifest", "a manifest"},
       {"coco", "a JSON file"},
       {"voc", "a data set of Pascal VOC's layout"},
       {"yolo", "a YAML file"}}};
  const auto* const other = std::ranges::find(kOthers, std::string_view(KindOf(given)),
                                              &std::pair<std::string_view, const char*>::first);
  if (other == kOthers.end()) return {};
  return Error{
      .code = Code::kInvalidArgument,
      .cause = "`stoker " + command + "` takes a folder of images, and not " + other->second,
      .file = given,
      .advice = std::string("`stoker verify` checks their samples and `stoker bench` reads them") +
                (command == "inspect" ? "" : "; they need no index and no packed set")};
}

void WarnOfSplits(const std::string& directory, std::span<const std::string> classes) {
  const std::string text = SplitWarning(directory, classes);
  if (!text.empty()) Warn(text);
}

void WarnOfPackedSplits(const std::string& directory, std::span<const std::string> classes) {
  const std::string text = PackedSplitWarning(directory, classes);
  if (!text.empty()) Warn(text);
}

void WarnOfFolder(const std::string& directory, const SampleSource& source) {
  WarnOfSplits(directory, source.classes());
  const std::vector<std::string> empty = ClassesWithoutSamples(source);
  if (empty.empty()) return;
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(empty.size(), kNamed); ++i) {
    names += (i == 0 ? "'" : ", '") + empty[i] + "'";
  }
  Warn(directory + ": " + std::to_string(empty.size()) +
       Plural(empty.size(), " class has", " classes have") + " no image: " + names +
       (empty.size() > kNamed ? ", …" : "") + ". image_folder refuses this without allow_empty");
}

}  // namespace stoker::cli
