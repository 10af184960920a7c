// A loader in words: the JSON object that Python hands to C++, and that a dataset op carries to
// other processes. docs/loader-spec.md has the keys.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "engine/loader/options.h"
#include "io/sources/source.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/plan/plan.h"
#include "transforms/spec/transform.h"

namespace stoker {

// The longest text that is looked at, in bytes.
inline constexpr size_t kLongestSpec = size_t{1} << 20;

// `source`: where it is given, the samples come from it, and `json` only describes it; else the
// source that `json` names is opened, which lists a folder. The Runtime is left to the caller.
//
// Whoever wrote the text may be hostile. InvalidArgument names the key: text that is no JSON, keys
// that are unknown or missing, values of a wrong type, numbers that do not fit. Whether the values
// make sense together is for Loader::Open to say. FailedPrecondition: the samples are not here (an
// arrays source of another process), or not those that were described (the folder has changed).
// Otherwise what opening the source returns.
Result<LoaderOptions> ParseLoaderSpec(std::string_view json,
                                      std::shared_ptr<const SampleSource> source = nullptr);

// SampleSource::Fingerprint() as the spec writes it: 16 hexadecimal digits.
std::string FingerprintText(const SampleSource& source);

// What is done to samples, without a loader.
struct TransformSpec {
  std::vector<Transform> transforms;
  PlanOptions options;
  std::optional<BatchMix> mix;
};

// The keys `transforms`, `dtype`, `layout`, `exif_orientation`, `max_pixels` and `max_scans` of the
// same object, and in a recipe `mix`; all others are unknown here. Errors as above.
Result<TransformSpec> ParseTransformSpec(std::string_view json);
Result<TransformSpec> ParseRecipe(std::string_view json);

}  // namespace stoker
