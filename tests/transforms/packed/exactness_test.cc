// Packed JPEGs are restored to the byte and have the JPEG's pixels, for every kind that can be
// made; what stoker's own decoder does not decode is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/transforms/jpeg/fast/kinds.h"
#include "tests/transforms/whole.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

// One of each for all tests: what an image leaves in it must not show in the next.
JpegPacker& Packer() {
  static JpegPacker packer;
  return packer;
}
ImageDecoder& Decoder() {
  static ImageDecoder decoder;
  return decoder;
}

// Describes a difference between the images of `jpeg` and of a packed JPEG; empty if there is none.
std::string ComparePixels(const std::vector<uint8_t>& jpeg, std::span<const uint8_t> packed,
                          uint64_t seed) {
  const std::vector<uint8_t> padded = Padded(jpeg);
  const std::vector<uint8_t> file = Padded({packed.begin(), packed.end()});
  JpegDecoder theirs;
  const Result<ImageInfo> want = OpenPadded(theirs, padded);
  const Result<ImageInfo> got = Decoder().Open(Unpadded(file));
  if (!want.ok() || !got.ok()) return "not opened";
  if (got->format != ImageFormat::kPackedJpeg || got->size != want->size ||
      got->orientation != want->orientation || got->components != want->components ||
      got->chroma_columns != want->chroma_columns || got->chroma_rows != want->chroma_rows) {
    return "other facts";
  }
  const WholeImage whole = DecodeWhole(jpeg).value();
  RandomStream random({7, 0, seed}, 0);
  std::vector<Rect> regions = EdgeRegions(whole.size);
  for (int i = 0; i < 8; ++i) regions.push_back(RandomRegion(whole.size, random));
  for (const Rect& region : regions) {
    std::string difference = Compare(Decoder(), file, region, whole);
    if (!difference.empty()) return difference;
  }
  const WholeImage luma = DecodeWhole(jpeg, 1, /*gray=*/true).value();
  for (size_t i = 0; i < regions.size(); i += 3) {
    std::string difference = Compare(Decoder(), file, regions[i], luma, PixelLayout::kGray);
    if (!difference.empty()) return "luma: " + difference;
  }
  for (Reduction reduction = 2; reduction <= MaxReduction(*want); reduction *= 2) {
    const WholeImage reduced = DecodeWhole(jpeg, reduction).value();
    regions = EdgeRegions(reduced.size);
    for (int i = 0; i < 4; ++i) regions.push_back(RandomRegion(reduced.size, random));
    for (const Rect& region : regions) {
      std::string difference = CompareBy(
          [&](const Rect& r, RowSink& rows) { return Decoder().Decode(r, rows, {}, reduction); },
          Decoder(), file, region, reduced, reduction);
      if (!difference.empty()) return "1/" + std::to_string(reduction) + ": " + difference;
    }
  }
  return {};
}

// Returns the fault in packing `jpeg`, or an empty text.
std::string Check(const std::vector<uint8_t>& jpeg, uint64_t seed) {
  Result<std::vector<uint8_t>> packed = Packer().Pack(Unpadded(Padded(jpeg)));
  if (!packed.ok()) return packed.error().ToString();
  const Result<std::vector<uint8_t>> restored = RestoreJpeg(Unpadded(Padded(*packed)));
  if (!restored.ok()) return restored.error().ToString();
  if (*restored != jpeg) return "restored to other bytes";
  return ComparePixels(jpeg, *packed, seed);
}

// What is wrong with packing the pixels of `jpeg`.
std::string CheckPixels(const std::vector<uint8_t>& jpeg, uint64_t seed) {
  const std::vector<uint8_t> padded = Padded(jpeg);
  const Result<std::span<const uint8_t>> packed = Packer().PackPixels(Unpadded(padded));
  return packed.ok() ? ComparePixels(jpeg, *packed, seed) : packed.error().ToString();
}

struct Coding {
  const char* name;
  bool optimize;
  int restart_interval;
  int quality;
  JpegScans scans = JpegScans::kOne;
};

constexpr std::array<Coding, 13> kCodings = {{
    {"Baseline", false, 0, 90},
    {"Optimized", true, 0, 60},
    {"Fine", false, 0, 100},
    {"Restarts", false, 1, 90},
    {"RestartsOf3", true, 3, 25},
    {"Progressive", false, 0, 90, JpegScans::kProgressive},
    {"ProgressiveFine", false, 0, 100, JpegScans::kProgressive},
    {"ProgressiveRestarts", false, 1, 60, JpegScans::kProgressive},
    {"Spectral", false, 0, 60, JpegScans::kSpectral},
    {"Successive", false, 0, 90, JpegScans::kSuccessive},
    {"SuccessiveRestartsOf7", false, 7, 100, JpegScans::kSuccessive},
    {"RefinedDc", false, 0, 90, JpegScans::kRefinedDc},
    {"BandsRestartsOf3", false, 3, 90, JpegScans::kBands},
}};

