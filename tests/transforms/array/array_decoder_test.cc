// Compares arrays of every format, orientation and region with the whole image, pixel by pixel.
#include "transforms/array/array_decoder.h"

#include <gtest/gtest.h>
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/plan/plan.h"
#include "transforms/png/reference_decoder.h"
#include "transforms/webp/reference_decoder.h"

namespace stoker {
namespace {

using testing::MakeJpeg;
using testing::MakePng;
using testing::MakeWebp;
using testing::Padded;
using testing::Unpadded;

struct Sample {
  std::string name;
  std::vector<uint8_t> padded{};
  Orientation orientation = Orientation::kNormal;
  Result<WholeImage> whole;
  std::optional<Result<WholeImage>> luma{};  // of a JPEG
};

int Below(RandomStream& random, int n) {
  return static_cast<int>(random.Below(static_cast<uint64_t>(n)));
}

Sample MakeSample(uint64_t n) {
  RandomStream random({21, 0, n}, 0);
  const int width = 1 + Below(random, n % 3 == 0 ? 9 : 150), height = 1 + Below(random, 150);
  const int orientation = Below(random, 9);
  Sample sample{.name = std::to_string(n), .whole = WholeImage{}};
  if (orientation != 0) sample.orientation = static_cast<Orientation>(orientation);
  const std::vector<uint8_t> tiff = testing::OrientationTiff(orientation, n % 2 == 0);
  switch (Below(random, 3)) {
    case 0: {
      testing::JpegOptions options{.width = width, .height = height, .orientation = orientation};
      options.sampling = testing::Luma(1 + Below(random, 2), 1 + Below(random, 2));
      if (Below(random, 4) == 0) options.color = testing::JpegColor::kGray;
      if (Below(random, 4) == 0) options.color = testing::JpegColor::kCmyk;
      if (Below(random, 4) == 0) options.scans = testing::JpegScans::kProgressive;
      sample.padded = Padded(MakeJpeg(options));
      sample.whole = DecodeWhole(Unpadded(sample.padded));
      sample.luma = DecodeWhole(Unpadded(sample.padded), 1, /*gray=*/true);
      break;
    }
    case 1: {
      constexpr int kColors[] = {0, 2, 3, 4, 6};
      const std::vector<uint8_t> file = MakePng({.width = width,
                                                 .height = height,
                                                 .color = kColors[random.Below(5)],
                                                 .interlaced = random.Below(3) == 0,
                                                 .seed = n});
      sample.padded = Padded(testing::WithChunk(file, "IDAT", testing::PngChunk("eXIf", tiff)));
      sample.whole = DecodeWholePng(Unpadded(sample.padded));
      break;
    }
    default: {
      const std::vector<uint8_t> file =
          MakeWebp({.width = width, .height = height, .lossless = random.Below(2) == 0, .seed = n});
      sample.padded =
          Padded(testing::Extended(file, width, height, 8, {}, testing::WebpChunk("EXIF", tiff)));
      sample.whole = DecodeWholeWebp(Unpadded(sample.padded));
    }
  }
  return sample;
}

// Returns the pixel at (x, y) of the image as viewed.
const uint8_t* PixelOf(const WholeImage& whole, Orientation orientation, int x, int y) {
  const Rect at = Stored({x, y, 1, 1}, whole.size, orientation);
  return whole.pixels.data() +
         static_cast<ptrdiff_t>(at.y * whole.size.width + at.x) * BytesPerPixel(whole.layout);
}

// Returns what the array must hold, by the definitions.
std::vector<uint8_t> NaiveArray(const WholeImage& whole, Orientation orientation,
                                const Rect& region, bool gray) {
  std::vector<uint8_t> array;
  for (int y = region.y; y < region.y + region.height; ++y) {
    for (int x = region.x; x < region.x + region.width; ++x) {
      const uint8_t* const p = PixelOf(whole, orientation, x, y);
      const bool is_gray = whole.layout == PixelLayout::kGray;
      const int r = p[0], g = is_gray ? r : p[1], b = is_gray ? r : p[2];
      const int luma = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16;
      if (gray) {
        array.push_back(static_cast<uint8_t>(luma));
      } else {
        for (const int c : {r, g, b}) array.push_back(static_cast<uint8_t>(c));
      }
    }
  }
  return array;
}

constexpr size_t kGuardBytes = 256;

struct ArrayOutcome {
  ArrayShape shape;
  std::vector<uint8_t> bytes;
  std::string error;
};

// Decodes, and checks that nothing next to the array is written.
template <typename Image>
ArrayOutcome Decode(ArrayDecoder& decoder, const Image& image, const ArrayRequest& request) {
  Result<ArrayShape> shape = decoder.Open(image, request);
  if (!shape.ok()) return {{}, {}, shape.error().ToString()};
  const size_t bytes = shape->bytes();
  std::vector<uint8_t> memory(bytes + 2 * kGuardBytes, 0xA5);
  const Status status = decoder.Decode(memory.data() + kGuardBytes);
  for (size_t i = 0; i < kGuardBytes; ++i) {
    EXPECT_EQ(memory[i], 0xA5);
    EXPECT_EQ(memory[kGuardBytes + bytes + i], 0xA5) << "byte " << i << " after the array";
  }
  if (!status.ok()) return {{}, {}, status.error().ToString()};
  return {*shape, {memory.data() + kGuardBytes, memory.data() + kGuardBytes + bytes}, ""};
}

class ArrayDecoderTest : public ::testing::Test {
 protected:
  MemoryBudget budget_{64 << 20};
  ArrayDecoder decoder_{{}, budget_};
};

TEST_F(ArrayDecoderTest, ArraysAreThePixelsAsViewed) {
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(1500)); ++n) {
    const Sample sample = MakeSample(n);
    ASSERT_TRUE(sample.whole.ok()) << sample.name;
    RandomStream random({22, 0, n}, 0);
    ArrayRequest request{.channels = n % 3 == 1 ? Channels::kGray : Channels::kRgb,
                         .exif_orientation = n % 5 != 0};
    const bool gray = request.channels == Channels::kGray;
    const Orientation turned = request.exif_orientation ? sample.orientation : Orientation::kNormal;
    const ImageSize viewed = Viewed(sample.whole->size, turned);
    Rect region{0, 0, viewed.width, viewed.height};
    if (n % 2 == 0) request.region = region = testing::RandomRegion(viewed, random);
    const ArrayOutcome got = Decode(decoder_, Unpadded(sample.padded), request);
    ASSERT_EQ(got.error, "") << sample.name;
    std::vector<int64_t> sides{region.height, region.width, 3};
    if (gray) sides.pop_back();
    ASSERT_EQ(got.shape.sides, sides);
    ASSERT_EQ(got.shape.dtype, DType::kU8);
    const WholeImage& whole = gray && sample.luma ? **sample.luma : *sample.whole;
    ASSERT_EQ(got.bytes, NaiveArray(whole, turned, region, gray)) << sample.name;
  }
}

