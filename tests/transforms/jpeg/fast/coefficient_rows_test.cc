// The fast decoder decodes the whole of a photograph that has a crop index.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/decode.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

// Sets the factors of all quantization tables.
void SetFactors(std::vector<uint8_t>& jpeg, uint8_t factor) {
  for (size_t i = 0; i + 69 < jpeg.size(); ++i) {
    if (jpeg[i] == 0xFF && jpeg[i + 1] == 0xDB) std::fill_n(&jpeg[i + 5], 64, factor);
  }
}

TEST(CropIndexes, AreOfFilesThatTheFastDecoderDecodes) {
  Random random(77);
  jpeg::CropIndexMaker maker(3);
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  int indexed = 0, out_of_range = 0;
  for (int n = 0; n < Effort(2000); ++n) {
    SCOPED_TRACE(n);
    const Sampling sampling = kSamplings[n % 4];
    JpegOptions options{.width = random.Between(3, 120), .height = random.Between(1, 90)};
    if (random.OneIn(5)) options.color = JpegColor::kGray;
    options.sampling = Luma(sampling.columns, sampling.rows);
    options.quality = random.Between(20, 100);
    options.restart_interval = random.OneIn(3) ? random.Between(1, 20) : 0;
    options.seed = static_cast<uint64_t>(n);
    std::vector<uint8_t> jpeg = MakeJpeg(options);
    if (random.OneIn(2)) SetFactors(jpeg, static_cast<uint8_t>(random.Between(1, 255)));
    const auto end = static_cast<int>(jpeg.size());
    for (int i = random.Between(0, 3); i > 0; --i) {
      jpeg[random.Between(end * 2 / 3, end - 3)] ^= static_cast<uint8_t>(1 << random.Between(0, 7));
    }
    jpeg.resize(jpeg.size() + kBufferPadding);
    const auto file = std::span<const uint8_t>(jpeg).first(jpeg.size() - kBufferPadding);
    std::vector<uint8_t> index;
    const Fallback why = maker.Make(file, index);
    JpegDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(file);
    if (!info.ok()) continue;
    KeepRows rows;
    (void)decoder.Decode({0, 0, info->size.width, info->size.height}, rows);
    const DecodePaths& paths = decoder.paths();
    if (why == Fallback::kNone) {
      ASSERT_EQ(paths.fast, 1u);
      ++indexed;
    } else if (why == Fallback::kCoefficient) {
      ASSERT_EQ(paths.fallback[static_cast<size_t>(why)], 1u);
      ++out_of_range;
    }
  }
  EXPECT_GT(indexed, Effort(2000) / 10);
  EXPECT_GT(out_of_range, Effort(2000) / 20);
}

}  // namespace
}  // namespace stoker::testing
