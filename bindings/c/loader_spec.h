// Parses the loader spec: a loader as a JSON object that Python passes to C++, and that a dataset
// op carries to other processes. docs/loader-spec.md lists the keys.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "engine/options/options.h"
#include "io/source/source.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/plan/plan.h"
#include "transforms/spec/transform.h"

namespace stoker {

// The longest accepted text, in bytes.
inline constexpr size_t kLongestSpec = size_t{1} << 20;

// Parses a loader spec. `source`: if given, the samples come from it, and `json` only describes it;
// otherwise the source that `json` names is opened, which lists a folder. `map`: the function that
// `json` names, which exists only in this process. The caller sets the Runtime.
//
// The text may be hostile. InvalidArgument names the key: text that is not JSON, unknown or missing
// keys, values of a wrong type, numbers out of range. Loader::Open checks whether the values fit
// together. FailedPrecondition: the samples, or the function, are not available here (those in the
// memory of another process), or not the described ones (the folder has changed). Otherwise the
// errors of opening the source.
Result<LoaderOptions> ParseLoaderSpec(std::string_view json,
                                      std::shared_ptr<const SampleSource> source = nullptr,
                                      std::shared_ptr<const MapFunction> map = nullptr);

// Parses the options of batches on devices, `buffers` and `crop_bytes`. Errors as above.
Result<DeviceOptions> ParseDeviceOptions(std::string_view json);

// The processing of samples, without a loader.
struct TransformSpec {
  std::vector<Transform> transforms;
  std::vector<std::vector<Transform>> views{};  // LoaderOptions::views
  PlanOptions options;
  std::optional<BatchMix> mix;
};

// Parse the keys `transforms`, `dtype`, `layout`, `channels`, `exif_orientation`, `decode`,
// `max_pixels`, `max_scans`, `accept_truncated` and `accept_16_bits` of the same object, and in a
// recipe `views` and `mix`; all other keys are unknown here. Errors as above.
Result<TransformSpec> ParseTransformSpec(std::string_view json);
Result<TransformSpec> ParseRecipe(std::string_view json);

}  // namespace stoker