// Returns the largest difference of two arrays of one size.
int Apart(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int most = a.size() == b.size() ? 0 : 256;
  for (size_t i = 0; most < 256 && i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The resized region is what a plan makes of an image that consists of the region. (Turned images
// are resampled as they are stored, where other axes are rounded first.)
TEST_F(ArrayDecoderTest, ResizedArraysAreThePlans) {
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(600)); ++n) {
    const Sample sample = MakeSample(n);
    RandomStream random({23, 0, n}, 0);
    const ImageSize viewed = Viewed(sample.whole->size, sample.orientation);
    const Rect region = n % 2 == 0 ? Rect{0, 0, viewed.width, viewed.height}
                                   : testing::RandomRegion(viewed, random);
    const Resize resize{
        .height = 1 + Below(random, 90),
        .width = 1 + Below(random, 90),
        .antialias = n % 4 != 0,
        .interpolation = n % 7 == 0 ? Interpolation::kNearest : Interpolation::kBilinear};
    ArrayRequest request{.region = region, .resize = resize};
    const ArrayOutcome got = Decode(decoder_, Unpadded(sample.padded), request);
    ASSERT_EQ(got.error, "") << sample.name;
    ASSERT_EQ(got.shape.sides, (std::vector<int64_t>{resize.height, resize.width, 3}));

    const std::vector<uint8_t> part = NaiveArray(*sample.whole, sample.orientation, region, false);
    const ImageView view{
        PixelLayout::kInterleaved, region.size(), {part.data()}, {ptrdiff_t{3} * region.width}};
    const Plan plan = Plan::Compile({resize}).value();
    const auto workspace = plan.MakeWorkspace(budget_);
    std::vector<uint8_t> want(plan.row_bytes());
    StageTimes times;
    ASSERT_TRUE(plan.Apply(view, {}, *workspace, {.row = want.data()}, times).ok());
    ASSERT_LE(Apart(got.bytes, want), sample.orientation == Orientation::kNormal ? 0 : 1)
        << sample.name;
    if (n % 2 == 0) {
      const Status applied =
          plan.Apply(Unpadded(sample.padded), {}, *workspace, want.data(), times);
      ASSERT_TRUE(applied.ok());
      ASSERT_EQ(got.bytes, want) << sample.name;
    }

    request.channels = Channels::kGray;
    const ArrayOutcome gray = Decode(decoder_, Unpadded(sample.padded), request);
    const WholeImage& whole = sample.luma ? **sample.luma : *sample.whole;
    const std::vector<uint8_t> luma = NaiveArray(whole, sample.orientation, region, true);
    const ImageView gray_view{PixelLayout::kGray, region.size(), {luma.data()}, {region.width}};
    ASSERT_TRUE(plan.Apply(gray_view, {}, *workspace, {.row = want.data()}, times).ok());
    std::vector<uint8_t> want_gray;
    for (size_t i = 0; i < want.size(); i += 3) want_gray.push_back(want[i]);
    ASSERT_LE(Apart(gray.bytes, want_gray), sample.orientation == Orientation::kNormal ? 0 : 1)
        << sample.name;
  }
}

TEST_F(ArrayDecoderTest, OneSizeIsTheShorterSide) {
  const std::vector<uint8_t> file = Padded(MakeJpeg({.width = 100, .height = 60}));
  const ArrayOutcome got = Decode(decoder_, Unpadded(file), {.resize = Resize{.size = 30}});
  EXPECT_EQ(got.shape.sides, (std::vector<int64_t>{30, 50, 3}));
}

TEST_F(ArrayDecoderTest, OtherTypesAndLayouts) {
  const Sample sample = MakeSample(4);
  const ImageSize size = Viewed(sample.whole->size, sample.orientation);
  const Rect all{0, 0, size.width, size.height};
  const std::vector<uint8_t> rgb = NaiveArray(*sample.whole, sample.orientation, all, false);
  const ArrayOutcome floats = Decode(decoder_, Unpadded(sample.padded), {.dtype = DType::kF32});
  ASSERT_EQ(floats.bytes.size(), 4 * rgb.size());
  const ArrayOutcome planes = Decode(decoder_, Unpadded(sample.padded), {.layout = Layout::kNchw});
  ASSERT_EQ(planes.shape.sides, (std::vector<int64_t>{3, size.height, size.width}));
  for (size_t i = 0; i < rgb.size(); ++i) {
    float value = 0;
    std::memcpy(&value, floats.bytes.data() + 4 * i, 4);
    ASSERT_EQ(value, static_cast<float>(rgb[i]) * (1.0F / 255));
    ASSERT_EQ(planes.bytes[i % 3 * rgb.size() / 3 + i / 3], rgb[i]);
  }
}

TEST_F(ArrayDecoderTest, TakesDecodedImages) {
  const Sample sample = MakeSample(1);
  const ImageSize size = sample.whole->size;
  const std::vector<uint8_t> rgb =
      NaiveArray(*sample.whole, Orientation::kNormal, {0, 0, size.width, size.height}, false);
  const ImageView view{PixelLayout::kInterleaved, size, {rgb.data()}, {ptrdiff_t{3} * size.width}};
  EXPECT_EQ(Decode(decoder_, view, {}).bytes, rgb);
  const WholeImage whole{size, PixelLayout::kInterleaved, rgb};
  const Rect region{size.width / 2, size.height / 3, 1, size.height / 3};
  EXPECT_EQ(Decode(decoder_, view, {.channels = Channels::kGray, .region = region}).bytes,
            NaiveArray(whole, Orientation::kNormal, region, true));
}

// Returns the sample `index` of row `y` of a decoded PNG of 8 or 16 bits, by libspng's own
// conversion.
std::vector<uint8_t> NaiveSamples(std::span<const uint8_t> png, int channels, int bits,
                                  ImageSize stored, Orientation orientation, const Rect& region) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> library(
      spng_ctx_new(SPNG_CTX_IGNORE_ADLER32), spng_ctx_free);
  EXPECT_EQ(spng_set_png_buffer(library.get(), png.data(), png.size()), 0);
  size_t size = 0;
  EXPECT_EQ(spng_decoded_image_size(library.get(), SPNG_FMT_PNG, &size), 0);
  std::vector<uint8_t> image(size);  // SPNG_FMT_PNG: as in the file, in the machine's byte order
  EXPECT_EQ(spng_decode_image(library.get(), image.data(), size, SPNG_FMT_PNG, 0), 0);
  const size_t pixel = static_cast<size_t>(channels * bits / 8);
  std::vector<uint8_t> array;
  for (int y = region.y; y < region.y + region.height; ++y) {
    for (int x = region.x; x < region.x + region.width; ++x) {
      const Rect at = Stored({x, y, 1, 1}, stored, orientation);
      const auto* const p = image.data() + static_cast<size_t>(at.y * stored.width + at.x) * pixel;
      array.insert(array.end(), p, p + pixel);
    }
  }
  return array;
}

