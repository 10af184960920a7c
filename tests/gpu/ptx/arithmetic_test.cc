// arithmetic.h against definitions that go bit by bit, or through larger numbers, on random and on
// hostile operands; and what Lane refuses.
#include "tests/gpu/ptx/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/gpu/ptx/translated_kernel.h"
#include "tests/testing/random.h"

namespace stoker::testing::ptx {

// No kernel is translated for this program.
std::span<const TranslatedKernel> TranslatedKernels() { return {}; }
std::span<const Barrier> Barriers() { return {}; }

namespace {

uint32_t AnyWord(Random& random) {
  constexpr uint32_t kHostile[] = {0,   1,      2,          7,          8,           15,
                                   16,  31,     32,         33,         63,          127,
                                   128, 0xffff, 0x7fffffff, 0x80000000, ~uint32_t{0}};
  if (random.OneIn(2)) return kHostile[random.Between(0, std::size(kHostile) - 1)];
  return static_cast<uint32_t>(random.Between(0, 0xffff)) << 16 |
         static_cast<uint32_t>(random.Between(0, 0xffff));
}

// The bits of a number, the lowest one first.
std::vector<bool> BitsOf(uint64_t number, uint32_t count) {
  std::vector<bool> bits(count);
  for (uint32_t i = 0; i < count; ++i) bits[i] = (number >> i & 1) != 0;
  return bits;
}
uint64_t NumberOf(const std::vector<bool>& bits) {
  uint64_t number = 0;
  for (size_t i = 0; i < bits.size(); ++i) number |= uint64_t{bits[i]} << i;
  return number;
}

template <typename Check>
void OnAnyWords(const Check& check) {
  Random random(7);
  for (int n = 0; n < 20000; ++n) {
    const uint32_t a = AnyWord(random), b = AnyWord(random), c = AnyWord(random),
                   d = AnyWord(random);
    check(a, b, c, d);
    ASSERT_FALSE(::testing::Test::HasFailure())
        << std::hex << a << ' ' << b << ' ' << c << ' ' << d;
  }
}

TEST(PtxArithmetic, Shifts) {
  OnAnyWords([](uint32_t a, uint32_t b, uint32_t bits, uint32_t) {
    const int64_t wide = static_cast<int32_t>(a);
    EXPECT_EQ(ShiftRight<int32_t>(As<int32_t>(a), bits), wide >> std::min(bits, 63U));
    EXPECT_EQ(ShiftRight<uint32_t>(a, bits), uint64_t{a} >> std::min(bits, 63U));
    EXPECT_EQ(ShiftLeft<uint32_t>(a, bits), uint32_t(bits < 32 ? uint64_t{a} << bits : 0));
    std::vector<bool> both = BitsOf(uint64_t{b} << 32 | a, 64), rotated(32);
    for (uint32_t i = 0; i < 32; ++i) rotated[i] = both[i + bits % 32];
    EXPECT_EQ(FunnelRight(a, b, bits), NumberOf(rotated));
    for (uint32_t i = 0; i < 32; ++i) rotated[i] = both[32 + i - bits % 32];
    EXPECT_EQ(FunnelLeft(a, b, bits), NumberOf(rotated));
  });
}

TEST(PtxArithmetic, Fields) {
  OnAnyWords([](uint32_t from, uint32_t to, uint32_t at, uint32_t bits) {
    std::vector<bool> inserted = BitsOf(to, 32), extracted(32);
    const std::vector<bool> source = BitsOf(from, 32);
    for (uint32_t i = 0; i < std::min(bits & 0xff, 32U); ++i) {
      const uint32_t there = (at & 0xff) + i;
      if (there < 32) inserted[there] = source[i];
      if (there < 32) extracted[i] = source[there];
    }
    EXPECT_EQ(Insert<uint32_t>(from, to, at, bits), NumberOf(inserted));
    EXPECT_EQ(Extract<uint32_t>(from, at, bits), NumberOf(extracted));
  });
}

TEST(PtxArithmetic, Bytes) {
  OnAnyWords([](uint32_t a, uint32_t b, uint32_t chosen, uint32_t) {
    const std::vector<bool> both = BitsOf(uint64_t{b} << 32 | a, 64);
    std::vector<bool> result(32);
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t which = chosen >> (i / 8 * 4) & 15;
      result[i] = both[8 * (which % 8) + (which >= 8 ? 7 : i % 8)];
    }
    EXPECT_EQ(Permute(a, b, chosen), NumberOf(result));
  });
}

TEST(PtxArithmetic, Products) {
  OnAnyWords([](uint32_t a, uint32_t b, uint32_t c, uint32_t) {
    const int64_t signed_product = int64_t{As<int32_t>(a)} * As<int32_t>(b);
    EXPECT_EQ(Multiply<int64_t>(As<int32_t>(a), As<int32_t>(b)), signed_product);
    EXPECT_EQ(Multiply<uint32_t>(a, b), uint32_t(signed_product));
    EXPECT_EQ(MultiplyHigh<uint32_t>(a, b), uint64_t{a} * b >> 32);
    EXPECT_EQ(MultiplyAdd<uint32_t>(a, b, c), uint32_t(uint64_t{a} * b + c));
    EXPECT_EQ(Multiply<uint16_t>(uint16_t(a), uint16_t(b)), uint16_t(uint64_t{a} * b));
    const int64_t dot =
        int64_t{int16_t(a)} * uint8_t(b) + int64_t{int16_t(a >> 16)} * uint8_t(b >> 8);
    EXPECT_EQ(DotOfTwo(a, b, c), uint32_t(dot + c));
  });
}

TEST(PtxArithmetic, TowardsZeroSaturates) {
  OnAnyWords([](uint32_t a, uint32_t, uint32_t, uint32_t) {
    const float value = As<float>(a);
    if (std::isnan(value)) return;
    const double whole = std::trunc(double{value});
    EXPECT_EQ(TowardsZero<int32_t>(value), std::clamp(whole, -2147483648.0, 2147483647.0));
    EXPECT_EQ(TowardsZero<uint32_t>(value), std::clamp(whole, 0.0, 4294967295.0));
  });
  EXPECT_EQ(TowardsZero<int32_t>(std::numeric_limits<float>::quiet_NaN()), 0);
  EXPECT_EQ(TowardsZero<uint32_t>(std::numeric_limits<float>::quiet_NaN()), 0U);
  EXPECT_EQ(TowardsZero<int32_t>(std::numeric_limits<double>::quiet_NaN()), INT32_MIN);
  EXPECT_EQ(TowardsZero<uint32_t>(std::numeric_limits<double>::quiet_NaN()), 0x80000000U);
}

TEST(PtxArithmetic, NanIsUnordered) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto compare : {Equal<float>, Different<float>, Less<float>, LessOrEqual<float>,
                             Greater<float>, GreaterOrEqual<float>, Ordered<float>}) {
    EXPECT_FALSE(compare(nan, 1));
    EXPECT_FALSE(compare(1, nan));
  }
  EXPECT_TRUE(Different<float>(1, 2) && !Different<float>(1, 1) && Ordered<float>(1, 1));
  EXPECT_EQ(Bits(nan * -1), 0x7fffffffU);
  EXPECT_EQ(Float16s(nan, 1), 0x7fff3c00U);
  EXPECT_EQ(BFloat16s(1, nan), 0x3f807fffU);
}

TEST(PtxLaneDeathTest, AccessesAreChecked) {
  alignas(16) uint8_t shared[64] = {};
  const TranslatedKernel kernel{"name", "Title", "file.ptx", nullptr, sizeof(shared)};
  const Lane lane{kernel, nullptr, {}, {}, {}, {}, shared};
  EXPECT_EQ(lane.Shared(48, {7, 16}), Address(shared + 48));
  EXPECT_EQ(lane.Memory(Address(shared), {7, 16}), Address(shared));
  const auto fails = ::testing::ExitedWithCode(1);
  EXPECT_EXIT(lane.Shared(64, {7, 4}), fails, "file.ptx:7: .*outside of shared memory .Title.");
  EXPECT_EXIT(lane.Shared(~uint64_t{3}, {7, 4}), fails, "outside of shared memory");
  EXPECT_EXIT(lane.Shared(8, {7, 16}), fails, "is not aligned");
  EXPECT_EXIT(lane.Memory(Address(shared) + 2, {7, 4}), fails, "is not aligned");
}

}  // namespace
}  // namespace stoker::testing::ptx
