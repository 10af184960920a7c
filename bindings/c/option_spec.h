// Reads options from JSON. Internal to bindings/c.
#pragma once

#include "bindings/c/json_object.h"
#include "transforms/spec/option.h"

namespace stoker {

// Sets `value` to that of the key with the option's name, if `object` has it. Failures are recorded
// in the object. Numbers and choices are in their ranges afterwards.
void ReadOption(JsonObject& object, const OptionInfo& option, const OptionValue& value);

}  // namespace stoker