struct MadePng {
  std::vector<uint8_t> padded;
  int channels;
  ImageSize stored;
  Orientation turned;
};

MadePng RandomPng(uint64_t n, int bits, RandomStream& random) {
  constexpr std::pair<int, int> kColors[] = {{0, 1}, {2, 3}, {4, 2}, {6, 4}};  // channels
  const auto [color, channels] = kColors[n % 4];
  const int orientation = 1 + Below(random, 8);
  const ImageSize stored{1 + Below(random, 60), 1 + Below(random, 60)};
  const std::vector<uint8_t> file = MakePng({.width = stored.width,
                                             .height = stored.height,
                                             .color = color,
                                             .bit_depth = bits,
                                             .interlaced = Below(random, 2) == 0,
                                             .seed = n});
  const auto exif = testing::PngChunk("eXIf", testing::OrientationTiff(orientation, false));
  return {Padded(testing::WithChunk(file, "IDAT", exif)), channels, stored,
          static_cast<Orientation>(orientation)};
}

TEST_F(ArrayDecoderTest, UnchangedKeepsAlphaAnd16Bits) {
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(400)); ++n) {
    RandomStream random({25, 0, n}, 0);
    const int bits = n % 3 == 0 ? 8 : 16;
    const auto [padded, channels, stored, turned] = RandomPng(n, bits, random);
    const Rect region = testing::RandomRegion(Viewed(stored, turned), random);
    const ArrayOutcome got =
        Decode(decoder_, Unpadded(padded), {.channels = Channels::kUnchanged, .region = region});
    ASSERT_EQ(got.error, "");
    std::vector<int64_t> sides{region.height, region.width, channels};
    if (channels == 1) sides.pop_back();
    ASSERT_EQ(got.shape.sides, sides);
    ASSERT_EQ(got.shape.dtype, bits == 16 ? DType::kU16 : DType::kU8);
    ASSERT_EQ(got.bytes, NaiveSamples(Unpadded(padded), channels, bits, stored, turned, region))
        << n;
  }
}

