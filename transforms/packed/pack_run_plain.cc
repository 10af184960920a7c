#include <algorithm>
#include <array>
#include <optional>

#include "core/batch/packed_widths.h"
#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/packed/pack_run.h"

namespace stoker::packed {
namespace {

// Whether a number in two's complement fits into `width` bits.
bool Fits(int number, int width) {
  return width == 0 ? number == 0 : -(1 << (width - 1)) <= number && number < 1 << (width - 1);
}

class Writer {
 public:
  explicit Writer(uint8_t* to) : next_(to) {}

  void Byte(int byte) { *next_++ = static_cast<uint8_t>(byte); }
  void Bits(int number, int width) {
    for (int i = 0; i < width; ++i) {
      bits_ |= (number >> i & 1) << count_;
      if (++count_ < 8) continue;
      Byte(bits_);
      bits_ = count_ = 0;
    }
  }
  uint8_t* next() const { return next_; }

 private:
  uint8_t* next_;
  int bits_ = 0, count_ = 0;
};

using Quad = std::array<int, kQuadWords>;

Quad QuadOf(const int16_t* group, int quad) {
  Quad words;
  for (int k = 0; k < kQuadWords; ++k) {
    const int at = CoefficientOf(quad, k);
    words[static_cast<size_t>(k)] =
        at == 0 ? 0 : group[at / 8 * jpeg::kGroupRow + k / 4 * 8 + at % 8];
  }
  return words;
}

// The first tuple with the fewest bits that has room for all words.
std::optional<int> TupleFor(const Quad& words) {
  std::optional<int> best;
  const auto bits = [](int tuple) {
    const uint8_t* const width = kWidths[tuple];
    return width[0] + width[1] + width[2] + width[3];
  };
  for (int tuple = 0; tuple < kTuples; ++tuple) {
    bool fits = true;
    for (size_t k = 0; k < words.size(); ++k) fits &= Fits(words[k], kWidths[tuple][k % 4]);
    if (fits && (!best || bits(tuple) < bits(*best))) best = tuple;
  }
  return best;
}

bool WriteGroup(const int16_t* group, Writer& writer) {
  std::array<Quad, kQuads> quad;
  std::array<int, kQuads> tuple{};
  size_t count = 0;
  for (size_t i = 0; i < kQuads; ++i) {
    quad[i] = QuadOf(group, kQuadOrder[i]);
    const std::optional<int> found = TupleFor(quad[i]);
    if (!found) return false;
    tuple[i] = *found;
    if (std::any_of(quad[i].begin(), quad[i].end(), [](int word) { return word != 0; })) {
      count = i + 1;
    }
  }
  writer.Byte(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) writer.Byte(tuple[i]);
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < quad[i].size(); ++k) writer.Bits(quad[i][k], kWidths[tuple[i]][k % 4]);
  }
  return true;
}

}  // namespace

uint8_t* PackRunPlain(const int16_t* groups, int blocks, uint8_t* run) {
  const auto dc = [groups](int block) {
    return groups[block / kGroupBlocks * jpeg::kGroupStride + block % kGroupBlocks * 8];
  };
  const auto difference = [&](int block) {
    return block == 0 || block >= blocks ? 0 : dc(block) - dc(block - 1);
  };
  int code = 0;
  for (int block = 0; block < blocks; ++block) {
    while (code < 12 && !Fits(difference(block), DcWidth(code))) ++code;
  }
  if (code == 12) return nullptr;
  Writer writer(run);
  writer.Byte(code);
  writer.Byte(dc(0) & 0xFF);
  writer.Byte(dc(0) >> 8 & 0xFF);
  for (int block = 0; block < kRunBlocks; ++block) writer.Bits(difference(block), DcWidth(code));
  for (int block = 0; block < blocks; block += kGroupBlocks) {
    if (!WriteGroup(groups + block / kGroupBlocks * jpeg::kGroupStride, writer)) return nullptr;
  }
  return writer.next();
}

}  // namespace stoker::packed
