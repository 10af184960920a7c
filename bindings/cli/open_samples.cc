#include "bindings/cli/open_samples.h"

#include <filesystem>
#include <system_error>

#include "bindings/cli/split_folders.h"
#include "core/try.h"
#include "io/sources/manifest.h"
#include "io/sources/open_source.h"

namespace stoker::cli {

namespace {

// The kind of source that DIR is, by its name.
const char* KindOf(const std::string& given) {
  std::error_code failed;
  if (std::filesystem::is_directory(given, failed)) return "image_folder";
  if (given.ends_with(".tar")) return "tar";
  // As TensorFlow Datasets names them: "mnist-train.tfrecord-00000-of-00001".
  if (given.find(".tfrecord") != std::string::npos) return "tfrecord";
  return "image_folder";
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> OpenSamples(const std::string& given,
                                                        const std::string& crop_index) {
  if (IsManifest(given)) return Manifest(given);
  const std::string kind = KindOf(given);
  if (kind != "image_folder") {
    if (crop_index == "auto" || crop_index == "off") {
      return OpenSource(kind, {{"shards", given}, {"root", "."}});
    }
    return Error{.code = Code::kInvalidArgument,
                 .cause = "--crop-index is for folders; archives have none"};
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   OpenSource("image_folder", {{"directory", given}, {"crop_index", crop_index}}));
  WarnOfSplits(given, source->classes());
  return source;
}

}  // namespace stoker::cli