TEST_F(ArrayDecoderTest, UnchangedOfOthersIsGrayOrRgb) {
  for (uint64_t n = 0; n < 60; ++n) {
    const Sample sample = MakeSample(n);
    const ArrayOutcome got =
        Decode(decoder_, Unpadded(sample.padded), {.channels = Channels::kUnchanged});
    ASSERT_EQ(got.error, "") << sample.name;
    if (got.shape.sides.size() == 3 && got.shape.sides[2] != 3) continue;  // alpha
    const ImageSize size = Viewed(sample.whole->size, sample.orientation);
    const bool gray = sample.whole->layout == PixelLayout::kGray;
    ASSERT_EQ(got.shape.sides.size(), gray ? 2u : 3u);
    ASSERT_EQ(got.bytes,
              NaiveArray(*sample.whole, sample.orientation, {0, 0, size.width, size.height}, gray));
  }
}

// Returns the values of samples of 8 or 16 bits.
std::vector<int> ValuesOf(const std::vector<uint8_t>& samples, int bits) {
  std::vector<int> values;
  for (size_t i = 0; i < samples.size(); i += static_cast<size_t>(bits / 8)) {
    uint16_t wide = samples[i];
    if (bits == 16) std::memcpy(&wide, &samples[i], sizeof(wide));
    values.push_back(wide);
  }
  return values;
}

