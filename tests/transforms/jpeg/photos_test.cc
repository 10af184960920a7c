// Checks the same promises on real photographs: those below the directory that STOKER_PHOTOS names.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/decode.h"

namespace stoker::testing {
namespace {

// Compares regions of the photograph, reduced, with the same regions of a full decode.
void CheckRegions(JpegDecoder& decoder, const std::vector<uint8_t>& bytes, Reduction reduction,
                  const DrawKey& key) {
  const std::vector<uint8_t> padded = Padded(bytes);
  const Result<WholeImage> whole = DecodeWhole(bytes, reduction);
  ASSERT_TRUE(whole.ok()) << whole.error().ToString();
  RandomStream random(key, 0);
  std::vector<Rect> regions = EdgeRegions(whole->size);
  for (int i = 0; i < 6; ++i) regions.push_back(RandomRegion(whole->size, random));
  KeepRows sink;
  for (const Rect& region : regions) {
    const Status status = DecodeAll(decoder, padded, region, sink, {}, reduction);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(Difference(sink, region, *whole), "") << Text(region);
  }
}

// Calls check(file's bytes, its number from 1) until a check fails fatally.
template <class Check>
void ForEachPhoto(const Check& check) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  uint64_t n = 0;
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    check(ReadFile(path), ++n);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Photos, RegionsEqualTheFullDecode) {
  JpegDecoder decoder;
  ForEachPhoto([&](const std::vector<uint8_t>& bytes, uint64_t n) {
    CheckRegions(decoder, bytes, 1, {11, 0, n});
  });
}

TEST(Photos, ReducedRegionsEqualTheFullDecode) {
  JpegDecoder decoder;
  ForEachPhoto([&](const std::vector<uint8_t>& bytes, uint64_t n) {
    const std::vector<uint8_t> padded = Padded(bytes);
    const Reduction most = MaxReduction(OpenPadded(decoder, padded).value());
    CheckRegions(decoder, bytes, std::min(2 << ((n - 1) % 3), most), {12, 0, n});
  });
  EXPECT_EQ(decoder.paths().fallback[static_cast<size_t>(Fallback::kCoefficient)], 0u);
}

TEST(Photos, RefusesTruncatedPhotographs) {
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
