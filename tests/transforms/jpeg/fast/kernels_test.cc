// Destuffing, the inverse DCT, upsampling and colour conversion match their references.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/jpeg/fast/inverse_dct.h"
#include "transforms/jpeg/fast/pixels.h"
#include "transforms/jpeg/fast/reduced_dct.h"
#include "transforms/jpeg/fast/scan_data.h"

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

// Tries every colour: for each Cb a row of all Y and Cr.
TEST(ConvertToRgb, MatchesTheReference) {
  constexpr int kPixels = 256 * 256;
  Bytes y(kPixels + 64), cb(kPixels + 64), cr(kPixels + 64);
  for (size_t i = 0; i < size_t{kPixels}; ++i) {
    y[i] = static_cast<uint8_t>(i % 256);
    cr[i] = static_cast<uint8_t>(i / 256);
  }
  Bytes want[3], got[3];
  for (size_t p = 0; p < 3; ++p) {
    want[p].resize(kPixels + 64);
    got[p].resize(kPixels + 64);
  }
  Bytes want_rows(3 * kPixels), got_rows(3 * kPixels);
  const jpeg::YccRow from{y.data(), cb.data(), cr.data()};
  for (int blue = 0; blue < 256; ++blue) {
    std::fill(cb.begin(), cb.end(), static_cast<uint8_t>(blue));
    jpeg::ConvertToRgbPlain(from, kPixels, {want[0].data(), want[1].data(), want[2].data()});
    jpeg::ConvertToInterleavedPlain(from, kPixels, want_rows.data());
    const auto check = [&] {
      jpeg::ConvertToRgb(from, kPixels, {got[0].data(), got[1].data(), got[2].data()});
      for (size_t p = 0; p < 3; ++p) {
        ASSERT_EQ(std::memcmp(got[p].data(), want[p].data(), kPixels), 0) << blue << " " << p;
      }
      jpeg::ConvertToInterleaved(from, kPixels, got_rows.data());
      ASSERT_EQ(got_rows, want_rows) << blue;
    };
    check();  // on the best instruction set
    if (blue % 51 == 0) ForEachTarget(check);
    if (HasFatalFailure()) return;
  }
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
