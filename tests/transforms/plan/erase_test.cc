#include "transforms/plan/row/erase.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/numbers/half.h"

namespace stoker {
namespace {

constexpr ImageSize kSize{7, 5};
constexpr size_t kValues = 3 * 7 * 5;
constexpr Rect kBox{2, 1, 3, 2};

struct Output {
  DType dtype;
  Layout layout;
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kValues * SizeOf(dtype) + 1, 0x5a);

  explicit Output(DType d, Layout l = Layout::kNhwc) : dtype(d), layout(l) {}
  void Erase(const Erasure& erasure) {
    const float one[3] = {1, 1, 1}, zero[3] = {};
    const PixelOutput output{bytes.data(), dtype, one, zero, layout, false};
    stoker::Erase(erasure, RowFormat(output, kSize), bytes.data());
  }
  // Returns the bits of a value.
  uint32_t At(int x, int y, int c) const {
    const int at = layout == Layout::kNhwc ? (y * kSize.width + x) * 3 + c
                                           : (c * kSize.height + y) * kSize.width + x;
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + static_cast<size_t>(at) * SizeOf(dtype), SizeOf(dtype));
    return bits;
  }
};

bool InBox(int x, int y) {
  return x >= kBox.x && x < kBox.x + kBox.width && y >= kBox.y && y < kBox.y + kBox.height;
}

uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(Erase, WritesTheBoxAndNothingElse) {
  const Erasure erasure{.box = kBox, .value = {0.25F, -1.5F, 200.75F}, .noise = {}};
  for (DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      Output output(dtype, layout);
      Erasure fitting = erasure;
      if (dtype == DType::kU8) fitting.value[1] = 9;
      output.Erase(fitting);
      for (int y = 0; y < kSize.height; ++y) {
        for (int x = 0; x < kSize.width; ++x) {
          for (int c = 0; c < 3; ++c) {
            const float value = fitting.value[static_cast<size_t>(c)];
            const uint32_t bits = dtype == DType::kF32    ? BitsOf(value)
                                  : dtype == DType::kF16  ? Float16Bits(value)
                                  : dtype == DType::kBF16 ? BFloat16Bits(value)
                                                          : static_cast<uint32_t>(value);
            const uint32_t untouched = 0x5a5a5a5aU >> (32 - 8 * SizeOf(dtype));
            ASSERT_EQ(output.At(x, y, c), InBox(x, y) ? bits : untouched);
          }
        }
      }
      EXPECT_EQ(output.bytes.back(), 0x5a);
    }
  }
}

TEST(Erase, NoiseDependsOnItsKeyAndNotOnTheLayout) {
  Erasure erasure{.box = {0, 0, 7, 5}, .value = {}, .noise = 42};
  Output nhwc(DType::kF32), nchw(DType::kF32, Layout::kNchw), half(DType::kF16), other(DType::kF32);
  for (Output* output : {&nhwc, &nchw, &half}) output->Erase(erasure);
  erasure.noise = 43;
  other.Erase(erasure);
  int equal = 0;
  for (int y = 0; y < kSize.height; ++y) {
    for (int x = 0; x < kSize.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const uint32_t bits = nhwc.At(x, y, c);
        float value = 0;
        std::memcpy(&value, &bits, sizeof(value));
        ASSERT_EQ(nchw.At(x, y, c), bits);
        ASSERT_EQ(half.At(x, y, c), Float16Bits(value));
        equal += other.At(x, y, c) == bits ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(equal, 0);
}

}  // namespace
}  // namespace stoker
