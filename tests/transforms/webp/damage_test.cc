// Damaged WebPs are refused, in plain words, and limits and budgets hold.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/webp/decoder.h"
#include "transforms/webp/reference_decoder.h"

namespace stoker {
namespace {

using testing::ErrorOf;
using testing::MakeWebp;
using testing::Padded;
using testing::Unpadded;
using testing::WebpOptions;

const std::vector<WebpOptions>& DamagedKinds() {
  static const std::vector<WebpOptions> kinds = {
      {.width = 40, .height = 30},
      {.width = 40, .height = 30, .alpha = true},
      {.width = 40, .height = 30, .lossless = true},
      {.width = 40, .height = 30, .lossless = true, .colors = 5}};
  return kinds;
}

TEST(WebpDamage, RefusesTruncationAtEveryByte) {
  WebpDecoder decoder;
  for (const WebpOptions& options : DamagedKinds()) {
    const std::vector<uint8_t> webp = MakeWebp(options);
    for (size_t size = 0; size < webp.size(); ++size) {
      const std::vector<uint8_t> cut(webp.begin(), webp.begin() + static_cast<ptrdiff_t>(size));
      const Error error = ErrorOf(decoder, Padded(cut));
      ASSERT_EQ(error.code, Code::kDataLoss) << size;
      ASSERT_TRUE(error.cause.starts_with("truncated WebP") || size < 12) << error.cause;
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= size);
    }
  }
}

// Sets the sizes of the file and of its image chunk to those of the shortened data.
TEST(WebpDamage, RefusesDataThatEndEarly) {
  WebpDecoder decoder;
  for (const bool lossless : {false, true}) {
    std::vector<uint8_t> webp = MakeWebp({.width = 200, .height = 200, .lossless = lossless});
    webp.resize(webp.size() / 4 * 2);
    const size_t size = webp.size();
    for (size_t i = 0; i < 4; ++i) {
      webp[4 + i] = static_cast<uint8_t>((size - 8) >> (8 * i));
      webp[16 + i] = static_cast<uint8_t>((size - 20) >> (8 * i));
    }
    const Error error = ErrorOf(decoder, Padded(webp));
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_TRUE(error.cause.starts_with("damaged WebP")) << error.cause;
    EXPECT_EQ(error.offset, 12u);
    // The rows at the top are there.
    EXPECT_EQ(ErrorOf(decoder, Padded(webp), {0, 0, 200, 10}).cause, "");
  }
}

// The verdict is that of libwebp's whole decode, except for alpha, which is not read.
TEST(WebpDamage, AgreesWithAWholeDecodeOnFlippedBits) {
  WebpDecoder decoder;
  int refused = 0;
  for (const WebpOptions& options : DamagedKinds()) {
    const std::vector<uint8_t> webp = MakeWebp(options);
    RandomStream random({9, 0, webp.size()}, 0);
    for (int round = 0; round < testing::Effort(3000); ++round) {
      std::vector<uint8_t> bad = Padded(webp);
      bad[random.Below(webp.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
      const Result<WholeImage> whole = DecodeWholeWebp(Unpadded(bad));
      const Error error = ErrorOf(decoder, bad);
      if (whole.ok()) {
        ASSERT_EQ(error.cause, "");
        ASSERT_EQ(testing::Compare(decoder, bad, {}, *whole), "");
      } else if (!options.alpha) {
        ASSERT_NE(error.cause, "");
      }
      refused += error.cause.empty() ? 0 : 1;
      if (!error.cause.empty()) {
        ASSERT_TRUE(error.offset.has_value());
      }
    }
  }
  EXPECT_GT(refused, testing::Effort(250));
}

TEST(WebpLimits, LimitPixels) {
  DecodeLimits limits;
  limits.max_pixels = 64 * 48 - 1;
  WebpDecoder decoder(limits);
  const Error error = ErrorOf(decoder, Padded(MakeWebp()));
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(error.cause, "an image of 64 × 48 pixels, more than the limit of 3071");
}

TEST(WebpBudget, IsChargedAndReleased) {
  for (const bool lossless : {false, true}) {
    const std::vector<uint8_t> webp =
        Padded(MakeWebp({.width = 1000, .height = 800, .lossless = lossless}));
    uint64_t needed = 0;
    {
      MemoryBudget budget(64 << 20);
      WebpDecoder decoder({}, &budget);
      EXPECT_EQ(ErrorOf(decoder, webp).cause, "");
      needed = budget.peak();
      EXPECT_EQ(budget.used(), 0u);
      EXPECT_GT(needed, 2'400'000u + (lossless ? 3'200'000u : 0));
    }
    MemoryBudget budget(needed - 1);
    WebpDecoder decoder({}, &budget);
    EXPECT_EQ(ErrorOf(decoder, webp).code, Code::kResourceExhausted);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(ErrorOf(decoder, webp, {0, 0, 100, 100}).cause, "");
  }
}

TEST(WebpDecoder, DecodesOnceAfterOpen) {
  const std::vector<uint8_t> webp = Padded(MakeWebp());
  WebpDecoder decoder;
  testing::KeepRows rows;
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(decoder.Open(Unpadded(webp)).ok());
  EXPECT_EQ(decoder.Decode({60, 0, 5, 1}, rows).error().code, Code::kInvalidArgument);
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace stoker
