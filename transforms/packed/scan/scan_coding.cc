// Compiled once for each instruction set up to AVX2. CPUs with AVX2 have BMI2, which shifts by any
// number of bits in one instruction.
#include "transforms/packed/scan/scan_coding.h"

#include <utility>

#include "transforms/jpeg/fast/frame_header.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/packed/scan/scan_coding.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef STOKER_TRANSFORMS_PACKED_SCAN_CODING_CC
#define STOKER_TRANSFORMS_PACKED_SCAN_CODING_CC
namespace stoker::packed {
namespace {

// The Number of each AC coefficient that an 8-bit JPEG can have. Its index is the coefficient's
// lowest 11 bits.
constexpr std::array<Number, 2048> MakeNumbers() {
  std::array<Number, 2048> numbers{};
  for (int value = -1023; value < 1024; ++value) {
    numbers[static_cast<size_t>(value) % numbers.size()] = NumberOf(value);
  }
  return numbers;
}
constexpr std::array<Number, 2048> kNumbers = MakeNumbers();

// Returns the bits, in zig-zag order, for the set words of a block in two quads.
using BitsOfPairs = std::array<std::array<uint64_t, 256>, kQuads / 2>;

constexpr BitsOfPairs MakeBitsOfPairs() {
  BitsOfPairs bits{};
  for (size_t k = 1; k < 64; ++k) {
    const size_t quad = kWordOfZigZag[k] / size_t{kQuadWords}, word = kWordOfZigZag[k] % 4u;
    for (size_t set = 0; set < 256; ++set) {
      if ((set >> (quad % 2 * 4 + word) & 1) != 0) bits[quad / 2][set] |= uint64_t{1} << k;
    }
  }
  return bits;
}
constexpr BitsOfPairs kBitsOfPairs = MakeBitsOfPairs();

}  // namespace
}  // namespace stoker::packed
#endif  // STOKER_TRANSFORMS_PACKED_SCAN_CODING_CC

