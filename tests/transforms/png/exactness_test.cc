// Any region of any kind of PNG is that region of libspng's full decode.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/transforms/whole.h"
#include "transforms/decode/on_white.h"
#include "transforms/png/decoder.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using testing::Compare;
using testing::EdgeRegions;
using testing::MakePng;
using testing::Padded;
using testing::PngOptions;
using testing::RandomRegion;

struct Kind {
  int color;
  int bit_depth;
};
constexpr Kind kKinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                           {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};

class EachPngKind : public ::testing::TestWithParam<Kind> {
 protected:
  PngOptions Options() const {
    PngOptions options;
    options.color = GetParam().color;
    options.bit_depth = GetParam().bit_depth;
    return options;
  }

  void ExpectExact(const PngOptions& options, const std::vector<Rect>& regions) {
    const std::vector<uint8_t> png = Padded(MakePng(options));
    const WholeImage whole = DecodeWholePng(testing::Unpadded(png)).value();
    for (const Rect& region : regions) {
      ASSERT_EQ(Compare(decoder_, png, region, whole), "")
          << options.width << " × " << options.height << (options.interlaced ? " interlaced" : "");
    }
  }

  PngDecoder decoder_;  // of all: state must not leak
};

TEST_P(EachPngKind, SmallImagesEqualTheFullDecode) {
  for (const bool interlaced : {false, true}) {
    for (int size = 1; size <= 40; ++size) {
      PngOptions options = Options();
      options.width = size;
      options.height = 41 - size;
      options.interlaced = interlaced;
      options.seed = static_cast<uint64_t>(size);
      ExpectExact(options, EdgeRegions({options.width, options.height}));
    }
  }
}

TEST_P(EachPngKind, RandomRegionsEqualTheFullDecode) {
  RandomStream random({3, 0, static_cast<uint64_t>(GetParam().color * 20 + GetParam().bit_depth)},
                      0);
  for (int round = 0; round < testing::Effort(40); ++round) {
    PngOptions options = Options();
    options.width = 1 + static_cast<int>(random.Below(90));
    options.height = 1 + static_cast<int>(random.Below(90));
    options.interlaced = random.Below(2) == 0;
    options.chunk_bytes = 1 + random.Below(5000);
    options.seed = random.Below(1 << 30);
    std::vector<Rect> regions;
    for (int i = 0; i < 8; ++i) {
      regions.push_back(RandomRegion({options.width, options.height}, random));
    }
    ExpectExact(options, regions);
  }
}

struct OnWhiteDecoder {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) {
    return png.Open(bytes, PixelMeaning::kOnWhite);
  }
  Status Decode(const Rect& region, RowSink& sink) { return png.Decode(region, sink); }

  PngDecoder png;
};

// The content of a tRNS chunk that names one colour: `value` in each channel.
std::vector<uint8_t> TransparentColour(std::span<const uint8_t> value) {
  std::vector<uint8_t> content;
  for (const uint8_t channel : value) content.insert(content.end(), {uint8_t{0}, channel});
  return content;
}

// Puts the pixels of `whole` onto white, one by one. `transparency`: the content of tRNS.
void PutOnWhite(const PngOptions& options, const std::vector<uint8_t>& png,
                const std::vector<uint8_t>& transparency, WholeImage& whole) {
  if (options.color == 3) {
    const WholeImage indices = DecodeWholeMask(testing::Unpadded(png)).value();
    for (size_t i = 0; i < indices.pixels.size(); ++i) {
      const size_t index = indices.pixels[i];
      const uint8_t alpha = index < transparency.size() ? transparency[index] : uint8_t{255};
      for (size_t c = 0; c < 3; ++c) {
        uint8_t& value = whole.pixels[3 * i + c];
        value = OnWhite(value, alpha);
      }
    }
    return;
  }
  const size_t channels = options.color == 0 ? 1 : 3;
  for (size_t at = 0; at < whole.pixels.size(); at += channels) {
    bool is_it = true;
    for (size_t c = 0; c < channels; ++c) {
      const int wanted = transparency[2 * c + 1];
      is_it = is_it && whole.pixels[at + c] == (options.bit_depth == 1 ? 255 * wanted : wanted);
    }
    for (size_t c = 0; is_it && c < channels; ++c) whole.pixels[at + c] = 255;
  }
}

