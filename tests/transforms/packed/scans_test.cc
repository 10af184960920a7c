// The scans of progressive JPEGs are coded again as libjpeg codes them, for coefficients that
// photographs do not have.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "tests/transforms/whole.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

constexpr std::array kScripts = {JpegScans::kProgressive, JpegScans::kSpectral,
                                 JpegScans::kSuccessive, JpegScans::kRefinedDc, JpegScans::kBands};

// Why it is not restored; empty if it is.
std::string Restored(std::span<const int16_t> coefficients, const JpegOptions& options) {
  const std::vector<uint8_t> jpeg = MakeGrayJpeg(coefficients, options);
  const Result<std::vector<uint8_t>> packed = PackJpeg(Unpadded(Padded(jpeg)));
  if (!packed.ok()) return packed.error().ToString();
  const Result<std::vector<uint8_t>> restored = RestoreJpeg(Unpadded(Padded(*packed)));
  if (!restored.ok()) return restored.error().ToString();
  return *restored == jpeg ? "" : "restored to other bytes";
}

size_t CountOf(const JpegOptions& options) {
  return size_t{64} * static_cast<size_t>((options.width + 7) / 8) *
         static_cast<size_t>((options.height + 7) / 8);
}

TEST(PackedScans, OfRandomCoefficients) {
  int full = 0;
  for (int i = 0; i < Effort(1000); ++i) {
    RandomStream random({21, 0, static_cast<uint64_t>(i)}, 0);
    JpegOptions options{.color = JpegColor::kGray};
    options.width = 1 + static_cast<int>(random.Below(200));
    options.height = 1 + static_cast<int>(random.Below(200));
    options.scans = kScripts[random.Below(kScripts.size())];
    options.restart_interval = random.Below(3) == 0 ? 1 + static_cast<int>(random.Below(300)) : 0;
    std::vector<int16_t> coefficients(CountOf(options));
    // `empty` and `one_in` say how many blocks, and how many coefficients of the other blocks, are
    // zero; the other coefficients are close to a power of two.
    const uint64_t empty = random.Below(3),
                   one_in = 1 + random.Below(random.Below(3) == 0 ? 60 : 3);
    const uint64_t most = uint64_t{1} << random.Below(4);
    const bool no_ones = random.Below(3) == 0;
    for (size_t block = 0; block < coefficients.size(); block += 64) {
      if (random.Below(10) < 4 * empty) continue;
      for (size_t k = 0; k < 64; ++k) {
        if (random.Below(one_in) != 0) continue;
        const auto size = static_cast<int>((no_ones ? 2 : 1) + random.Below(most));
        coefficients[block + k] = static_cast<int16_t>(random.Below(2) == 0 ? size : -size);
      }
    }
    full += one_in == 1 && empty == 0 && no_ones;
    ASSERT_EQ(Restored(coefficients, options), "") << i;
  }
  EXPECT_GT(full, 0);
}

// The number of blocks without further coefficients has 15 bits.
TEST(PackedScans, OfManyEmptyBlocks) {
  for (const JpegScans scans : kScripts) {
    JpegOptions options{.width = 1600, .height = 1600, .color = JpegColor::kGray, .scans = scans};
    std::vector<int16_t> coefficients(CountOf(options));
    ASSERT_EQ(Restored(coefficients, options), "");
    coefficients[64 * size_t{33'000} + 63] = -5;
    coefficients[64 * size_t{39'000} + 1] = 1;
    ASSERT_EQ(Restored(coefficients, options), "");
  }
}

// Blocks that only correct their coefficients: libjpeg writes them before it has too many bits.
TEST(PackedScans, OfManyCorrections) {
  for (const JpegScans scans : kScripts) {
    for (size_t each = 1; each < 64; each += 1 + each / 4) {
      JpegOptions options{.width = 400, .height = 80, .color = JpegColor::kGray, .scans = scans};
      std::vector<int16_t> coefficients(CountOf(options));
      for (size_t i = 0; i < coefficients.size(); ++i) {
        if (i % 64 <= each) coefficients[i] = static_cast<int16_t>(i % 3 == 0 ? -16 : 17);
      }
      ASSERT_EQ(Restored(coefficients, options), "") << each;
    }
  }
}

// A file whose packed form says that jpegli wrote it is restored by jpegli's rule, and packed again
// with that choice. Coefficients that some blocks add give libjpeg's tables the codes of both.
TEST(PackedScans, OfJpegli) {
  JpegOptions options{.width = 400, .height = 80, .color = JpegColor::kGray};
  options.scans = JpegScans::kSuccessive;
  std::vector<int16_t> coefficients(CountOf(options));
  for (size_t block = 0; block < coefficients.size() / 64; ++block) {
    const auto of_block = std::span(coefficients).subspan(64 * block, 64);
    for (size_t k = 1; k <= 20; ++k) {
      of_block[jpeg::kZigZag[k]] = static_cast<int16_t>(k % 3 == 0 ? -16 : 17);
    }
    for (size_t bit = 0; bit < 3 && block < 260 && block % 10 == 0; ++bit) {
      of_block[jpeg::kZigZag[30 + bit]] = static_cast<int16_t>(1 << bit);
    }
  }
  const std::vector<uint8_t> libjpegs = MakeGrayJpeg(coefficients, options);
  std::vector<uint8_t> packed = PackJpeg(Unpadded(Padded(libjpegs))).value();
  uint8_t* const fixed_at = packed.data() + PartsOf(packed).header_at;
  packed::FixedPart fixed;
  std::memcpy(&fixed, fixed_at, sizeof(fixed));
  ASSERT_EQ(fixed.choices, 0u);
  fixed.choices = packed::kJpegliRuns;
  Result<std::vector<uint8_t>> jpeglis = Error{};
  for (; !jpeglis.ok() && fixed.jpeg_bytes < 2 * libjpegs.size(); ++fixed.jpeg_bytes) {
    std::memcpy(fixed_at, &fixed, sizeof(fixed));
    SignPackedJpeg(packed);
    jpeglis = RestoreJpeg(Unpadded(Padded(packed)));
  }
  ASSERT_TRUE(jpeglis.ok());
  EXPECT_GT(jpeglis->size(), libjpegs.size());
  EXPECT_EQ(PackJpeg(Unpadded(Padded(*jpeglis))).value(), packed);
  EXPECT_EQ(DecodeWhole(*jpeglis)->pixels, DecodeWhole(libjpegs)->pixels);
}

}  // namespace
}  // namespace stoker::testing
