// The transforms of a loader spec. bindings/c's own; docs/loader-spec.md has the keys.
#pragma once

#include "bindings/c/json_object.h"
#include "transforms/spec/transform.h"

namespace stoker {

// The transform that `object` names, with the keys that it has. Failures are the object's.
Transform ReadTransform(JsonObject& object);

}  // namespace stoker