TEST_P(EachPngKind, TransparentColoursBecomeWhite) {
  RandomStream random({7, 0, static_cast<uint64_t>(GetParam().color * 20 + GetParam().bit_depth)},
                      0);
  OnWhiteDecoder decoder;
  for (int round = 0; round < testing::Effort(40); ++round) {
    PngOptions options = Options();
    options.width = 1 + static_cast<int>(random.Below(60));
    options.height = 1 + static_cast<int>(random.Below(60));
    options.interlaced = random.Below(2) == 0;
    options.seed = random.Below(1 << 30);
    const std::vector<uint8_t> plain = MakePng(options);
    WholeImage whole = DecodeWholePng(plain).value();
    const std::span first = std::span(whole.pixels).first(options.color == 0 ? 1 : 3);
    std::vector<uint8_t> transparency = TransparentColour(first);
    if (options.color == 3) {
      transparency.resize(1 + random.Below(uint64_t{1} << options.bit_depth));
      for (uint8_t& alpha : transparency) alpha = static_cast<uint8_t>(random.Below(256));
    } else if (options.bit_depth == 1) {
      transparency[1] = static_cast<uint8_t>(random.Below(2));
    }
    const std::vector<uint8_t> png =
        Padded(testing::WithChunk(plain, "IDAT", testing::PngChunk("tRNS", transparency)));
    const ImageInfo info = decoder.Open(testing::Unpadded(png)).value();
    EXPECT_EQ(info.transparent, options.bit_depth == 16 && options.color < 4);
    if (options.bit_depth <= 8 && options.color < 4) {
      PutOnWhite(options, png, transparency, whole);
    }
    for (int i = 0; i < 4; ++i) {
      const Rect region = RandomRegion(whole.size, random);
      ASSERT_EQ(Compare(decoder, png, region, whole), "")
          << options.width << " × " << options.height;
    }
    // The next image, opened otherwise, is not put onto white.
    ASSERT_EQ(Compare(decoder.png, png, {}, DecodeWholePng(plain).value()), "");
  }
}

TEST(PngOnWhite, RefusesDamagedTransparency) {
  for (const int color : {0, 2, 3}) {
    const std::vector<uint8_t> plain = MakePng({.width = 9, .height = 7, .color = color});
    const size_t least = color == 0 ? 2 : color == 2 ? 6 : 1;
    std::vector<uint8_t> content(least - 1, 1), whole(least, 1);
    std::vector<uint8_t> short_one = testing::PngChunk("tRNS", content);
    std::vector<uint8_t> damaged = testing::PngChunk("tRNS", whole);
    damaged.back() ^= 1;
    for (const std::vector<uint8_t>& chunk : {short_one, damaged}) {
      const std::vector<uint8_t> png = Padded(testing::WithChunk(plain, "IDAT", chunk));
      OnWhiteDecoder decoder;
      const Error error = decoder.Open(testing::Unpadded(png)).error();
      EXPECT_EQ(error.code, Code::kDataLoss) << color;
      EXPECT_EQ(error.cause, std::string("damaged PNG: its chunk tRNS ") +
                                 (chunk == damaged ? "has a wrong checksum" : "is too short"));
      const auto at = std::ranges::search(png, chunk).begin();
      EXPECT_EQ(error.offset, static_cast<uint64_t>(at - png.begin()));
      EXPECT_EQ(Compare(decoder.png, png, {}, DecodeWholePng(plain).value()), "");
    }
  }
}

// A processor refuses the transparent colour of 16 bits, sound or not.
TEST(PngOnWhite, DamagedTransparencyOf16BitsIsIgnored) {
  const std::vector<uint8_t> plain = MakePng({.width = 9, .height = 7, .bit_depth = 16});
  const std::vector<uint8_t> chunk = testing::PngChunk("tRNS", std::vector<uint8_t>(5));
  const std::vector<uint8_t> png = Padded(testing::WithChunk(plain, "IDAT", chunk));
  OnWhiteDecoder decoder;
  EXPECT_TRUE(decoder.Open(testing::Unpadded(png)).value().transparent);
  EXPECT_EQ(Compare(decoder, png, {}, DecodeWholePng(plain).value()), "");
}

INSTANTIATE_TEST_SUITE_P(Png, EachPngKind, ::testing::ValuesIn(kKinds), [](const auto& info) {
  return "Color" + std::to_string(info.param.color) + "Bits" + std::to_string(info.param.bit_depth);
});

// ---- Masks.

struct MaskDecoder {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) { return png.Open(bytes, meaning); }
  Status Decode(const Rect& region, RowSink& sink) { return png.Decode(region, sink); }

  PngDecoder png;
  PixelMeaning meaning = PixelMeaning::kMask;
};

constexpr Kind kMaskKinds[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {3, 1}, {3, 2}, {3, 4}, {3, 8}};
constexpr Kind kWide{0, 16};

