// Runs a function once for each instruction set that this CPU has and the library was built for.
#pragma once

#include <functional>

namespace stoker::testing {

void ForEachTarget(const std::function<void()>& run);

}  // namespace stoker::testing
