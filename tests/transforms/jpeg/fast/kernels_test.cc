// Destuffing, the inverse DCT, upsampling and colour conversion match their references.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/numbers/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/jpeg/fast/entropy/scan_data.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"
#include "transforms/jpeg/fast/pixels/pixels.h"
#include "transforms/jpeg/fast/pixels/reduced_dct.h"

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(Destuff, MatchesTheReference) {
  for (uint64_t n = 0; n < 2000; ++n) {
    RandomStream random({1, 0, n}, 0);
    const size_t size = random.Below(200);
    Bytes data(size + 64, 0xFF);
    const uint64_t often = 1 + random.Below(60);
    for (size_t i = 0; i < size; ++i) {
      data[i] = static_cast<uint8_t>(random.Below(often) == 0 ? 0xFF : random.Below(256));
      // Markers are rare.
      if (i > 0 && data[i - 1] == 0xFF && random.Below(20) != 0) data[i] = 0;
    }
    Bytes want(size + 64), got(size + 64);
    const jpeg::Destuffed plain = jpeg::DestuffPlain(data.data(), data.data() + size, want.data());
    const auto length = static_cast<size_t>(plain.to - want.data());
    ForEachTarget([&] {
      const jpeg::Destuffed fast = jpeg::Destuff(data.data(), data.data() + size, got.data());
      ASSERT_EQ(fast.from, plain.from) << n;
      ASSERT_EQ(fast.to - got.data(), plain.to - want.data()) << n;
      ASSERT_EQ(std::memcmp(got.data(), want.data(), length), 0) << n;
    });
    if (HasFatalFailure()) return;
  }
}

constexpr int kGroups = 5;

struct Coefficients {
  alignas(64) int16_t value[kGroups * jpeg::kGroupStride] = {};
  uint8_t last[kGroups * jpeg::kGroupBlocks] = {};
};

// Blocks as files have them: DC alone, a few of low frequency, many; and now and then one that is
// far too large.
Coefficients MakeCoefficients(RandomStream& random, const jpeg::Quantiser& q, bool extreme) {
  Coefficients c;
  const uint64_t most = random.Below(64);
  for (int b = 0; b < kGroups * jpeg::kGroupBlocks; ++b) {
    const auto at = static_cast<size_t>(b);
    int16_t* const block = c.value + at / 4 * jpeg::kGroupStride + at % 4 * 8;
    c.last[at] = static_cast<uint8_t>(random.Below(most + 1));
    for (size_t k = 0; k <= c.last[at]; ++k) {
      const size_t offset = jpeg::kZigZag[k] / 8u * jpeg::kGroupRow + jpeg::kZigZag[k] % 8u;
      const int limit = extreme ? 2000 : std::min<int>(q.limit[offset], 40);
      const auto span = static_cast<uint64_t>(2 * limit + 1);
      block[offset] = static_cast<int16_t>(static_cast<int>(random.Below(span)) - limit);
    }
  }
  return c;
}

// The tables are fine or coarse; one of seven has factors of up to 16 bits.
jpeg::Quantiser RandomQuantiser(RandomStream& random, uint64_t n) {
  std::array<uint16_t, 64> table{};
  const uint64_t coarse = 1 + random.Below(n % 7 == 0 ? 65535 : 60);
  for (uint16_t& q : table) q = static_cast<uint16_t>(random.Below(coarse + 1));
  jpeg::Quantiser quantiser;
  jpeg::SetQuantiser(table, quantiser);
  return quantiser;
}