// Returns a pixel's channels, from `stored` gray or RGB with perhaps alpha, by their definitions.
std::vector<int> ChannelsBy(Channels wanted, const int* stored, int channels, int most) {
  const bool gray = channels < 3;
  const int r = stored[0], g = stored[gray ? 0 : 1], b = stored[gray ? 0 : 2];
  const int alpha = channels % 2 == 0 ? stored[channels - 1] : most;
  const auto luma =
      static_cast<int>((int64_t{19595} * r + int64_t{38470} * g + 7471 * b + 32768) / 65536);
  if (wanted == Channels::kGray) return {luma};
  if (wanted == Channels::kRgb) return {r, g, b};
  return {r, g, b, alpha};
}

TEST_F(ArrayDecoderTest, ChannelsAndTypesOfPngs) {
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(600)); ++n) {
    RandomStream random({26, 0, n}, 0);
    const int bits = Below(random, 2) == 0 ? 8 : 16;
    const auto [padded, channels, stored, turned] = RandomPng(n, bits, random);
    const Rect region = testing::RandomRegion(Viewed(stored, turned), random);
    constexpr Channels kWanted[] = {Channels::kGray, Channels::kRgb, Channels::kRgba};
    constexpr DType kTypes[] = {DType::kU8, DType::kU16, DType::kF32};
    const ArrayRequest request{.channels = kWanted[Below(random, 3)],
                               .region = region,
                               .dtype = kTypes[Below(random, 3)],
                               .layout = Below(random, 2) == 0 ? Layout::kNhwc : Layout::kNchw};
    const ArrayOutcome got = Decode(decoder_, Unpadded(padded), request);
    if (request.dtype == DType::kU8 && bits == 16) {
      ASSERT_NE(got.error.find("of 16 bits a channel"), std::string::npos) << got.error;
      continue;
    }
    ASSERT_EQ(got.error, "");
    const std::vector<int> values =
        ValuesOf(NaiveSamples(Unpadded(padded), channels, bits, stored, turned, region), bits);
    const size_t pixels = values.size() / static_cast<size_t>(channels);
    const int most = bits == 16 ? 65535 : 255;
    for (size_t i = 0; i < pixels; ++i) {
      const std::vector<int> wanted =
          ChannelsBy(request.channels, &values[i * static_cast<size_t>(channels)], channels, most);
      for (size_t c = 0; c < wanted.size(); ++c) {
        const size_t at = request.layout == Layout::kNhwc ? i * wanted.size() + c : c * pixels + i;
        const int value = request.dtype == DType::kU16 && bits == 8 ? 257 * wanted[c] : wanted[c];
        if (request.dtype == DType::kF32) {
          float number;
          std::memcpy(&number, &got.bytes[4 * at], 4);
          ASSERT_NEAR(number, static_cast<float>(value) / static_cast<float>(most), 2e-7) << n;
        } else {
          const int bits_of = request.dtype == DType::kU16 ? 16 : 8;
          const auto begin = got.bytes.begin() + static_cast<ptrdiff_t>(at) * (bits_of / 8);
          ASSERT_EQ(ValuesOf({begin, begin + bits_of / 8}, bits_of)[0], value) << n;
        }
      }
    }
  }
}

