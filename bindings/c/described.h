// Describes the tables of transforms and loader options as JSON, for Python's checks and
// tools/generate.py. Internal to bindings.
#pragma once

#include <string>

namespace stoker {

// {"transforms": [a TransformRow, …], "loader": [a LoaderOptionRow, …]}, with the members' names.
std::string DescribedAsJson();

}  // namespace stoker