// Compares a transform of coefficients to `side_of(n)` rows and columns a block with its reference,
// on `count` random inputs. Both take the side, and then what InverseDct takes.
template <class SideOf, class Plain, class Fast>
void ExpectTransformsMatch(uint64_t draws, uint64_t count, SideOf side_of, Plain plain_transform,
                           Fast fast_transform) {
  int in_range = 0, out_of_range = 0;
  for (uint64_t n = 0; n < count; ++n) {
    RandomStream random({draws, 0, n}, 0);
    const jpeg::Quantiser quantiser = RandomQuantiser(random, n);
    const Coefficients made = MakeCoefficients(random, quantiser, n % 5 == 0);
    const int side = side_of(n);
    const ptrdiff_t stride = kGroups * jpeg::kGroupBlocks * side;
    Coefficients plain = made;
    Bytes want(static_cast<size_t>(side * stride)), got(want.size());
    const bool ok = plain_transform(side, quantiser, plain.value, plain.last, want.data(), stride);
    (ok ? in_range : out_of_range) += 1;
    ForEachTarget([&] {
      Coefficients fast = made;
      ASSERT_EQ(fast_transform(side, quantiser, fast.value, fast.last, got.data(), stride), ok)
          << n;
      ASSERT_TRUE(!ok || got == want) << n;
      constexpr Coefficients kZero;
      ASSERT_EQ(std::memcmp(fast.value, kZero.value, sizeof(kZero.value)), 0) << n;
    });
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(in_range, 100);
  EXPECT_GT(out_of_range, 100);
}

TEST(InverseDct, MatchesTheReference) {
  ExpectTransformsMatch(
      2, 1000, [](uint64_t) { return 8; },
      [](int, const jpeg::Quantiser& q, auto... rest) {
        return jpeg::InverseDctPlain(q, kGroups, rest...);
      },
      [](int, const jpeg::Quantiser& q, auto... rest) {
        return jpeg::InverseDct(q, kGroups, rest...);
      });
}

TEST(ReducedDct, MatchesTheReference) {
  ExpectTransformsMatch(
      8, 1500, [](uint64_t n) { return 4 >> n % 3; },
      [](int side, const jpeg::Quantiser& q, auto... rest) {
        return jpeg::ReducedDctPlain(q, side, kGroups, rest...);
      },
      [](int side, const jpeg::Quantiser& q, auto... rest) {
        return jpeg::ReducedDct(q, side, kGroups, rest...);
      });
}

// Up to rounding, a sample is the mean of those that it stands for.
TEST(ReducedDct, GivesTheMeanOfTheBlocksSamples) {
  for (uint64_t n = 0; n < 200; ++n) {
    RandomStream random({9, 0, n}, 0);
    int block[64] = {}, whole[64];
    for (int& coefficient : block) coefficient = static_cast<int>(random.Below(25)) - 12;
    std::copy(block, block + 64, whole);
    for (int x = 0; x < 8; ++x) jpeg::InverseDctLinePlain(whole + x, 8, 1 << 10, 11);
    for (int y = 0; y < 8; ++y) jpeg::InverseDctLinePlain(whole + 8 * y, 1, 1 << 17, 18);
    for (const int side : {4, 2, 1}) {
      uint8_t reduced[16];
      ASSERT_TRUE(jpeg::ReducedBlockPlain(block, side, reduced, side));
      const int each = 8 / side;
      for (int i = 0; i < side * side; ++i) {
        double sum = 0;
        for (int k = 0; k < each * each; ++k) {
          sum += whole[(i / side * each + k / each) * 8 + i % side * each + k % each] + 128;
        }
        ASSERT_NEAR(reduced[i], sum / (each * each), 1.1) << n << " side " << side;
      }
    }
  }
}

Bytes RandomRow(RandomStream& random, size_t size) {
  Bytes row(size);
  const bool extreme = random.Below(2) == 0;
  for (uint8_t& b : row) {
    b = static_cast<uint8_t>(extreme ? 255 * random.Below(2) : random.Below(256));
  }
  return row;
}

TEST(Upsample, MatchesTheReference) {
  for (uint64_t n = 0; n < 500; ++n) {
    RandomStream random({4, 0, n}, 0);
    const size_t samples = 1 + random.Below(150);
    const Bytes near = RandomRow(random, samples + 130), far = RandomRow(random, samples + 130);
    const uint8_t* const a = near.data() + 65;
    const uint8_t* const b = far.data() + 65;
    const int count = static_cast<int>(samples);
    Bytes want(2 * samples), got(2 * samples + 64);
    const auto check = [&](size_t size, const char* what) {
      ASSERT_EQ(std::memcmp(got.data(), want.data(), size), 0) << what << " " << n;
    };
    ForEachTarget([&] {
      jpeg::UpsampleColumnsPlain(a, count, want.data());
      jpeg::UpsampleColumns(a, count, got.data());
      check(2 * samples, "columns");
      jpeg::UpsampleBothPlain(a, b, count, want.data());
      jpeg::UpsampleBoth(a, b, count, got.data());
      check(2 * samples, "both");
      for (const bool below : {false, true}) {
        jpeg::UpsampleRowsPlain(a, b, below, count, want.data());
        jpeg::UpsampleRows(a, b, below, count, got.data());
        check(samples, "rows");
      }
    });
    if (HasFatalFailure()) return;
  }
}

using Planes = std::array<Bytes, 3>;  // Y, Cb and Cr, or red, green and blue

jpeg::YccRow YccOf(const Planes& ycc) { return {ycc[0].data(), ycc[1].data(), ycc[2].data()}; }
jpeg::RgbRow RgbOf(Planes& rgb) { return {rgb[0].data(), rgb[1].data(), rgb[2].data()}; }

constexpr int kColours = 256 * 256;

Planes PlanesOf(size_t size) { return {Bytes(size), Bytes(size), Bytes(size)}; }

// One of Y, Cb and Cr (`held`) has this value; the other two take all their pairs of values.
Planes ColoursWith(size_t held, int value) {
  Planes ycc = PlanesOf(kColours + 64);
  std::fill(ycc[held].begin(), ycc[held].end(), static_cast<uint8_t>(value));
  for (size_t i = 0; i < size_t{kColours}; ++i) {
    ycc[held == 0 ? 1 : 0][i] = static_cast<uint8_t>(i % 256);
    ycc[held == 2 ? 1 : 2][i] = static_cast<uint8_t>(i / 256);
  }
  return ycc;
}

// Compares both conversions of `ycc` with their references wherever `run` calls what it is given.
template <class Run>
void ExpectConverted(const Planes& ycc, const Run& run) {
  Planes want = PlanesOf(kColours + 64), got = want;
  Bytes want_rows(size_t{3} * kColours), got_rows(want_rows.size());
  jpeg::ConvertToRgbPlain(YccOf(ycc), kColours, RgbOf(want));
  jpeg::ConvertToInterleavedPlain(YccOf(ycc), kColours, want_rows.data());
  run([&] {
    jpeg::ConvertToRgb(YccOf(ycc), kColours, RgbOf(got));
    for (size_t p = 0; p < 3; ++p) {
      ASSERT_EQ(std::memcmp(got[p].data(), want[p].data(), kColours), 0) << p;
    }
    jpeg::ConvertToInterleaved(YccOf(ycc), kColours, got_rows.data());
    ASSERT_EQ(got_rows, want_rows);
  });
}

TEST(ConvertToRgb, MatchesTheReferenceForAllColours) {
  for (int cb = 0; cb < 256; ++cb) {
    ExpectConverted(ColoursWith(1, cb), [](const auto& check) { check(); });
    ASSERT_FALSE(HasFailure()) << cb;
  }
}

// Red depends on Y and Cr, blue on Y and Cb, and green on Y and a term of Cb and Cr: this tries all
// values of each of these pairs.
TEST(ConvertToRgb, MatchesTheReferenceOnEachTarget) {
  for (size_t held = 0; held < 3; ++held) {
    for (const int value : {0, 77, 128, 255}) {
      ExpectConverted(ColoursWith(held, value), ForEachTarget);
      ASSERT_FALSE(HasFailure()) << held << " is " << value;
    }
  }
}

TEST(ConvertToRgb, WritesAtMost64BytesPastTheRow) {
  Planes all = PlanesOf(300);
  RandomStream random({10, 0, 0}, 0);
  for (Bytes& plane : all) {
    for (uint8_t& sample : plane) sample = static_cast<uint8_t>(random.Below(256));
  }
  ForEachTarget([&] {
    for (size_t pixels = 1; pixels <= 200; ++pixels) {
      // No longer than what may be read, so that a sanitizer sees who reads more.
      Planes ycc;
      for (size_t p = 0; p < 3; ++p) ycc[p].assign(all[p].begin(), all[p].begin() + pixels + 64);
      Planes want, got;
      want.fill(Bytes(500, 0xA5));
      got = want;
      jpeg::ConvertToRgbPlain(YccOf(ycc), static_cast<int>(pixels), RgbOf(want));
      jpeg::ConvertToRgb(YccOf(ycc), static_cast<int>(pixels), RgbOf(got));
      for (size_t p = 0; p < 3; ++p) {
        std::fill_n(got[p].begin() + pixels, 64, uint8_t{0xA5});
        ASSERT_EQ(got[p], want[p]) << pixels << " pixels, colour " << p;
      }
    }
  });
}

TEST(ConvertToInterleaved, WritesNothingPastTheRow) {
  Bytes y(300), cb(300), cr(300);
  RandomStream random({5, 0, 0}, 0);
  for (Bytes* plane : {&y, &cb, &cr}) {
    for (uint8_t& sample : *plane) sample = static_cast<uint8_t>(random.Below(256));
  }
  const jpeg::YccRow from{y.data(), cb.data(), cr.data()};
  ForEachTarget([&] {
    for (int pixels = 1; pixels <= 200; ++pixels) {
      Bytes want(700, 0xA5), got = want;
      jpeg::ConvertToInterleavedPlain(from, pixels, want.data());
      jpeg::ConvertToInterleaved(from, pixels, got.data());
      ASSERT_EQ(got, want) << pixels;
    }
  });
}

}  // namespace
}  // namespace stoker::testing
