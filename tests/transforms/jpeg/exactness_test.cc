// Regions equal the crop of a full decode, byte for byte, for every kind of JPEG that can be made.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/transforms/jpeg/decode.h"

namespace stoker::testing {
namespace {

// One decoder for all tests, so that state left by an image would show in the next.
JpegDecoder& Decoder() {
  static JpegDecoder decoder;
  return decoder;
}

struct Kind {
  const char* name;
  JpegColor color;
  std::vector<Sampling> sampling;
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"444", JpegColor::kYCbCr, Luma(1, 1)},
      {"422", JpegColor::kYCbCr, Luma(2, 1)},
      {"420", JpegColor::kYCbCr, Luma(2, 2)},
      {"440", JpegColor::kYCbCr, Luma(1, 2)},
      {"411", JpegColor::kYCbCr, Luma(4, 1)},
      {"410", JpegColor::kYCbCr, Luma(4, 2)},
      {"1x4", JpegColor::kYCbCr, Luma(1, 4)},
      {"2x4", JpegColor::kYCbCr, Luma(2, 4)},
      {"3x1", JpegColor::kYCbCr, Luma(3, 1)},
      {"ChromaAbove", JpegColor::kYCbCr, {{1, 1}, {2, 2}, {2, 2}}},
      {"Mixed221211", JpegColor::kYCbCr, {{2, 2}, {1, 2}, {1, 1}}},
      {"Mixed2112", JpegColor::kYCbCr, {{2, 1}, {1, 2}, {1, 1}}},
      {"Mixed412111", JpegColor::kYCbCr, {{4, 1}, {2, 1}, {1, 1}}},
      {"Mixed141211", JpegColor::kYCbCr, {{1, 4}, {1, 2}, {1, 1}}},
      {"Mixed1221", JpegColor::kYCbCr, {{1, 2}, {2, 1}, {1, 1}}},
      {"Gray", JpegColor::kGray, {}},
      {"Gray22", JpegColor::kGray, Luma(2, 2)},
      {"Gray12", JpegColor::kGray, Luma(1, 2)},
      {"Rgb", JpegColor::kRgb, {}},
      {"Rgb22", JpegColor::kRgb, Luma(2, 2)},
      {"Cmyk", JpegColor::kCmyk, {}},
      {"Cmyk21", JpegColor::kCmyk, {{2, 1}, {1, 1}, {1, 1}, {2, 1}}},
      {"Ycck", JpegColor::kYcck, {{2, 2}, {1, 1}, {1, 1}, {2, 2}}},
  };
  return kinds;
}

struct Coding {
  const char* name;
  JpegScans scans;
  bool arithmetic;
  bool optimize;
  int restart_interval;
  int quality;
};

constexpr std::array<Coding, 16> kCodings = {{
    {"Baseline", JpegScans::kOne, false, false, 0, 90},
    {"Optimized", JpegScans::kOne, false, true, 0, 60},
    {"Fine", JpegScans::kOne, false, false, 0, 100},
    {"Restarts", JpegScans::kOne, false, false, 1, 90},
    {"RestartsOf3", JpegScans::kOne, false, true, 3, 25},
    {"PerComponent", JpegScans::kOnePerComponent, false, false, 2, 90},
    {"Progressive", JpegScans::kProgressive, false, false, 0, 90},
    {"ProgressiveRestarts", JpegScans::kProgressive, false, false, 5, 75},
    {"Spectral", JpegScans::kSpectral, false, false, 0, 90},
    {"Successive", JpegScans::kSuccessive, false, false, 7, 97},
    {"RefinedDc", JpegScans::kRefinedDc, false, false, 0, 60},
    {"Bands", JpegScans::kBands, false, false, 3, 100},
    {"DcOnly", JpegScans::kDcOnly, false, false, 0, 90},
    {"Coarse", JpegScans::kCoarse, false, false, 0, 90},
    {"Arithmetic", JpegScans::kOne, true, false, 4, 90},
    {"ArithmeticProgressive", JpegScans::kProgressive, true, false, 0, 90},
}};

