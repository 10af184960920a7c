#include "bindings/cli/open_samples.h"

#include "bindings/cli/split_folders.h"
#include "core/try.h"
#include "io/sources/manifest.h"
#include "io/sources/open_source.h"

namespace stoker::cli {

Result<std::shared_ptr<const SampleSource>> OpenSamples(const std::string& given,
                                                        const std::string& crop_index) {
  if (IsManifest(given)) return Manifest(given);
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   OpenSource("image_folder", {{"directory", given}, {"crop_index", crop_index}}));
  WarnOfSplits(given, source->classes());
  return source;
}

}  // namespace stoker::cli
