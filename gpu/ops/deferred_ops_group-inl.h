// A group of pixels in a thread's registers: its bytes are loaded, flipped, converted, blended with
// those of the previous row, and stored, 16 bytes at a time.
//
// Indices must be constants once the loops are unrolled, because registers cannot be indexed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/ops/deferred_ops_value-inl.h"

namespace stoker::deferred {

// Pixels of a group, neighbours in a line. Their values fill 16 bytes of a plane.
template <DType kType>
inline constexpr uint32_t kGroup = 16 / SizeOf(kType);

// The bytes of a group's pixels.
template <DType kType>
struct GroupBytes {
  uint32_t words[3 * kGroup<kType> / 4];
  constexpr uint32_t At(uint32_t i) const { return words[i / 4] >> (8 * (i % 4)) & 0xff; }
};

// A group's values in the output format: 16 bytes of each plane, or the 48 bytes of NHWC.
struct GroupValues {
  uint32_t words[3][4];
};

template <DType kType>
constexpr GroupBytes<kType> Reversed(const GroupBytes<kType>& bytes) {
  GroupBytes<kType> reversed{};
  for (uint32_t i = 0; i < 3 * kGroup<kType>; ++i) {
    const uint32_t from = 3 * (kGroup<kType> - 1 - i / 3) + i % 3;
    reversed.words[i / 4] |= bytes.At(from) << (8 * (i % 4));
  }
  return reversed;
}

// Value i of part p.
template <DType kType, Layout kLayout>
struct ValueIndex {
  uint32_t p, i;
  constexpr uint32_t byte() const {
    return kLayout == Layout::kNhwc ? p * kGroup<kType> + i : 3 * i + p;
  }
  constexpr int channel() const { return static_cast<int>(byte() % 3); }
};

template <class Machine, DType kType, Layout kLayout>
constexpr GroupValues Converted(const DeferredOpsJob& job, const GroupBytes<kType>& bytes) {
  constexpr uint32_t kInWord = 4 / SizeOf(kType);
  GroupValues values{};
  for (uint32_t p = 0; p < 3; ++p) {
    for (uint32_t w = 0; w < 4; ++w) {
      const ValueIndex<kType, kLayout> index{p, w * kInWord}, next{p, w * kInWord + 1};
      uint32_t& word = values.words[p][w];
      if constexpr (kType == DType::kU8) {
        for (uint32_t b = 0; b < 4; ++b) {
          word |= bytes.At(ValueIndex<kType, kLayout>{p, 4 * w + b}.byte()) << (8 * b);
        }
      } else {
        const float value = Scaled<Machine>(job, index.channel(), bytes.At(index.byte()));
        if constexpr (kType == DType::kF32) {
          word = std::bit_cast<uint32_t>(value);
        } else {
          const float other = Scaled<Machine>(job, next.channel(), bytes.At(next.byte()));
          word = kType == DType::kF16 ? Machine::Float16s(value, other)
                                      : Machine::BFloat16s(value, other);
        }
      }
    }
  }
  return values;
}

// Returns a group of a row, flipped if the row is.
template <class Machine, DType kType, Layout kLayout>
constexpr GroupValues ConvertedGroup(const DeferredOpsJob& job, int64_t row, uint32_t group) {
  const bool mirrored = IsMirrored<Machine>(job, row);
  uint32_t source = group;
  if (mirrored) {
    const uint32_t in_line = static_cast<uint32_t>(job.width) / kGroup<kType>;
    const uint32_t first = group / in_line * in_line;
    source = first + (in_line - 1 - (group - first));
  }
  const size_t pixel = static_cast<size_t>(row) * PixelsOf(job) + size_t{source} * kGroup<kType>;
  GroupBytes<kType> bytes;
  Machine::Load(job.from + 3 * pixel, bytes.words);
  if (mirrored) bytes = Reversed(bytes);
  return Converted<Machine, kType, kLayout>(job, bytes);
}

template <class Machine, DType kType>
constexpr void Blend(GroupValues& own, const GroupValues& before, const DeferredOps& work) {
  constexpr uint32_t kInWord = 4 / SizeOf(kType), kBits = 8 * SizeOf(kType);
  constexpr uint32_t kMask = ~uint32_t{0} >> (32 - kBits);
  for (uint32_t p = 0; p < 3; ++p) {
    for (uint32_t w = 0; w < 4; ++w) {
      uint32_t word = 0;
      for (uint32_t i = 0; i < kInWord; ++i) {
        const uint32_t a = own.words[p][w] >> (i * kBits) & kMask;
        const uint32_t b = before.words[p][w] >> (i * kBits) & kMask;
        word |= Blended<Machine, kType>(a, b, work) << (i * kBits);
      }
      own.words[p][w] = word;
    }
  }
}

}  // namespace stoker::deferred
