// Any region of any kind of WebP is that region of libwebp's full decode.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/webp/decoder.h"
#include "transforms/webp/reference_decoder.h"

namespace stoker {
namespace {

using testing::Compare;
using testing::EdgeRegions;
using testing::MakeWebp;
using testing::Padded;
using testing::RandomRegion;
using testing::WebpOptions;

const std::vector<WebpOptions>& WebpKinds() {
  static const std::vector<WebpOptions> kinds = {
      {},
      {.quality = 10},
      {.simple_filter = true},
      {.quality = 5, .simple_filter = true, .filter_strength = 100},
      {.filter_strength = 0},
      {.alpha = true},
      {.lossless = true},
      {.lossless = true, .alpha = true},
      {.lossless = true, .colors = 2},
      {.lossless = true, .colors = 13},
      {.lossless = true, .quality = 75, .method = 4},
  };
  return kinds;
}

class EachWebpKind : public ::testing::TestWithParam<size_t> {
 protected:
  void ExpectExact(const WebpOptions& options, const std::vector<Rect>& regions) {
    const std::vector<uint8_t> webp = Padded(MakeWebp(options));
    const WholeImage whole = DecodeWholeWebp(testing::Unpadded(webp)).value();
    for (const Rect& region : regions) {
      ASSERT_EQ(Compare(decoder_, webp, region, whole), "")
          << options.width << " × " << options.height << " seed " << options.seed;
    }
  }

  WebpDecoder decoder_;  // of all: state must not leak
};

TEST_P(EachWebpKind, SmallImagesEqualTheFullDecode) {
  for (int size = 1; size <= 40; ++size) {
    WebpOptions options = WebpKinds()[GetParam()];
    options.width = size;
    options.height = 41 - size;
    options.seed = static_cast<uint64_t>(size);
    ExpectExact(options, EdgeRegions({options.width, options.height}));
  }
}

TEST_P(EachWebpKind, RandomRegionsEqualTheFullDecode) {
  RandomStream random({5, 0, GetParam()}, 0);
  for (int round = 0; round < testing::Effort(20); ++round) {
    WebpOptions options = WebpKinds()[GetParam()];
    options.width = 1 + static_cast<int>(random.Below(100));
    options.height = 1 + static_cast<int>(random.Below(100));
    options.seed = random.Below(1 << 30);
    std::vector<Rect> regions;
    for (int i = 0; i < 12; ++i) {
      regions.push_back(RandomRegion({options.width, options.height}, random));
    }
    ExpectExact(options, regions);
  }
}

// DecodeUnchanged keeps alpha where there is any, and writes no other byte.
TEST_P(EachWebpKind, UnchangedRegionsHaveTheirAlpha) {
  RandomStream random({6, 0, GetParam()}, 0);
  for (int round = 0; round < testing::Effort(60); ++round) {
    WebpOptions options = WebpKinds()[GetParam()];
    options.width = 1 + static_cast<int>(random.Below(100));
    options.height = 1 + static_cast<int>(random.Below(100));
    options.seed = random.Below(1 << 30);
    const std::vector<uint8_t> webp = Padded(MakeWebp(options));
    const std::vector<uint8_t> whole = DecodeWholeWebpRgba(testing::Unpadded(webp)).value();
    const ImageInfo info = decoder_.Open(testing::Unpadded(webp)).value();
    const bool all = round % 3 == 0;
    const Rect region =
        all ? Rect{0, 0, info.size.width, info.size.height} : RandomRegion(info.size, random);
    const size_t channels = info.alpha ? 4 : 3;
    ASSERT_TRUE(info.alpha || !options.alpha);
    std::vector<uint8_t> pixels(
        channels * static_cast<size_t>(region.width) * static_cast<size_t>(region.height) + 1,
        0x5A);
    const Status status = decoder_.DecodeUnchanged(region, pixels.data());
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(pixels.back(), 0x5A);
    for (size_t i = 0; i + 1 < pixels.size(); ++i) {
      const auto pixel = static_cast<int>(i / channels);
      const int x = region.x + pixel % region.width, y = region.y + pixel / region.width;
      const auto at = static_cast<size_t>(y * info.size.width + x);
      ASSERT_EQ(pixels[i], whole[at * 4 + i % channels]) << round << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Webp, EachWebpKind, ::testing::Range<size_t>(0, 11));

}  // namespace
}  // namespace stoker
