#include "bindings/cli/open_samples.h"

#include <filesystem>
#include <system_error>

#include "bindings/cli/split_folders.h"
#include "core/try.h"
#include "io/sources/manifest.h"
#include "io/sources/open_source.h"

namespace stoker::cli {

namespace {

// Whether DIR is a pattern of tar archives, by its name.
bool IsTar(const std::string& given) {
  std::error_code failed;
  return given.ends_with(".tar") && !std::filesystem::is_directory(given, failed);
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> OpenSamples(const std::string& given,
                                                        const std::string& crop_index) {
  if (IsManifest(given)) return Manifest(given);
  if (IsTar(given)) {
    if (crop_index == "auto" || crop_index == "off") {
      return OpenSource("tar", {{"shards", given}, {"root", "."}});
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
