// Real photographs, for tests that can run without them: those below the folder named by the
// environment variable STOKER_PHOTOS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stoker::testing {

// The files below the folder, sorted, without hidden ones.
std::vector<std::filesystem::path> PhotosIn(const std::filesystem::path& folder);

// Sorted; empty if the variable is not set. Every fifth one if Effort is less than full.
std::vector<std::filesystem::path> Photos();

std::vector<uint8_t> ReadFile(const std::filesystem::path& path);

}  // namespace stoker::testing
