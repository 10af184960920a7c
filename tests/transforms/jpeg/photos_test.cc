// The same promise on real photographs: those below the directory that STOKER_PHOTOS names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/transforms/jpeg/decode.h"

namespace stoker::testing {
namespace {

std::vector<uint8_t> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> Photos() {
  std::vector<std::filesystem::path> paths;
  const char* directory = std::getenv("STOKER_PHOTOS");  // NOLINT: no thread changes it
  if (directory == nullptr) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const bool hidden = entry.path().filename().string()[0] == '.';  // then it is no photograph
    if (entry.is_regular_file() && !hidden) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Photos, RegionsEqualTheFullDecode) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  JpegDecoder decoder;
  KeepRows sink;
  uint64_t n = 0;
  for (const auto& path : paths) {
    const std::vector<uint8_t> bytes = ReadFile(path);
    const std::vector<uint8_t> padded = Padded(bytes);
    const Result<WholeImage> whole = DecodeWhole(bytes);
    ASSERT_TRUE(whole.ok()) << path << ": " << whole.error().ToString();
    RandomStream random({11, 0, ++n}, 0);
    std::vector<Rect> regions = EdgeRegions(whole->size);
    for (int i = 0; i < 6; ++i) regions.push_back(RandomRegion(whole->size, random));
    for (const Rect& region : regions) {
      const Status status = DecodeAll(decoder, padded, region, sink);
      ASSERT_TRUE(status.ok()) << path << ": " << status.error().ToString();
      ASSERT_EQ(Difference(sink, region, *whole), "") << path << " " << Text(region);
    }
  }
}

TEST(Photos, TruncatedAtTwentyPlaces) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  const std::vector<uint8_t> bytes = ReadFile(paths[paths.size() / 2]);
  JpegDecoder decoder;
  KeepRows sink;
  for (size_t i = 1; i <= 20; ++i) {
    const size_t size = bytes.size() * i / 20 - 1;
    const Status status = DecodeAll(decoder, Padded(std::span(bytes).first(size)), {}, sink);
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_EQ(status.error().offset, size);
    EXPECT_EQ(status.error().cause, "truncated JPEG: no end-of-image marker");
  }
}

}  // namespace
}  // namespace stoker::testing