// JPEGs and WebPs have no such channels: they are widened.
TEST_F(ArrayDecoderTest, ChannelsAndTypesOfOthers) {
  for (uint64_t n = 0; n < 90; ++n) {
    const Sample sample = MakeSample(n);
    const Channels channels = n % 2 == 0 ? Channels::kRgb : Channels::kGray;
    const ArrayOutcome narrow = Decode(decoder_, Unpadded(sample.padded), {.channels = channels});
    const ArrayOutcome wide =
        Decode(decoder_, Unpadded(sample.padded), {.channels = channels, .dtype = DType::kU16});
    ASSERT_EQ(wide.error, "") << sample.name;
    ASSERT_EQ(wide.shape.sides, narrow.shape.sides);
    const std::vector<int> values = ValuesOf(wide.bytes, 16);
    ASSERT_EQ(values.size(), narrow.bytes.size());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], 257 * narrow.bytes[i]);
  }
}

TEST_F(ArrayDecoderTest, TheAlphaOfAWebpIsKept) {
  for (const bool lossless : {false, true}) {
    const std::vector<uint8_t> webp = Padded(MakeWebp({.lossless = lossless, .alpha = true}));
    const std::vector<uint8_t> want = DecodeWholeWebpRgba(Unpadded(webp)).value();
    for (const Channels channels : {Channels::kUnchanged, Channels::kRgba, StoredChannels(4)}) {
      const ArrayOutcome got = Decode(decoder_, Unpadded(webp), {.channels = channels});
      EXPECT_EQ(got.shape.sides, (std::vector<int64_t>{48, 64, 4})) << got.error;
      EXPECT_EQ(got.bytes, want);
    }
  }
}

TEST_F(ArrayDecoderTest, CountedChannelsHaveTheTypeAskedFor) {
  const std::vector<uint8_t> deep = Padded(MakePng({.color = 6, .bit_depth = 16}));
  const ArrayOutcome stored = Decode(decoder_, Unpadded(deep), {.channels = Channels::kUnchanged});
  ASSERT_EQ(stored.shape.dtype, DType::kU16);
  const ArrayOutcome wide =
      Decode(decoder_, Unpadded(deep), {.channels = StoredChannels(4), .dtype = DType::kU16});
  EXPECT_EQ(wide.bytes, stored.bytes);
  EXPECT_NE(Decode(decoder_, Unpadded(deep), {.channels = StoredChannels(4)})
                .error.find("of 16 bits a channel"),
            std::string::npos);
  ArrayDecoder narrow({.accept_16_bits = true}, budget_);
  const ArrayOutcome upper = Decode(narrow, Unpadded(deep), {.channels = StoredChannels(4)});
  ASSERT_EQ(upper.bytes.size() * 2, stored.bytes.size()) << upper.error;
  for (size_t i = 0; i < upper.bytes.size(); ++i) {
    ASSERT_EQ(upper.bytes[i], stored.bytes[2 * i + 1]);  // little-endian
  }
  EXPECT_EQ(decoder_.Open(Unpadded(deep), {.channels = StoredChannels(3)}).error().cause,
            "an image of 4 channels, where each must have 3");
}

