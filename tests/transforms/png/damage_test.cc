// Damaged PNGs are refused, in plain words, and limits and budgets hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/images/make_png.h"
#include "tests/transforms/whole.h"
#include "transforms/png/decoder.h"
#include "transforms/png/inflater.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using testing::ErrorOf;
using testing::MakePng;
using testing::Padded;
using testing::PngChunk;
using testing::PngOptions;
using testing::Unpadded;

const std::vector<PngOptions>& PngKinds() {
  static const std::vector<PngOptions> kinds = {
      {.width = 20, .height = 17, .chunk_bytes = 300},
      {.width = 20, .height = 17, .interlaced = true, .chunk_bytes = 300},
      {.width = 9, .height = 9, .color = 3, .bit_depth = 4},
      {.width = 9, .height = 9, .color = 0, .bit_depth = 1, .interlaced = true},
      {.width = 9, .height = 9, .color = 6, .bit_depth = 16, .chunk_bytes = 100},
  };
  return kinds;
}

Error ErrorOfBytes(const std::vector<uint8_t>& png, Rect region = {}) {
  PngDecoder decoder;
  return ErrorOf(decoder, Padded(png), region);
}

std::vector<uint8_t> First(const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<uint8_t> first(n);
  for (size_t i = 0; i < n; ++i) first[i] = bytes[i];
  return first;
}

// Returns the end of the last IDAT chunk.
size_t EndOfPixels(const std::vector<uint8_t>& png) { return png.size() - 12; }

TEST(PngDamage, RefusesTruncatedPixels) {
  for (const PngOptions& options : PngKinds()) {
    const std::vector<uint8_t> png = MakePng(options);
    for (size_t size = 0; size < png.size(); ++size) {
      const std::vector<uint8_t> cut(png.begin(), png.begin() + static_cast<ptrdiff_t>(size));
      const Error error = ErrorOfBytes(cut);
      if (size >= EndOfPixels(png)) {
        EXPECT_EQ(error.cause, "") << size;  // all pixels are there
        continue;
      }
      EXPECT_EQ(error.code, Code::kDataLoss) << size;
      EXPECT_TRUE(error.cause.starts_with("truncated PNG") || size < 8) << error.cause;
      ASSERT_TRUE(error.offset.has_value());
      EXPECT_LE(*error.offset, size);
    }
  }
}

// Whether damage is noticed does not depend on the region. (A single changed bit makes the last
// chunk of pixels one that may be ignored, if it is damaged too: this is noticed when its rows are
// wanted.)
TEST(PngDamage, NoticesEveryFlippedBit) {
  for (const PngOptions& options : PngKinds()) {
    const std::vector<uint8_t> png = MakePng(options);
    int unseen = 0;
    for (size_t bit = 0; bit < 8 * EndOfPixels(png); ++bit) {
      std::vector<uint8_t> bad = png;
      bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      Error error = ErrorOfBytes(bad, {0, 0, 1, 1});
      if (error.cause.empty() && ++unseen == 1) error = ErrorOfBytes(bad);
      ASSERT_NE(error.cause, "") << "bit " << bit;
      ASSERT_TRUE(error.code == Code::kDataLoss || error.code == Code::kUnimplemented);
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= bad.size());
    }
  }
}