TEST(PngMasks, RegionsHaveTheStoredValues) {
  RandomStream random({4, 0, 0}, 0);
  MaskDecoder decoder;
  for (int round = 0; round < testing::Effort(400); ++round) {
    const bool wide = random.Below(3) == 0;
    const Kind kind =
        wide && random.Below(2) == 0 ? kWide : kMaskKinds[random.Below(std::size(kMaskKinds))];
    decoder.meaning = wide ? PixelMeaning::kMask16 : PixelMeaning::kMask;
    PngOptions options{.color = kind.color, .bit_depth = kind.bit_depth};
    options.width = 1 + static_cast<int>(random.Below(90));
    options.height = 1 + static_cast<int>(random.Below(90));
    options.interlaced = random.Below(2) == 0;
    options.seed = random.Below(1 << 30);
    const std::vector<uint8_t> png = Padded(MakePng(options));
    const WholeImage whole = DecodeWholeMask(testing::Unpadded(png), wide).value();
    for (int i = 0; i < 4; ++i) {
      const Rect region = RandomRegion(whole.size, random);
      ASSERT_EQ(Compare(decoder, png, region, whole), "")
          << options.width << " × " << options.height << ", color " << kind.color << ", "
          << kind.bit_depth << (options.interlaced ? " bits, interlaced" : " bits");
    }
    // The next image is not one.
    const WholeImage colours = DecodeWholePng(testing::Unpadded(png)).value();
    ASSERT_EQ(Compare(decoder.png, png, {}, colours), "");
  }
}

// The indices of a palette are the place of their colour in it, and gray is scaled by a constant.
TEST(PngMasks, ValuesAreThoseOfTheColours) {
  for (const Kind kind : kMaskKinds) {
    const std::vector<uint8_t> png =
        MakePng({.width = 40, .height = 30, .color = kind.color, .bit_depth = kind.bit_depth});
    const WholeImage mask = DecodeWholeMask(png).value(), colours = DecodeWholePng(png).value();
    const int most = (1 << kind.bit_depth) - 1;
    int seen = 0;
    for (size_t i = 0; i < mask.pixels.size(); ++i) {
      const int value = mask.pixels[i];
      ASSERT_LE(value, most);
      seen = std::max(seen, value);
      constexpr size_t kPalette = 33 + 8;
      if (kind.color == 0) {
        ASSERT_EQ(colours.pixels[i], value * 255 / most);
      } else {
        ASSERT_EQ(colours.pixels[3 * i], png[kPalette + 3 * static_cast<size_t>(value)]);
      }
    }
    EXPECT_GE(seen, most * 7 / 8) << kind.color << ", " << kind.bit_depth;
  }
}

TEST(PngMasks, OtherImagesAreRefused) {
  const auto error_of = [](const PngOptions& options) {
    MaskDecoder decoder;
    const Error error = testing::ErrorOf(decoder, Padded(MakePng(options)));
    EXPECT_EQ(error.code, Code::kUnimplemented);
    EXPECT_EQ(error.advice,
              "Save the masks as gray or palette PNGs; read those of 16 bits as uint16");
    return error.cause;
  };
  const std::string mask =
      "a mask is a PNG with one channel, of at most 8 bits unless its rows are uint16, and this "
      "one ";
  EXPECT_EQ(error_of({.color = 2}), mask + "has 3 channels");
  EXPECT_EQ(error_of({.color = 4}), mask + "has 2 channels");
  EXPECT_EQ(error_of({.color = 6, .bit_depth = 16}), mask + "has 4 channels");
  EXPECT_EQ(error_of({.color = 0, .bit_depth = 16}), mask + "has 16 bits");
}

// The regions of a large image lie far apart; the decoder keeps more of it than it may afterwards.
TEST(PngExactness, LargeInterlacedRegionsEqualTheFullDecode) {
  const std::vector<uint8_t> png =
      Padded(MakePng({.width = 900, .height = 700, .color = 6, .interlaced = true}));
  const WholeImage whole = DecodeWholePng(testing::Unpadded(png)).value();
  PngDecoder decoder;
  EXPECT_EQ(Compare(decoder, png, {}, whole), "");
  EXPECT_EQ(Compare(decoder, png, {899, 699, 1, 1}, whole), "");
  EXPECT_EQ(Compare(decoder, png, {3, 5, 801, 603}, whole), "");
}

TEST(PngExactness, IndicesOutsideThePaletteAreBlack) {
  // 2 of 16 entries, and the first row names all.
  PngOptions options{.width = 32, .height = 4, .color = 3, .bit_depth = 4};
  const std::vector<uint8_t> all = MakePng(options);
  const size_t palette = 33;
  std::vector<uint8_t> png(all.begin(), all.begin() + palette);
  const std::vector<uint8_t> two =
      testing::PngChunk("PLTE", std::vector<uint8_t>{1, 2, 3, 4, 5, 6});
  png.insert(png.end(), two.begin(), two.end());
  png.insert(png.end(), all.begin() + palette + 12 + 48, all.end());
  const std::vector<uint8_t> padded = Padded(png);
  const WholeImage whole = DecodeWholePng(testing::Unpadded(padded)).value();
  PngDecoder decoder;
  EXPECT_EQ(Compare(decoder, padded, {}, whole), "");
  const std::vector<uint8_t> black(3, 0);
  size_t blacks = 0;
  for (size_t i = 0; i < whole.pixels.size(); i += 3) {
    blacks +=
        std::equal(black.begin(), black.end(), whole.pixels.begin() + static_cast<ptrdiff_t>(i));
  }
  EXPECT_GT(blacks, 64u);
}

}  // namespace
}  // namespace stoker
