#include <algorithm>
#include <limits>

#include "core/batch/packed_widths.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"
#include "transforms/jpeg/fast/pixels/reduced_dct.h"
#include "transforms/packed/unpack.h"

namespace stoker::packed {
namespace {

// Reads bits from the lowest of each byte.
class Bits {
 public:
  explicit Bits(const uint8_t* from) : from_(from) {}

  // A number in two's complement.
  int Take(int width) {
    int bits = 0;
    for (int i = 0; i < width; ++i, ++at_) bits |= (from_[at_ / 8] >> at_ % 8 & 1) << i;
    const bool negative = width > 0 && (bits >> (width - 1)) != 0;
    return negative ? bits - (1 << width) : bits;
  }
  const uint8_t* end() const { return from_ + at_ / 8; }

 private:
  const uint8_t* from_;
  int at_ = 0;
};

const uint8_t* TakeDcs(const uint8_t* run, int16_t* dc) {
  const int width = DcWidth(run[0] & 15);
  Bits bits(run + 3);
  int sum = LoadU16(run + 1);
  for (int i = 0; i < kRunBlocks; ++i) dc[i] = static_cast<int16_t>(sum += bits.Take(width));
  return bits.end();
}

const uint8_t* TakeGroup(const uint8_t* group, int16_t* words) {
  std::fill(words, words + kGroupWords, int16_t{0});
  const int quads = std::min<int>(group[0], kQuads);
  const uint8_t* next = group + 1 + quads;
  for (int i = 0; i < quads; ++i) {
    const uint8_t* const width = kWidths[group[1 + i]];
    int16_t* const quad = words + kQuadOrder[static_cast<size_t>(i)] * kQuadWords;
    Bits bits(next);
    for (int k = 0; k < kQuadWords; ++k) quad[k] = static_cast<int16_t>(bits.Take(width[k % 4]));
    next = bits.end();
  }
  return next;
}

// The 64 coefficients of one block of a group, row by row.
void Dequantise(const int16_t* words, const Quantiser& quantiser, int block, int* to) {
  for (int quad = 0; quad < kQuads; ++quad) {
    for (int k = 4 * block; k < 4 * block + 4; ++k) {
      const int at = quad * kQuadWords + k;
      const int product = words[at] * quantiser.factor[static_cast<size_t>(at)];
      to[CoefficientOf(quad, k)] = static_cast<int16_t>(product);
    }
  }
}

void TransformBlock(const int16_t* words, const Quantiser& quantiser, int block, uint8_t* out,
                    ptrdiff_t stride) {
  int sample[64];
  Dequantise(words, quantiser, block, sample);
  constexpr int kLeast = std::numeric_limits<int16_t>::min();
  constexpr int kMost = std::numeric_limits<int16_t>::max();
  for (int x = 0; x < 8; ++x) jpeg::InverseDctLinePlain(sample + x, 8, 1 << 10, 11);
  for (int& middle : sample) middle = std::clamp(middle, kLeast, kMost);
  constexpr int kRounding = (1 << 17) + (128 << 18);
  for (int y = 0; y < 8; ++y) jpeg::InverseDctLinePlain(sample + 8 * y, 1, kRounding, 18);
  for (int i = 0; i < 64; ++i) {
    out[i / 8 * stride + i % 8] = static_cast<uint8_t>(std::clamp(sample[i], 0, 255));
  }
}

}  // namespace

void UnpackRunPlain(const uint8_t* run, int from, int to, int16_t* words) {
  int16_t dc[kRunBlocks];
  const uint8_t* group = TakeDcs(run, dc);
  int16_t passed[kGroupWords];
  for (int g = 0; g < to; ++g) {
    int16_t* const here = g < from ? passed : words + (g - from) * kGroupWords;
    group = TakeGroup(group, here);
    for (int b = 0; b < kGroupBlocks; ++b) {
      // The word is zero, unless somebody has forged it.
      here[4 * b] = static_cast<int16_t>(here[4 * b] | dc[g * kGroupBlocks + b]);
    }
  }
}

void TransformRunPlain(const uint8_t* run, int from, int to, const Quantiser& quantiser,
                       uint8_t* out, ptrdiff_t stride) {
  int16_t words[kRunGroups * kGroupWords];
  UnpackRunPlain(run, from, to, words);
  for (int block = 0; block < (to - from) * kGroupBlocks; ++block) {
    TransformBlock(words + block / kGroupBlocks * kGroupWords, quantiser, block % kGroupBlocks,
                   out + 8 * block, stride);
  }
}

void ReduceRunPlain(const uint8_t* run, int from, int to, const Quantiser& quantiser, int side,
                    uint8_t* out, ptrdiff_t stride) {
  const int blocks = (to - from) * kGroupBlocks;
  if (side == 1) {
    int16_t dc[kRunBlocks];
    TakeDcs(run, dc);
    for (int block = 0; block < blocks; ++block) {
      const int product = dc[from * kGroupBlocks + block] * quantiser.factor[0];
      out[block] = jpeg::MeanOfBlock(static_cast<int16_t>(product));
    }
    return;
  }
  int16_t words[kRunGroups * kGroupWords];
  UnpackRunPlain(run, from, to, words);
  for (int block = 0; block < blocks; ++block) {
    int dequantised[64];
    Dequantise(words + block / kGroupBlocks * kGroupWords, quantiser, block % kGroupBlocks,
               dequantised);
    jpeg::ReducedBlockPlain(dequantised, side, out + side * block, stride);
  }
}

}  // namespace stoker::packed
