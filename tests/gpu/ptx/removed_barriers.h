// For thread_lanes.cc: barriers that no thread waits at.
#pragma once

#include <cstdint>
#include <set>

namespace stoker::testing::ptx {

// Indices in Barriers(). To be called before the first launch.
void RemoveBarriers(const std::set<uint32_t>& barriers);

}  // namespace stoker::testing::ptx
