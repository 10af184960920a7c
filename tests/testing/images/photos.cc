#include "tests/testing/images/photos.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/testing/effort.h"

namespace stoker::testing {

std::vector<std::filesystem::path> PhotosIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const bool hidden = entry.path().filename().string()[0] == '.';  // not a photograph
    if (entry.is_regular_file() && !hidden) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::filesystem::path> Photos() {
  const char* directory = std::getenv("STOKER_PHOTOS");  // NOLINT: no thread changes it
  if (directory == nullptr) return {};
  const std::vector<std::filesystem::path> paths = PhotosIn(directory);
  const size_t step = paths.size() / static_cast<size_t>(Effort(static_cast<int>(paths.size())));
  std::vector<std::filesystem::path> taken;
  for (size_t i = 0; i < paths.size(); i += step) taken.push_back(paths[i]);
  return taken;
}

std::vector<uint8_t> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace stoker::testing