TEST_F(ArrayDecoderTest, TwoAtATime) {
  ArrayDecoder other({}, budget_);
  const std::vector<uint8_t> a = Padded(MakeJpeg({.width = 200, .height = 90}));
  const std::vector<uint8_t> b = Padded(MakeJpeg({.width = 120, .height = 160, .orientation = 6}));
  const ArrayOutcome want_a = Decode(decoder_, Unpadded(a), {}),
                     want_b = Decode(other, Unpadded(b), {});
  std::vector<uint8_t> got_a(want_a.bytes.size()), got_b(want_b.bytes.size());
  ASSERT_TRUE(decoder_.Open(Unpadded(a), {}).ok());
  ASSERT_TRUE(other.Open(Unpadded(b), {}).ok());
  decoder_.Start(got_a.data());
  other.Start(got_b.data());
  while (decoder_.decoding() && other.decoding()) ArrayDecoder::AdvanceBoth(decoder_, other);
  while (decoder_.decoding()) decoder_.Advance();
  while (other.decoding()) other.Advance();
  ASSERT_TRUE(decoder_.Finish().ok());
  ASSERT_TRUE(other.Finish().ok());
  EXPECT_EQ(got_a, want_a.bytes);
  EXPECT_EQ(got_b, want_b.bytes);
}

TEST_F(ArrayDecoderTest, RefusesWhatCannotBeDone) {
  const std::vector<uint8_t> file = Padded(MakeJpeg({.width = 100, .height = 60}));
  const auto error = [&](const ArrayRequest& request) {
    return Decode(decoder_, Unpadded(file), request).error;
  };
  for (const Rect& region : {Rect{0, 0, 0, 5}, Rect{-1, 0, 5, 5}, Rect{96, 0, 5, 5},
                             Rect{0, 56, 5, 5}, Rect{1, 1, 2147483647, 1}}) {
    EXPECT_NE(error({.region = region}).find("is not inside the image, which has height 60"),
              std::string::npos);
  }
  // A thin image would become a long one.
  const std::vector<uint8_t> thin = Padded(MakeJpeg({.width = 2000, .height = 1}));
  const Error refused = decoder_.Open(Unpadded(thin), {.resize = Resize{.size = 500}}).error();
  EXPECT_EQ(refused.code, Code::kResourceExhausted);
  EXPECT_EQ(refused.cause.find("the resized image would be an image of 1000000 × 500"), 0u);
}

TEST_F(ArrayDecoderTest, DamageIsTheDecodersError) {
  size_t failed = 0;
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(600)); ++n) {
    Sample sample = MakeSample(n);
    RandomStream random({24, 0, n}, 0);
    std::vector<uint8_t> file(Unpadded(sample.padded).begin(), Unpadded(sample.padded).end());
    file.resize(file.size() - random.Below(file.size()));
    file[random.Below(file.size())] ^= 1 << random.Below(8);
    const std::vector<uint8_t> padded = Padded(file);
    ImageDecoder plain;
    const Error want = testing::ErrorOf(plain, padded);
    const ArrayRequest request{.channels = n % 3 == 1 ? Channels::kGray : Channels::kRgb};
    const ArrayOutcome got = Decode(decoder_, Unpadded(padded), request);
    ASSERT_EQ(got.error, want.cause.empty() ? "" : want.ToString()) << sample.name;
    failed += got.error.empty() ? 0 : 1;
  }
  EXPECT_GT(failed, 10u);
}

// The budget covers memory other than the array.
TEST(ArrayDecoder, KeepsToItsBudget) {
  MemoryBudget none(4096);
  ArrayDecoder decoder({}, none);
  const std::vector<uint8_t> file = Padded(MakeJpeg({.width = 1000, .height = 600}));
  ASSERT_TRUE(decoder.Open(Unpadded(file), {}).ok());
  std::vector<uint8_t> array(1000 * 600 * 3);
  EXPECT_EQ(decoder.Decode(array.data()).error().code, Code::kResourceExhausted);
  EXPECT_LE(none.peak(), 4096u);
}

}  // namespace
}  // namespace stoker