void CheckRegion(const std::vector<uint8_t>& bytes, const WholeImage& whole, const Rect& region,
                 Reduction reduction = 1, PixelLayout wants = PixelLayout::kPlanar) {
  KeepRows sink(wants);
  const Status status = DecodeAll(Decoder(), bytes, region, sink, {}, reduction);
  ASSERT_TRUE(status.ok()) << Text(region) << ": " << status.error().ToString();
  ASSERT_EQ(Difference(sink, region, whole), "") << Text(region);
}

WholeImage Whole(const std::vector<uint8_t>& padded, Reduction reduction = 1, bool gray = false) {
  Result<WholeImage> whole =
      DecodeWhole(std::span(padded).first(padded.size() - kBufferPadding), reduction, gray);
  return std::move(whole).value();
}

// Regions at the edges, and `others`; and luma alone of every third one.
void CheckRegions(const std::vector<uint8_t>& bytes, Reduction reduction, int others,
                  const DrawKey& key) {
  const WholeImage whole = Whole(bytes, reduction);
  RandomStream random(key, 0);
  std::vector<Rect> regions = EdgeRegions(whole.size);
  for (int i = 0; i < others; ++i) regions.push_back(RandomRegion(whole.size, random));
  for (const Rect& region : regions) {
    CheckRegion(bytes, whole, region, reduction);
    if (::testing::Test::HasFatalFailure()) return;
  }
  const WholeImage luma = Whole(bytes, reduction, /*gray=*/true);
  for (size_t i = 0; i < regions.size(); i += 3) {
    CheckRegion(bytes, luma, regions[i], reduction, PixelLayout::kGray);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

JpegOptions OptionsOf(const Coding& coding, const Kind& kind, ImageSize size, uint64_t seed) {
  JpegOptions options{size.width, size.height, kind.color, kind.sampling, coding.scans};
  options.arithmetic = coding.arithmetic;
  options.optimize = coding.optimize;
  options.quality = coding.quality;
  options.restart_interval = coding.restart_interval;
  options.seed = seed;
  return options;
}

class Exactness : public ::testing::TestWithParam<Coding> {};

// Sizes around blocks and MCUs of every kind, in both directions.
std::vector<ImageSize> Sizes() {
  std::vector<ImageSize> sizes;
  for (int n = 1; n <= 40; ++n) sizes.push_back({n, 1 + (n * 17) % 40});
  for (int n : {1, 2, 3, 5, 8, 9, 16, 17, 31, 33}) sizes.push_back({70 - n, n});
  for (ImageSize s :
       {ImageSize{67, 129}, ImageSize{129, 67}, ImageSize{128, 64}, ImageSize{97, 3}}) {
    sizes.push_back(s);
  }
  return sizes;
}

// If Effort is less than full: a fifth of the sizes, different ones for each kind. `check` takes a
// file and its number.
template <class Check>
void ForFilesOf(const Coding& coding, uint64_t before, Check check) {
  const std::vector<ImageSize> sizes = Sizes();
  const auto stride = static_cast<size_t>(10 / Effort(10));
  size_t first = 0;
  uint64_t n = before;
  for (const Kind& kind : Kinds()) {
    for (size_t s = first++ % stride; s < sizes.size(); s += stride) {
      const ImageSize size = sizes[s];
      SCOPED_TRACE(std::string(kind.name) + " " + std::to_string(size.width) + "x" +
                   std::to_string(size.height));
      ++n;
      check(Padded(MakeJpeg(OptionsOf(coding, kind, size, n))), n);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(Exactness, RandomRegionsEqualTheFullDecode) {
  ForFilesOf(GetParam(), 0, [](const std::vector<uint8_t>& bytes, uint64_t n) {
    CheckRegions(bytes, 1, 8, {7, 0, n});
  });
}

TEST_P(Exactness, RegionsOfReducedImagesEqualTheFullDecode) {
  ForFilesOf(GetParam(), 1000, [](const std::vector<uint8_t>& bytes, uint64_t n) {
    const Reduction most = MaxReduction(OpenPadded(Decoder(), bytes).value());
    for (Reduction reduction = 2; reduction <= most; reduction *= 2) {
      SCOPED_TRACE("1/" + std::to_string(reduction));
      CheckRegions(bytes, reduction, 4, {8, 0, n});
      if (HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Codings, Exactness, ::testing::ValuesIn(kCodings),
                         [](const auto& info) { return std::string(info.param.name); });

class EverySpan : public ::testing::TestWithParam<Kind> {};

// All spans of columns, then all spans of rows, of a baseline and of a progressive image.
TEST_P(EverySpan, EqualsTheFullDecode) {
  const ImageSize size{53, 51};
  for (const JpegScans scans : {JpegScans::kOne, JpegScans::kProgressive}) {
    const JpegOptions options{size.width, size.height, GetParam().color, GetParam().sampling,
                              scans};
    const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
    const WholeImage whole = Whole(bytes);
    for (int from = 0; from < size.width; ++from) {
      for (int to = from + 1; to <= size.width; ++to) {
        CheckRegion(bytes, whole, {from, (from * 5 + to) % 40, to - from, 1 + to % 11});
        if (HasFatalFailure()) return;
      }
    }
    for (int from = 0; from < size.height; ++from) {
      for (int to = from + 1; to <= size.height; ++to) {
        CheckRegion(bytes, whole, {(from * 5 + to) % 40, from, 1 + to % 13, to - from});
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySpan, ::testing::ValuesIn(Kinds()),
                         [](const auto& info) { return std::string(info.param.name); });

// Each file starts from the standard's tables, whatever came before: a file without Huffman tables
// (as in motion JPEG) decodes alike in a new decoder and in a used one.
TEST(Tables, DoNotLeakFromImageToImage) {
  const std::vector<uint8_t> plain = MakeJpeg();
  std::vector<uint8_t> bare(plain.begin(), plain.begin() + 2);
  bool scan = false;
  for (size_t at = 2; at + 4 <= plain.size();) {
    const size_t next = scan ? plain.size() : at + 2 + (plain[at + 2] << 8 | plain[at + 3]);
    scan |= plain[at + 1] == 0xDA;
    const bool huffman = !scan && plain[at + 1] == 0xC4;
    if (!huffman) {
      bare.insert(bare.end(), plain.begin() + static_cast<ptrdiff_t>(at),
                  scan ? plain.end() : plain.begin() + static_cast<ptrdiff_t>(next));
    }
    if (scan) break;
    at = next;
  }
  ASSERT_LT(bare.size() + 400, plain.size());
  const WholeImage whole = Whole(Padded(plain));
  JpegDecoder decoder;
  for (const bool optimized_before : {false, true}) {
    KeepRows sink;
    if (optimized_before) {
      JpegOptions other;
      other.optimize = true;
      other.quality = 12;
      ASSERT_TRUE(DecodeAll(decoder, Padded(MakeJpeg(other)), {}, sink).ok());
    }
    ASSERT_TRUE(DecodeAll(decoder, Padded(bare), {}, sink).ok());
    EXPECT_EQ(Difference(sink, {0, 0, 64, 48}, whole), "") << optimized_before;
  }
}

// Pillow takes CMYK as inverted whether Adobe's marker says so or not.
TEST(Cmyk, IsInvertedWithAndWithoutMarker) {
  JpegOptions options;
  options.color = JpegColor::kCmyk;
  KeepRows with;
  KeepRows without;
  ASSERT_TRUE(DecodeAll(Decoder(), Padded(MakeJpeg(options)), {}, with).ok());
  options.adobe_marker = false;
  ASSERT_TRUE(DecodeAll(Decoder(), Padded(MakeJpeg(options)), {}, without).ok());
  for (int y = 0; y < options.height; ++y) {
    EXPECT_EQ(std::memcmp(with.Row(y), without.Row(y), 3u * 64), 0);
  }
}

}  // namespace
}  // namespace stoker::testing
