// The loader spec's key `mix`. bindings/c's own.
#pragma once

#include <optional>

#include "bindings/c/json_object.h"
#include "transforms/mix/batch_mix.h"

namespace stoker {

// None where `object` has no such key; failures are the object's. Whether the numbers are in their
// ranges is for Loader::Open to say.
std::optional<BatchMix> ReadMix(JsonObject& object);

}  // namespace stoker