HWY_BEFORE_NAMESPACE();
namespace stoker::packed {
namespace HWY_NAMESPACE {

// The words that are not zero: for each pair of quads and each block of a group, one bit for each
// of the block's eight words.
struct SetWords {
  std::array<std::array<uint8_t, kGroupBlocks>, kQuads / 2> pair{};
  std::array<uint8_t, 7> spare;  // StoreMaskBits may write eight bytes
};

#if HWY_TARGET == HWY_SCALAR

void FindSetWords(const int16_t* words, SetWords& set) {
  for (size_t at = 0; at < kGroupWords; ++at) {
    const size_t quad = at / kQuadWords, block = at % kQuadWords / 4;
    const size_t bit = quad % 2 * 4 + at % 4;
    if (words[at] != 0) set.pair[quad / 2][block] |= static_cast<uint8_t>(1u << bit);
  }
}

#else
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void FindSetWords(const int16_t* words, SetWords& set) {
  const hn::CappedTag<int16_t, 8> d;  // four words of two blocks, or of two quads
  const hn::Repartition<int64_t, decltype(d)> d64;
  const auto store = [&d](hn::Vec<decltype(d64)> v, uint8_t& bits) HWY_ATTR {
    hn::StoreMaskBits(d, hn::Ne(hn::BitCast(d, v), hn::Zero(d)), &bits);
  };
  for (size_t pair = 0; pair < set.pair.size(); ++pair) {
    for (size_t block = 0; block < kGroupBlocks; block += 2) {
      const int16_t* const first = words + 2 * pair * kQuadWords + 4 * block;
      const auto a = hn::BitCast(d64, hn::Load(d, first));
      const auto b = hn::BitCast(d64, hn::Load(d, first + kQuadWords));
      store(hn::InterleaveLower(d64, a, b), set.pair[pair][block]);
      store(hn::InterleaveUpper(d64, a, b), set.pair[pair][block + 1]);
    }
  }
}

#endif

void Find(const int16_t* words, int groups, uint64_t* non_zero) {
  for (int g = 0; g < groups; ++g, words += kGroupWords, non_zero += kGroupBlocks) {
    SetWords set;
    FindSetWords(words, set);
    for (size_t block = 0; block < kGroupBlocks; ++block) {
      uint64_t found = 0;
      for (size_t pair = 0; pair < set.pair.size(); ++pair) {
        found |= kBitsOfPairs[pair][set.pair[pair][block]];
      }
      non_zero[block] = found;
    }
  }
}

void FindLevels(const int16_t* words, int groups, int levels, uint64_t* masks) {
  alignas(64) std::array<int16_t, kGroupWords> chosen;
  std::array<uint64_t, kGroupBlocks> found;
  for (int g = 0; g < groups; ++g, words += kGroupWords) {
    for (int level = 0; level < MasksOf(levels); ++level) {
      for (size_t i = 0; i < chosen.size(); ++i) {
        const auto size = static_cast<uint16_t>(words[i] < 0 ? -words[i] : words[i]);
        chosen[i] = static_cast<int16_t>(level > levels    ? words[i] < 0
                                         : level == levels ? size >> level
                                                           : size >> level & 1);
      }
      Find(chosen.data(), 1, found.data());
      for (int block = 0; block < kGroupBlocks; ++block) {
        masks[block * MasksOf(levels) + level] = found[static_cast<size_t>(block)];
      }
    }
    masks += kGroupBlocks * MasksOf(levels);
  }
}

struct Bits {
  uint64_t bits;
  unsigned count;
};

HWY_INLINE Bits Coded(uint64_t code, uint64_t number) {
  return {code >> 8 | number, static_cast<unsigned>(code & 0xFF)};
}

// Puts two symbols at a time, at most 16 + 11 + 16 + 10 bits: each begins where the previous one
// ends, so a chain of shifts limits the speed.
HWY_INLINE void PutBoth(const Bits& first, const Bits& second, BitSink& bits) {
  bits.Put(first.bits << second.count | second.bits, first.count + second.count);
}

HWY_INLINE void CodeBlock(const int16_t* words, uint64_t left, const ScanCodes& codes,
                          int& predictor, BitSink& sink) {
  BitSink bits = sink;  // a copy stays in registers
  const int dc = words[0];
  const Number difference = NumberOf(dc - std::exchange(predictor, dc));
  Bits before = Coded(codes.dc[difference.size], difference.bits);
  const std::array<uint64_t, 256>& ac = codes.ac;
  int last = 0;
  // Takes the next coefficient. Puts `before` first if there are too many zeros between them.
  const auto next = [&]() HWY_ATTR {
    const int k = std::countr_zero(left);
    left &= left - 1;
    int zeros = k - std::exchange(last, k) - 1;
    if (HWY_UNLIKELY(zeros > 15)) {
      bits.Put(before.bits, before.count);
      before = {0, 0};
      for (; zeros > 15; zeros -= 16) bits.Put(ac[kZeros16] >> 8, ac[kZeros16] & 0xFF);
    }
    const int value = words[kWordOfZigZag[static_cast<size_t>(k)]];
    const Number number = kNumbers[static_cast<size_t>(value) % kNumbers.size()];
    return Coded(ac[static_cast<size_t>(zeros << 4) | number.size], number.bits);
  };
  while (left != 0) {
    const Bits second = next();
    PutBoth(before, second, bits);
    before = {0, 0};
    if (left == 0) break;
    before = next();
  }
  PutBoth(before, last < 63 ? Coded(ac[kEndOfBlock], 0) : Bits{0, 0}, bits);
  sink = bits;
}

void Code(const BlockRows& rows, const McuWords& mcus, int from, int to,
          std::span<const ScanCodes, 3> codes, std::array<int, 3>& predictor, BitSink& bits) {
  for (int mcu = from; mcu < to; ++mcu) {
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const BlockRow& row = rows.row[r];
      const auto component = static_cast<size_t>(row.component);
      for (int block = mcu * row.columns; block < (mcu + 1) * row.columns; ++block) {
        const int16_t* const words =
            mcus.words[r] + block / kGroupBlocks * kGroupWords + block % kGroupBlocks * 4;
        CodeBlock(words, mcus.masks[r][block], codes[component], predictor[component], bits);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::packed {

HWY_EXPORT(Find);
HWY_EXPORT(FindLevels);
HWY_EXPORT(Code);

void FindNonZero(const int16_t* words, int groups, uint64_t* non_zero) {
  HWY_DYNAMIC_DISPATCH(Find)(words, groups, non_zero);
}

void FindBits(const int16_t* words, int groups, int levels, uint64_t* masks) {
  HWY_DYNAMIC_DISPATCH(FindLevels)(words, groups, levels, masks);
}

void CodeMcus(const BlockRows& rows, const McuWords& mcus, int from, int to,
              std::span<const ScanCodes, 3> codes, std::array<int, 3>& predictor, BitSink& bits) {
  HWY_DYNAMIC_DISPATCH(Code)(rows, mcus, from, to, codes, predictor, bits);
}

}  // namespace stoker::packed
#endif
