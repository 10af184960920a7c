// Describes the tables of transforms, loader options and counters as JSON, for Python's checks and
// tools/generate.py. Internal to bindings.
#pragma once

#include <string>

namespace stoker {

// {"transforms": [a TransformRow, …], "loader": [a LoaderOptionRow, …], "device": [a
// DeviceOptionRow, …], "counters": [a CounterRow, …]}, with the members' names.
std::string DescribedAsJson();

}  // namespace stoker
