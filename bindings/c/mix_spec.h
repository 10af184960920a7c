// Reads the loader spec's key `mix`. Private to bindings/c.
#pragma once

#include <optional>

#include "bindings/c/json_object.h"
#include "transforms/mix/batch_mix.h"

namespace stoker {

// Returns nullopt if `object` has no such key; failures are recorded in the object. Loader::Open
// checks the ranges.
std::optional<BatchMix> ReadMix(JsonObject& object);

}  // namespace stoker