// Checksums are corrected, so that the damage reaches the decompression; the verdict is that of
// libspng's whole decode.
TEST(PngDamage, AgreesWithAWholeDecode) {
  int refused = 0;
  for (const PngOptions& options : PngKinds()) {
    PngOptions one = options;
    one.chunk_bytes = 1 << 20;
    const std::vector<uint8_t> png = MakePng(one);
    const size_t begin = png.size() - 12;  // of IEND
    size_t data = 8;
    while (std::string(png.begin() + static_cast<ptrdiff_t>(data) + 4,
                       png.begin() + static_cast<ptrdiff_t>(data) + 8) != "IDAT") {
      data += 12 + (size_t{png[data + 2]} << 8 | png[data + 3]);
    }
    for (size_t bit = 0; bit < 8 * (begin - data - 12); ++bit) {
      std::vector<uint8_t> packed(png.begin() + static_cast<ptrdiff_t>(data) + 8,
                                  png.begin() + static_cast<ptrdiff_t>(begin) - 4);
      packed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      std::vector<uint8_t> bad(png.begin(), png.begin() + static_cast<ptrdiff_t>(data));
      const std::vector<uint8_t> chunk = PngChunk("IDAT", packed), end = PngChunk("IEND", {});
      bad.insert(bad.end(), chunk.begin(), chunk.end());
      bad.insert(bad.end(), end.begin(), end.end());
      const std::vector<uint8_t> padded = Padded(bad);
      const Result<WholeImage> whole = DecodeWholePng(Unpadded(padded));
      PngDecoder decoder;
      const Error error = ErrorOf(decoder, padded);
      ASSERT_EQ(error.cause.empty(), whole.ok()) << bit << ": " << error.cause;
      if (whole.ok()) {
        EXPECT_EQ(testing::Compare(decoder, padded, {}, *whole), "");
        continue;
      }
      ++refused;
      ASSERT_EQ(error.code, Code::kDataLoss);
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= bad.size());
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(PngDamage, ErrorsNameTheCause) {
  const std::vector<uint8_t> png = MakePng({.color = 3});
  std::vector<uint8_t> bad = png;
  bad[EndOfPixels(png) - 20] ^= 1;
  EXPECT_EQ(ErrorOfBytes(bad).cause, "damaged PNG: wrong checksum of a chunk IDAT");
  bad = png;
  bad[18] ^= 1;
  EXPECT_EQ(ErrorOfBytes(bad).cause, "damaged PNG: wrong checksum of a chunk IHDR");
  EXPECT_EQ(ErrorOfBytes(bad).offset, 8u);
  bad = png;
  bad[45] ^= 1;
  EXPECT_EQ(ErrorOfBytes(bad).cause, "damaged PNG: wrong checksum of a chunk PLTE");
  const auto without = [&](size_t begin, size_t end) {
    std::vector<uint8_t> less;
    for (size_t i = 0; i < png.size(); ++i) {
      if (i < begin || i >= end) less.push_back(png[i]);
    }
    return ErrorOfBytes(less).cause;
  };
  EXPECT_EQ(without(33, 33 + 12 + 768), "damaged PNG: its palette is missing");
  EXPECT_EQ(without(33 + 12 + 768, EndOfPixels(png)), "damaged PNG: no pixels in it");
  const std::vector<uint8_t> noise = PngChunk("IDAT", std::vector<uint8_t>(100, 0x55));
  std::vector<uint8_t> invalid = First(png, 33 + 12 + 768);
  for (const uint8_t byte : noise) invalid.push_back(byte);
  EXPECT_EQ(ErrorOfBytes(invalid).cause, "damaged PNG: invalid zlib data");
  // Three rows in a block that is not compressed; the last one's filter is 9.
  const std::vector<uint8_t> rows = {0x78, 1, 1, 9, 0, 0xF6, 0xFF, 0, 1, 2, 1, 3, 4, 9, 5, 6};
  std::vector<uint8_t> filter = First(MakePng({.width = 2, .height = 3, .color = 0}), 33);
  for (const uint8_t byte : PngChunk("IDAT", rows)) filter.push_back(byte);
  EXPECT_EQ(ErrorOfBytes(filter, {0, 0, 2, 2}).cause, "");
  EXPECT_EQ(ErrorOfBytes(filter).cause,
            "damaged PNG: the filter of its row 3, as stored, is unknown");
  // A last chunk of pixels that is missing as a whole.
  const std::vector<uint8_t> chunks = MakePng({.chunk_bytes = 500});
  const std::vector<uint8_t> fewer = First(chunks, 33 + 512);
  EXPECT_EQ(ErrorOfBytes(fewer).cause,
            "truncated PNG: its compressed data end before its last row");
  EXPECT_EQ(ErrorOfBytes(fewer, {0, 0, 64, 1}).cause, "");  // those rows are there
}

// libspng refuses the same palettes. A palette may have fewer colors than the depth allows.
TEST(PngDamage, RefusesPalettesOfImpossibleSizes) {
  for (const int bits : {1, 2, 4, 8}) {
    const size_t most = size_t{3} << bits;
    const std::vector<uint8_t> png = MakePng({.color = 3, .bit_depth = bits});
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{3}, most - 1, most, most + 3, 10 * most}) {
      std::vector<uint8_t> other = First(png, 33);
      for (const uint8_t byte : PngChunk("PLTE", std::vector<uint8_t>(size))) other.push_back(byte);
      other.insert(other.end(), png.begin() + 33 + 12 + static_cast<ptrdiff_t>(most), png.end());
      const Error error = ErrorOfBytes(other);
      const bool possible = size == 3 || size == most;
      EXPECT_EQ(DecodeWholePng(other).ok(), possible) << bits << " bits, " << size;
      EXPECT_EQ(error.cause, possible ? ""
                                      : "damaged PNG: a palette of " + std::to_string(size) +
                                            " bytes, not three for each of 1 to " +
                                            std::to_string(most / 3) + " colors");
      EXPECT_EQ(error.offset.value_or(0), possible ? 0u : 33u);
    }
  }
}

