// The same promise on real photographs: those below the directory that STOKER_PHOTOS names.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/images/photos.h"
#include "tests/transforms/whole.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

TEST(PackedPhotos, AreRestoredAndHaveTheSamePixels) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  JpegPacker packer;
  ImageDecoder decoder;
  JpegDecoder theirs;
  uint64_t n = 0;
  size_t packed_photos = 0, fast_photos = 0;
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    const std::vector<uint8_t> jpeg = ReadFile(path), padded = Padded(jpeg);
    const Result<WholeImage> whole = DecodeWhole(jpeg);
    if (!whole.ok()) continue;
    KeepRows rows;
    ASSERT_TRUE(DecodeAll(theirs, padded, {}, rows).ok());
    ++fast_photos;
    const Result<std::vector<uint8_t>> packed = packer.Pack(Unpadded(padded));
    if (!packed.ok()) {
      ASSERT_EQ(packed.error().code, Code::kUnimplemented) << packed.error().ToString();
      continue;
    }
    ++packed_photos;
    const std::vector<uint8_t> file = Padded(*packed);
    const Result<std::vector<uint8_t>> restored = RestoreJpeg(Unpadded(file));
    ASSERT_TRUE(restored.ok()) << restored.error().ToString();
    ASSERT_EQ(*restored, jpeg);
    RandomStream random({11, 0, ++n}, 0);
    std::vector<Rect> regions = EdgeRegions(whole->size);
    for (int i = 0; i < 6; ++i) regions.push_back(RandomRegion(whole->size, random));
    for (const Rect& region : regions) {
      ASSERT_EQ(Compare(decoder, file, region, *whole), "");
    }
  }
  EXPECT_GE(packed_photos * 2, fast_photos);
}

}  // namespace
}  // namespace stoker::testing
