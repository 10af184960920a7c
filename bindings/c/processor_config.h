// Parses the configuration of an image processor of Hugging Face, and the options of a Processor.
#pragma once

#include <string_view>

#include "core/result/result.h"
#include "engine/arrays/processor.h"
#include "transforms/processor/recipe.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

class JsonObject;

// `json`: the text of a preprocessor_config.json, or of a processor_config.json that has one as
// "image_processor"; the keys next to that are not read. `overrides`: an object whose keys replace
// those of the image processor. A key that is missing or null has the default of its class in
// transformers 5.24.0. `resampler`: kTorchvision, as transformers
// chooses where torchvision is installed, whichever class is named; or kPillowExact, for the class
// with Pil.
//
// The texts may be hostile: at most 1 MiB each, and 24 levels deep. InvalidArgument: text that is
// not JSON; and naming the key, an unknown processor or key, a key twice, and values of a wrong
// type or out of range. Unimplemented: a filter or a class that the resampler does not have.
Result<ProcessorRecipe> ParseProcessorConfig(std::string_view json, ResampledAs resampler,
                                             std::string_view overrides = "{}");

// Parse the key `processor` of a loader spec (docs/loader-spec.md), or its text, of any length.
// Errors: as above, and those of keys.
Result<ProcessorOptions> ReadProcessor(JsonObject& object);
Result<ProcessorOptions> ParseProcessorOptions(std::string_view json);

}  // namespace stoker