TEST(PngLimits, LimitPixelsAndSides) {
  DecodeLimits limits;
  limits.max_pixels = 64 * 48 - 1;
  const std::vector<uint8_t> png = Padded(MakePng());
  PngDecoder strict(limits);
  const Error error = ErrorOf(strict, png);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(error.detail, Error::Detail::kOverLimits);
  EXPECT_EQ(error.cause, "an image of 64 × 48 pixels, more than the limit of 3071");
  limits.max_pixels = 64 * 48;
  PngDecoder exact(limits);
  EXPECT_EQ(ErrorOf(exact, png).cause, "");
  PngDecoder decoder;
  const Error wide =
      ErrorOf(decoder, Padded(MakePng({.width = 65536, .height = 1, .color = 0, .bit_depth = 1})));
  EXPECT_EQ(wide.code, Code::kResourceExhausted);
  EXPECT_EQ(wide.detail, Error::Detail::kOverLimits);
  EXPECT_EQ(
      ErrorOf(decoder, Padded(MakePng({.width = 65535, .height = 1, .color = 0, .bit_depth = 1})))
          .cause,
      "");
}

TEST(PngBudget, IsChargedAndReleased) {
  constexpr size_t kKept = sizeof(png::Inflater) + (16 << 10);  // with two rows
  for (const bool interlaced : {false, true}) {
    const std::vector<uint8_t> png =
        Padded(MakePng({.width = 1000, .height = 800, .interlaced = interlaced}));
    uint64_t needed = 0;
    {
      MemoryBudget budget(64 << 20);
      PngDecoder decoder({}, &budget);
      EXPECT_EQ(budget.used(), 0u);
      EXPECT_EQ(ErrorOf(decoder, png).cause, "");
      needed = budget.peak();
      EXPECT_GT(budget.used(), sizeof(png::Inflater));
      EXPECT_LT(budget.used(), kKept);
      // An interlaced image is gathered before its first row goes.
      EXPECT_EQ(needed > 2'400'000, interlaced);
    }
    MemoryBudget budget(needed - 1);
    PngDecoder decoder({}, &budget);
    EXPECT_EQ(ErrorOf(decoder, png).code, Code::kResourceExhausted);
    EXPECT_LT(budget.used(), kKept);
    if (!interlaced) continue;
    EXPECT_EQ(ErrorOf(decoder, png, {0, 0, 100, 100}).cause, "");
  }
}

TEST(PngDecoder, DecodesOnceAfterOpen) {
  const std::vector<uint8_t> png = Padded(MakePng());
  PngDecoder decoder;
  testing::KeepRows rows;
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(decoder.Open(Unpadded(png)).ok());
  EXPECT_EQ(decoder.Decode({60, 0, 5, 1}, rows).error().code, Code::kInvalidArgument);
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace stoker
