// Reads the transforms of a loader spec. Private to bindings/c; docs/loader-spec.md lists the keys.
#pragma once

#include "bindings/c/json_object.h"
#include "transforms/spec/transform.h"

namespace stoker {

// Reads the transform that `object` names, with its keys. Failures are recorded in the object.
Transform ReadTransform(JsonObject& object);

}  // namespace stoker
