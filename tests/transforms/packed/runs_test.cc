// Packing and unpacking runs matches the references, with every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/on_target.h"
#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"
#include "transforms/packed/pack_run.h"
#include "transforms/packed/unpack.h"

namespace stoker::testing {
namespace {

using packed::kGroupBlocks;
using packed::kGroupWords;
using packed::kRunBlocks;
using packed::kRunGroups;
using packed::kRunReach;

struct Words {
  alignas(64) int16_t word[kRunGroups * kGroupWords] = {};
};

constexpr ptrdiff_t kStride = 8 * kRunBlocks;
using Samples = std::array<uint8_t, 8 * kStride>;

class Runs : public OnTarget {};
INSTANTIATE_TEST_SUITE_P(Cpu, Runs, EachTarget(), NameOfTarget);

// Bytes of any value, mostly ones, few quads, and long runs.
std::vector<uint8_t> HostileRun(RandomStream& random) {
  std::vector<uint8_t> run(kRunReach);  // on the heap: a sanitizer finds what is read after it
  const uint64_t kind = random.Below(4);
  for (uint8_t& byte : run) {
    const auto any = static_cast<uint8_t>(random.Below(256));
    if (kind == 0) byte = any;
    if (kind == 1) byte = static_cast<uint8_t>(255 - any % 4);
    if (kind == 2) byte = static_cast<uint8_t>(any % 17);
    if (kind == 3) byte = static_cast<uint8_t>(any % 3 != 0 ? 255 : random.Below(256));
  }
  if (kind == 3) run[0] = 11;
  return run;
}

packed::Quantiser RandomQuantiser(RandomStream& random) {
  std::array<uint16_t, 64> table;
  const uint64_t most = uint64_t{1} << (1 + random.Below(16));
  for (uint16_t& factor : table) factor = static_cast<uint16_t>(random.Below(most));
  packed::Quantiser quantiser;
  SetQuantiser(table, quantiser);
  return quantiser;
}

TEST_P(Runs, UnpackAnyBytesAsTheReferenceDoes) {
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(5000)); ++n) {
    RandomStream random({1, 0, n}, 0);
    const std::vector<uint8_t> run = HostileRun(random);
    const auto from = static_cast<int>(random.Below(kRunGroups));
    const int to = from + 1 + static_cast<int>(random.Below(static_cast<uint64_t>(4 - from)));
    Words want, got;
    packed::UnpackRunPlain(run.data(), from, to, want.word);
    packed::UnpackRun(run.data(), from, to, got.word);
    ASSERT_EQ(std::memcmp(got.word, want.word, sizeof(want.word)), 0) << n;
    const packed::Quantiser quantiser = RandomQuantiser(random);
    Samples want_samples{}, got_samples{};
    packed::TransformRunPlain(run.data(), from, to, quantiser, want_samples.data(), kStride);
    packed::TransformRun(run.data(), from, to, quantiser, got_samples.data(), kStride);
    ASSERT_EQ(got_samples, want_samples) << n;
    for (const int side : {4, 2, 1}) {
      packed::ReduceRunPlain(run.data(), from, to, quantiser, side, want_samples.data(), kStride);
      packed::ReduceRun(run.data(), from, to, quantiser, side, got_samples.data(), kStride);
      ASSERT_EQ(got_samples, want_samples) << n << " side " << side;
    }
  }
}

struct Coefficients {
  alignas(64) int16_t value[kRunGroups * jpeg::kGroupStride] = {};
  uint8_t last[kRunBlocks] = {};
  int blocks = kRunBlocks;

  int16_t& At(int block, size_t k) {
    return value[block / kGroupBlocks * jpeg::kGroupStride + block % kGroupBlocks * 8 +
                 jpeg::kZigZag[k] / 8 * jpeg::kGroupRow + jpeg::kZigZag[k] % 8];
  }
};

