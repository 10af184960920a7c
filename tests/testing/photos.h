// Real photographs, for tests that can do without them: those below the folder that the environment
// variable STOKER_PHOTOS names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stoker::testing {

// Sorted; empty when the variable is not set. Every fifth one where Effort is less than full.
std::vector<std::filesystem::path> Photos();

std::vector<uint8_t> ReadFile(const std::filesystem::path& path);

}  // namespace stoker::testing