class PackedExactness : public ::testing::TestWithParam<Coding> {};

// Sizes around blocks, groups, runs and MCUs.
std::vector<ImageSize> PackedSizes() {
  std::vector<ImageSize> sizes;
  for (int n = 1; n <= 40; ++n) sizes.push_back({n, 1 + (n * 17) % 40});
  for (const ImageSize s : {ImageSize{67, 129}, ImageSize{129, 67}, ImageSize{128, 64},
                            ImageSize{97, 3}, ImageSize{257, 9}, ImageSize{530, 17}}) {
    sizes.push_back(s);
  }
  return sizes;
}

// Where Effort is less than full: a fifth of the sizes, others for each kind.
TEST_P(PackedExactness, OfEachKind) {
  const Coding& coding = GetParam();
  const std::vector<ImageSize> sizes = PackedSizes();
  const auto stride = static_cast<size_t>(10 / Effort(10));
  size_t first = 0;
  uint64_t n = 0;
  for (const FastJpeg& kind : FastJpegs()) {
    for (size_t s = first++ % stride; s < sizes.size(); s += stride) {
      JpegOptions options{sizes[s].width, sizes[s].height, kind.color, kind.sampling};
      options.optimize = coding.optimize;
      options.quality = coding.quality;
      options.restart_interval = coding.restart_interval;
      options.scans = coding.scans;
      options.orientation = static_cast<int>(n % 9);
      options.seed = ++n;
      const bool narrow =
          options.width <= 4 && kind.color == JpegColor::kYCbCr && kind.sampling[0].columns == 2;
      const std::string wrong = Check(MakeJpeg(options), n);
      if (narrow) {
        EXPECT_NE(wrong.find("is not packed"), std::string::npos) << wrong;
        continue;
      }
      ASSERT_EQ(wrong, "") << kind.name << " " << options.width << "x" << options.height;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codings, PackedExactness, ::testing::ValuesIn(kCodings),
                         [](const auto& info) { return std::string(info.param.name); });

// All spans of columns, and of rows.
TEST(PackedExactness, OfEverySpan) {
  const ImageSize size{83, 51};
  for (const FastJpeg& kind : FastJpegs()) {
    const std::vector<uint8_t> jpeg =
        MakeJpeg({size.width, size.height, kind.color, kind.sampling});
    const std::vector<uint8_t> file = Padded(Packer().Pack(Unpadded(Padded(jpeg))).value());
    const WholeImage whole = DecodeWhole(jpeg).value();
    for (int from = 0; from < size.width; ++from) {
      for (int to = from + 1; to <= size.width; ++to) {
        const Rect region{from, (from * 5 + to) % 40, to - from, 1 + to % 11};
        ASSERT_EQ(Compare(Decoder(), file, region, whole), "") << kind.name;
      }
    }
    for (int from = 0; from < size.height; ++from) {
      for (int to = from + 1; to <= size.height; ++to) {
        const Rect region{(from * 5 + to) % 70, from, 1 + to % 13, to - from};
        ASSERT_EQ(Compare(Decoder(), file, region, whole), "") << kind.name;
      }
    }
  }
}

// Why a JPEG is not packed; empty if it is.
std::string WhyNot(const std::vector<uint8_t>& jpeg) {
  const Result<std::vector<uint8_t>> packed = Packer().Pack(Unpadded(Padded(jpeg)));
  if (packed.ok()) return {};
  EXPECT_EQ(packed.error().code, Code::kUnimplemented);
  return packed.error().cause;
}

TEST(PackPixels, GivesWhatPackGives) {
  for (const FastJpeg& kind : FastJpegs()) {
    const std::vector<uint8_t> jpeg = Padded(MakeJpeg({113, 87, kind.color, kind.sampling}));
    const std::vector<uint8_t> whole = Packer().Pack(Unpadded(jpeg)).value();
    const std::span<const uint8_t> pixels = Packer().PackPixels(Unpadded(jpeg)).value();
    EXPECT_TRUE(std::ranges::equal(pixels, whole)) << kind.name;
  }
}

TEST(PackPixels, TakesItsMemoryFromTheBudget) {
  const std::vector<uint8_t> jpeg = Padded(MakeJpeg({.width = 640, .height = 480}));
  const std::vector<uint8_t> wanted = Packer().Pack(Unpadded(jpeg)).value();
  int packed = 0, refused = 0;
  for (uint64_t bytes = 4 << 10; bytes <= 4 << 20; bytes *= 2) {
    MemoryBudget budget(bytes);
    JpegPacker packer(&budget);
    const auto pixels = packer.PackPixels(Unpadded(jpeg));
    if (pixels.ok()) {
      ++packed;
      EXPECT_TRUE(std::ranges::equal(*pixels, wanted));
      EXPECT_GE(budget.used(), packer.memory_bytes());
      EXPECT_GE(packer.memory_bytes(), wanted.size());
    } else {
      ++refused;
      EXPECT_EQ(pixels.error().code, Code::kResourceExhausted);
    }
    packer.FreeMemory();
    EXPECT_EQ(budget.used(), 0U);
  }
  EXPECT_GT(packed, 0);
  EXPECT_GT(refused, 0);
}

TEST(NotPacked, ForAReason) {
  const auto made = [](JpegScans scans, bool arithmetic, JpegColor color,
                       std::vector<Sampling> sampling) {
    JpegOptions options{.color = color, .sampling = std::move(sampling), .scans = scans};
    options.arithmetic = arithmetic;
    return WhyNot(MakeJpeg(options));
  };
  const std::string begin = "this JPEG is not packed: ";
  using enum JpegScans;
  const std::string other = begin + "arithmetic, lossless, or more than 8 bits";
  EXPECT_EQ(made(kOne, true, JpegColor::kYCbCr, {}), other);
  EXPECT_EQ(made(kProgressive, true, JpegColor::kYCbCr, {}), other);
  EXPECT_EQ(made(kProgressive, false, JpegColor::kCmyk, {}), begin + NameOf(Fallback::kColor));
  EXPECT_EQ(made(kCoarse, false, JpegColor::kYCbCr, {}), begin + NameOf(Fallback::kScan));
  EXPECT_EQ(made(kMany, false, JpegColor::kYCbCr, {}), begin + NameOf(Fallback::kScan));
  EXPECT_EQ(made(kOnePerComponent, false, JpegColor::kYCbCr, {}), begin + NameOf(Fallback::kScan));
  EXPECT_EQ(made(kOne, false, JpegColor::kCmyk, {}), begin + NameOf(Fallback::kColor));
  EXPECT_EQ(made(kOne, false, JpegColor::kYCbCr, Luma(4, 1)), begin + NameOf(Fallback::kSampling));
  std::vector<uint8_t> jpeg = MakeJpeg();
  jpeg.resize(jpeg.size() - 2);
  EXPECT_EQ(WhyNot(jpeg), begin + "its data are not followed by an end-of-image marker");
  EXPECT_EQ(WhyNot({0xFF, 0xD8}), begin + NameOf(Fallback::kHeader));
  EXPECT_EQ(WhyNot({}), begin + NameOf(Fallback::kHeader));
}

// Bytes of the entropy-coded data that end in 0xD9 after 0xFF.
size_t EndOf(const std::vector<uint8_t>& jpeg) {
  for (size_t at = jpeg.size() - 2; at > 0; --at) {
    if (jpeg[at] == 0xFF && jpeg[at + 1] == 0xD9) return at;
  }
  return 0;
}

TEST(Packed, KeepsBytesBehindTheEnd) {
  std::vector<uint8_t> jpeg = MakeJpeg();
  for (int i = 0; i < 1000; ++i) jpeg.push_back(static_cast<uint8_t>(i % 3 == 0 ? 0xFF : i));
  EXPECT_EQ(Check(jpeg, 1), "");
}

// Encoders fill the last byte with ones; some do with zeros. With other bits the file is refused.
TEST(Packed, KeepsTheBitsThatFillTheLastByte) {
  int with_zeros = 0, refused = 0;
  for (uint64_t seed = 1; seed < 40; ++seed) {
    JpegOptions options;
    options.seed = seed;
    const std::vector<uint8_t> jpeg = MakeJpeg(options);
    std::vector<uint8_t> changed = jpeg;
    uint8_t& last = changed[EndOf(jpeg) - 1];
    int ones = 0;
    while (ones < 7 && (last >> ones & 1) != 0) ++ones;
    if (ones < 2) continue;  // the last bits may be data
    for (int filling = 1; filling < ones; ++filling) {
      last = static_cast<uint8_t>(jpeg[EndOf(jpeg) - 1] & ~((1 << filling) - 1));
      const std::string wrong = Check(changed, seed);
      if (wrong.empty()) ++with_zeros;
      if (wrong.find("not be restored") != std::string::npos) {
        ++refused;
        ASSERT_EQ(CheckPixels(changed, seed), "");
      }
      ASSERT_TRUE(wrong.empty() || wrong.find("is not packed") != std::string::npos) << wrong;
    }
  }
  EXPECT_GT(with_zeros, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace stoker::testing
