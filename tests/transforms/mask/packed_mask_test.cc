// Any region of a packed mask has the values that were packed, and damaged bytes are decoded as by
// the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/whole.h"
#include "transforms/mask/decoder.h"
#include "transforms/mask/pack.h"
#include "transforms/mask/reference_decoder.h"
#include "transforms/png/reference_decoder.h"

namespace stoker::testing {
namespace {

struct AnyMeaning {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) { return mask.Open(bytes, meaning); }
  Status Decode(const Rect& region, RowSink& sink) { return mask.Decode(region, sink); }

  PackedMaskDecoder mask;
  PixelMeaning meaning = PixelMeaning::kMask;
};

struct Mask {
  ImageSize size;
  int bits = 8;
  std::vector<uint16_t> values;

  std::vector<uint8_t> Pack(int orientation = 1) const {
    return PackValues(
        {.size = size, .bits = bits, .orientation = orientation, .values = values.data()});
  }
  WholeImage Whole(bool wide) const {
    WholeImage whole{size, wide ? PixelLayout::kGray16 : PixelLayout::kGray, {}};
    for (const uint16_t value : values) {
      whole.pixels.push_back(static_cast<uint8_t>(value));
      if (wide) whole.pixels.push_back(static_cast<uint8_t>(value >> 8));
    }
    return whole;
  }
};

// Regions whose edges wander from row to row, with new ones, and noise.
Mask RandomMask(Random& random) {
  Mask mask;
  mask.size = {random.Between(1, 150), random.Between(1, 150)};
  mask.bits = random.OneIn(2) ? 8 : 16;
  const int most = mask.bits == 8 ? 255 : 65535, values = random.OneIn(3) ? most : 3;
  const auto value = [&] { return static_cast<uint16_t>(random.Between(0, values)); };
  const int noise = random.OneIn(2) ? 1000 : random.Between(1, 40);
  std::vector<uint16_t> row(static_cast<size_t>(mask.size.width), value());
  for (int y = 0; y < mask.size.height; ++y) {
    for (int edits = random.Between(0, 4); edits > 0; --edits) {
      const int x = random.Between(0, mask.size.width - 1);
      const int end = std::min(mask.size.width, x + random.Between(1, 6));
      const uint16_t filled =
          random.OneIn(4) ? value() : row[static_cast<size_t>(x > 0 ? x - 1 : x)];
      std::fill(row.begin() + x, row.begin() + end, filled);
    }
    for (uint16_t& pixel : row) {
      if (random.OneIn(noise)) pixel = value();
    }
    mask.values.insert(mask.values.end(), row.begin(), row.end());
  }
  return mask;
}

TEST(PackedMask, RegionsHaveTheValues) {
  Random random(1);
  RandomStream regions({5, 0, 0}, 0);
  AnyMeaning decoder;
  for (int round = 0; round < Effort(300); ++round) {
    const Mask mask = RandomMask(random);
    const std::vector<uint8_t> packed = mask.Pack();
    const bool wide = mask.bits == 16 || random.OneIn(2);
    decoder.meaning = wide ? PixelMeaning::kMask16 : PixelMeaning::kMask;
    const WholeImage whole = mask.Whole(wide);
    const Result<WholeImage> reference = DecodeWholePackedMask(packed, wide, 1 << 20);
    ASSERT_TRUE(reference.ok()) << round;
    ASSERT_EQ(reference->size, whole.size);
    ASSERT_TRUE(reference->pixels == whole.pixels) << round;
    std::vector<Rect> all = EdgeRegions(whole.size);
    for (int i = 0; i < 6; ++i) all.push_back(RandomRegion(whole.size, regions));
    for (const Rect& region : all) {
      ASSERT_EQ(Compare(decoder, Padded(packed), region, whole), "") << round;
    }
  }
}

TEST(PackedMask, TheWidestRowsAndRunsArePacked) {
  constexpr int kWidth = kMaxSidePixels;
  Mask mask{.size = {kWidth, 66}, .bits = 16, .values = {}};
  for (int x = 0; x < kWidth; ++x) mask.values.push_back(static_cast<uint16_t>(x));  // all values
  mask.values.resize(size_t{kWidth} * 65, 7);
  for (int x = 0; x < kWidth; ++x) mask.values.push_back(x + 1 == kWidth ? 1 : 7);
  AnyMeaning decoder{.mask = PackedMaskDecoder(), .meaning = PixelMeaning::kMask16};
  EXPECT_EQ(Compare(decoder, Padded(mask.Pack()), {}, mask.Whole(true)), "");
}

TEST(PackedMask, RegularMasksAreSmall) {
  Mask mask{.size = {500, 375}, .bits = 8, .values = {}};
  for (int y = 0; y < 375; ++y) {
    for (int x = 0; x < 500; ++x) {
      const int dx = x - 250, dy = y - 187;
      mask.values.push_back(dx * dx + dy * dy < 120 * 120 ? 15 : 0);
    }
  }
  EXPECT_LT(mask.Pack().size(), 500U);
}

TEST(PackedMask, DamageIsDecodedAsByTheReference) {
  Random random(2);
  AnyMeaning decoder{.mask = PackedMaskDecoder({.max_pixels = 1 << 16})};
  int decoded = 0, failed = 0;
  for (int round = 0; round < Effort(4000); ++round) {
    std::vector<uint8_t> packed = RandomMask(random).Pack(random.Between(1, 8));
    for (int changes = random.Between(1, 3); changes > 0; --changes) {
      const int last = static_cast<int>(packed.size()) - 1;
      const int at =
          random.OneIn(3) ? random.Between(7, std::min(40, last)) : random.Between(7, last);
      packed[static_cast<size_t>(at)] ^= static_cast<uint8_t>(1 << random.Between(0, 7));
    }
    if (random.OneIn(4))
      packed.resize(static_cast<size_t>(random.Between(8, static_cast<int>(packed.size()))));
    const bool wide = random.OneIn(2);
    decoder.meaning = wide ? PixelMeaning::kMask16 : PixelMeaning::kMask;
    const Result<WholeImage> reference = DecodeWholePackedMask(packed, wide, 1 << 16);
    const std::vector<uint8_t> padded = Padded(packed);
    if (reference.ok()) {
      ASSERT_EQ(Compare(decoder, padded, {}, *reference), "") << round;
      ++decoded;
      continue;
    }
    const Error error = ErrorOf(decoder, padded);
    ASSERT_FALSE(error.cause.empty()) << round;
    ASSERT_TRUE(error.offset.has_value() && *error.offset <= packed.size()) << round;
    ++failed;
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(failed, 0);
}

TEST(PackedMask, IsNeitherAnImageNorOfTheWrongDepth) {
  const Mask deep{.size = {2, 1}, .bits = 16, .values = {1, 2}};
  const std::vector<uint8_t> padded = Padded(deep.Pack());
  AnyMeaning decoder;
  EXPECT_EQ(ErrorOf(decoder, padded).code, Code::kUnimplemented);
  decoder.meaning = PixelMeaning::kColour;
  EXPECT_EQ(ErrorOf(decoder, padded).code, Code::kUnimplemented);
}

TEST(PackedMask, MemoryBeyondTheBudgetIsRefused) {
  const Mask wide{.size = {60000, 1}, .bits = 8, .values = std::vector<uint16_t>(60000, 3)};
  MemoryBudget budget(100'000);
  AnyMeaning decoder{.mask = PackedMaskDecoder({}, &budget)};
  const Error error = ErrorOf(decoder, Padded(wide.Pack()));
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_GT(error.wanted_bytes, 0U);
}

// ---- Of PNGs.

TEST(PackMask, KeepsTheValuesOfEachKindOfPng) {
  struct Kind {
    int color, bit_depth;
  };
  for (const auto& [color, depth] :
       {Kind{0, 1}, Kind{0, 2}, Kind{0, 4}, Kind{3, 1}, Kind{3, 2}, Kind{3, 4}}) {
    for (const bool interlaced : {false, true}) {
      PngOptions options{.color = color, .bit_depth = depth};
      options.width = 20;
      options.height = 12;
      options.interlaced = interlaced;
      const std::vector<uint8_t> png =
          WithChunk(MakePng(options), "IDAT", PngChunk("eXIf", OrientationTiff(6, true)));
      const Result<std::vector<uint8_t>> packed = PackMask(Unpadded(Padded(png)));
      ASSERT_TRUE(packed.ok()) << packed.error().ToString();
      const std::vector<uint8_t> padded = Padded(*packed);
      AnyMeaning decoder;
      EXPECT_EQ(Compare(decoder, padded, {}, DecodeWholeMask(png).value()), "");
      const ImageInfo info = decoder.Open(Unpadded(padded)).value();
      EXPECT_EQ(info.orientation, static_cast<Orientation>(6));
      EXPECT_EQ(info.bits, 8);
      EXPECT_TRUE(CompareMasks(Unpadded(Padded(png)), Unpadded(padded)).ok());
    }
  }
}

TEST(PackMask, RefusesWhatMustStayAsItIs) {
  const auto reason = [](const PngOptions& options) {
    const Result<std::vector<uint8_t>> packed = PackMask(Unpadded(Padded(MakePng(options))));
    EXPECT_FALSE(packed.ok());
    EXPECT_EQ(packed.ok() ? Code::kCancelled : packed.error().code, Code::kUnimplemented);
    return packed.ok() ? "" : packed.error().cause;
  };
  EXPECT_NE(reason({.color = 2, .bit_depth = 8}).find("3 channels"), std::string::npos);
  PngOptions noise{.color = 0, .bit_depth = 16};
  noise.width = noise.height = 80;
  EXPECT_EQ(reason(noise), "packed it would be larger");
}

TEST(PackMask, AnotherMaskIsFound) {
  PngOptions options{.color = 3, .bit_depth = 2};
  options.width = options.height = 9;
  const std::vector<uint8_t> png = Padded(MakePng(options));
  options.seed = 99;
  const std::vector<uint8_t> other = Padded(PackMask(Unpadded(Padded(MakePng(options)))).value());
  EXPECT_EQ(CompareMasks(Unpadded(png), Unpadded(other)).error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace stoker::testing