// Blocks as files have them; now and then one with a number that is too large to be packed.
Coefficients MakeCoefficients(RandomStream& random) {
  Coefficients c;
  c.blocks = 1 + static_cast<int>(random.Below(kRunBlocks));
  const uint64_t most = random.Below(64), size = 1 + random.Below(10);
  for (int b = 0; b < c.blocks; ++b) {
    c.last[b] = static_cast<uint8_t>(random.Below(most + 1));
    for (size_t k = 0; k <= c.last[b]; ++k) {
      if (random.Below(3) == 0) continue;
      const auto range = int64_t{1} << (k == 0 ? 9 : 1 + random.Below(size));
      c.At(b, k) = static_cast<int16_t>(
          static_cast<int64_t>(random.Below(static_cast<uint64_t>(2 * range + 1))) - range);
    }
  }
  if (random.Below(20) == 0) {
    c.At(0, random.Below(64)) = static_cast<int16_t>(random.Below(65536));
    c.last[0] = 63;
  }
  return c;
}

TEST(Pack, MatchesTheReference) {
  int packed = 0, refused = 0;
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(5000)); ++n) {
    RandomStream random({2, 0, n}, 0);
    const Coefficients c = MakeCoefficients(random);
    std::vector<uint8_t> want(packed::kRunBytes + packed::kPackSlack), got(want.size());
    const uint8_t* const want_end = packed::PackRunPlain(c.value, c.blocks, want.data());
    const uint8_t* const got_end = packed::PackRun(c.value, c.blocks, got.data());
    ASSERT_EQ(got_end == nullptr, want_end == nullptr) << n;
    (want_end == nullptr ? refused : packed) += 1;
    if (want_end == nullptr) continue;
    const ptrdiff_t size = want_end - want.data();
    ASSERT_EQ(got_end - got.data(), size) << n;
    ASSERT_TRUE(std::equal(got.begin(), got.begin() + size, want.begin())) << n;
  }
  EXPECT_GT(packed, testing::Effort(4000));
  EXPECT_GT(refused, testing::Effort(200));
}

TEST_P(Runs, UnpackWhatWasPacked) {
  for (uint64_t n = 0; n < 2000; ++n) {
    RandomStream random({2, 0, n}, 0);
    Coefficients c = MakeCoefficients(random);
    std::vector<uint8_t> run(kRunReach);
    if (packed::PackRun(c.value, c.blocks, run.data()) == nullptr) continue;
    const int groups = (c.blocks + kGroupBlocks - 1) / kGroupBlocks;
    Words words;
    packed::UnpackRun(run.data(), 0, groups, words.word);
    for (int at = 0; at < groups * kGroupWords; ++at) {
      const int group = at / kGroupWords, quad = at % kGroupWords / 16, word = at % 16;
      const int coefficient = packed::CoefficientOf(quad, word);
      const int16_t want = c.value[group * jpeg::kGroupStride + coefficient / 8 * 32 +
                                   word / 4 * 8 + coefficient % 8];
      // Blocks after the last one have its DC coefficient.
      if (group * kGroupBlocks + word / 4 >= c.blocks) continue;
      ASSERT_EQ(words.word[at], want) << n;
    }
  }
}

// The samples are those of the other inverse DCT, for coefficients in its range.
TEST_P(Runs, TransformAsTheJpegDecoderDoes) {
  int compared = 0;
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(5000)); ++n) {
    RandomStream random({3, 0, n}, 0);
    Coefficients c = MakeCoefficients(random);
    std::vector<uint8_t> run(kRunReach);
    if (packed::PackRun(c.value, c.blocks, run.data()) == nullptr) continue;
    std::array<uint16_t, 64> table;
    const uint64_t most = 1 + random.Below(40);
    for (uint16_t& q : table) q = static_cast<uint16_t>(1 + random.Below(most));
    const int groups = (c.blocks + kGroupBlocks - 1) / kGroupBlocks;
    Samples want{}, got{};
    jpeg::Quantiser theirs;
    SetQuantiser(table, theirs);
    if (!InverseDct(theirs, groups, c.value, c.last, want.data(), kStride)) continue;
    packed::Quantiser ours;
    SetQuantiser(table, ours);
    packed::TransformRun(run.data(), 0, groups, ours, got.data(), kStride);
    for (int i = 0; i < 8 * kStride; ++i) {
      if (i % kStride / 8 >= c.blocks) continue;
      ASSERT_EQ(got[static_cast<size_t>(i)], want[static_cast<size_t>(i)]) << n;
    }
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(2000));
}

}  // namespace
}  // namespace stoker::testing
