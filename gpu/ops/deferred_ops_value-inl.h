// The rules of DeferredOpsJob for a single value; deferred_ops-inl.h applies them in a thread.
//
// Compiled for a GPU and for the CPU. The functions that differ between the two are static
// functions of a Machine:
//
//   float Multiply(float, float), Add(float, float)   rounded each, never fused
//   float Nearest(float)                              whole number, ties to even
//   double Root(double)                               square root, correctly rounded
//   uint32_t Float16(float), BFloat16(float)          as core/numbers/half.h, but for NaN
//   uint32_t Float16s(float, float), BFloat16s(…)     two of them, the first one in the lower half
//   float Float16Value(uint32_t)
//   void Load(const uint8_t*, uint32_t (&)[N])        N words: 3, 6 or 12; aligned to a third of it
//   void Store(uint8_t*, const uint32_t (&)[4])       aligned to 16
//   void StoreParts(uint8_t*, const uint32_t (&)[3][4])  likewise; the next thread stores after it
//   void Put(uint8_t*, T bits)                        one value, aligned
//
// All functions are constexpr because a kernel may call those (nvcc --expt-relaxed-constexpr).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/batch/deferred_ops.h"
#include "core/numbers/normal.h"
#include "gpu/ops/deferred_ops_job.h"

namespace stoker::deferred {

// The operations that a kernel supports besides flipping and conversion. A kernel with fewer is
// smaller.
enum class Extent { kConverts, kErases, kMixes };

inline Extent ExtentOf(const DeferredOpsJob& job) {
  if (job.work == nullptr) return Extent::kConverts;
  if (job.mixes) return Extent::kMixes;
  return job.boxes != 0 ? Extent::kErases : Extent::kConverts;
}

template <DType kType>
using BitsOf = std::conditional_t<SizeOf(kType) == 1, uint8_t,
                                  std::conditional_t<SizeOf(kType) == 2, uint16_t, uint32_t>>;

struct Spot {
  int32_t y = 0, x = 0;
};

constexpr uint32_t PixelsOf(const DeferredOpsJob& job) {
  return static_cast<uint32_t>(job.height) * static_cast<uint32_t>(job.width);
}

constexpr Spot SpotOf(const DeferredOpsJob& job, uint32_t pixel) {
  const auto width = static_cast<uint32_t>(job.width), y = pixel / width;
  return {static_cast<int32_t>(y), static_cast<int32_t>(pixel - y * width)};
}

constexpr int64_t RowBefore(const DeferredOpsJob& job, int64_t row) {
  return (row == 0 ? job.rows : row) - 1;
}

template <class Machine>
constexpr const DeferredOps& WorkOf(const DeferredOpsJob& job, int64_t row) {
  const size_t at = static_cast<size_t>(row) * DeferredOpsBytes(job.boxes);
  return *reinterpret_cast<const DeferredOps*>(job.work + at);
}

template <class Machine>
constexpr bool IsMirrored(const DeferredOpsJob& job, int64_t row) {
  return job.work != nullptr && WorkOf<Machine>(job, row).mirror != 0;
}

template <class Machine>
constexpr const ErasedBox* BoxesOf(const DeferredOpsJob& job, int64_t row) {
  return reinterpret_cast<const ErasedBox*>(&WorkOf<Machine>(job, row) + 1);
}

// Returns how many of the `count` pixels of a line from `spot` on are in the box.
constexpr int32_t CountIn(const WorkBox& box, Spot spot, int32_t count) {
  if (spot.y < box.y || spot.y - box.y >= box.height) return 0;
  const int32_t begin = spot.x > box.x ? spot.x : box.x;
  const int32_t left = box.x + box.width, right = spot.x + count;
  const int32_t end = left < right ? left : right;
  return end > begin ? end - begin : 0;
}

template <class Machine>
constexpr bool IsErased(const DeferredOpsJob& job, int64_t row, Spot spot, int32_t count) {
  const ErasedBox* boxes = BoxesOf<Machine>(job, row);
  for (uint32_t b = 0; b < job.boxes; ++b) {
    if (CountIn(boxes[b].box, spot, count) != 0) return true;
  }
  return false;
}

// ---- Values.

template <class Machine>
constexpr float Scaled(const DeferredOpsJob& job, int c, uint32_t byte) {
  return Machine::Add(Machine::Multiply(static_cast<float>(byte), job.scale[c]), job.bias[c]);
}

// For u8 the fraction is dropped.
template <class Machine, DType kType>
constexpr uint32_t Rounded(float value) {
  if constexpr (kType == DType::kF32) return std::bit_cast<uint32_t>(value);
  if constexpr (kType == DType::kF16) return Machine::Float16(value);
  if constexpr (kType == DType::kBF16) return Machine::BFloat16(value);
  if constexpr (kType == DType::kU8) return static_cast<uint32_t>(value);
}

template <class Machine, DType kType>
constexpr float ValueOf(uint32_t bits) {
  if constexpr (kType == DType::kF32) return std::bit_cast<float>(bits);
  if constexpr (kType == DType::kF16) return Machine::Float16Value(bits);
  if constexpr (kType == DType::kBF16) return std::bit_cast<float>(bits << 16);
  if constexpr (kType == DType::kU8) return static_cast<float>(bits);
}

template <class Machine, DType kType>
constexpr uint32_t Blended(uint32_t own, uint32_t before, const DeferredOps& work) {
  const float sum = Machine::Add(Machine::Multiply(ValueOf<Machine, kType>(own), work.own),
                                 Machine::Multiply(ValueOf<Machine, kType>(before), work.others));
  if constexpr (kType == DType::kU8) return static_cast<uint32_t>(Machine::Nearest(sum));
  if (sum == sum) return Rounded<Machine, kType>(sum);
  if constexpr (kType == DType::kF32) return 0x7fc00000;
  return kType == DType::kF16 ? 0x7e00 : 0x7fc0;
}

template <class Machine>
struct RootBy {
  constexpr double operator()(double x) const { return Machine::Root(x); }
};

template <class Machine>
constexpr float ValueIn(const ErasedBox& erased, int c, Spot spot) {
  if (erased.noisy == 0) return erased.value[c];
  const WorkBox& box = erased.box;
  const int64_t line = int64_t{c} * box.height + (spot.y - box.y);
  const auto index = static_cast<uint64_t>(line * box.width + (spot.x - box.x));
  return NormalNumber(erased.noise_key, index, RootBy<Machine>());
}

// Returns the value before mixing.
template <class Machine, DType kType, Extent kExtent>
constexpr uint32_t UnmixedBits(const DeferredOpsJob& job, int64_t row, int c, Spot spot) {
  if constexpr (kExtent != Extent::kConverts) {
    const ErasedBox* boxes = BoxesOf<Machine>(job, row);
    for (uint32_t b = job.boxes; b-- > 0;) {  // the last one is on top
      if (CountIn(boxes[b].box, spot, 1) == 0) continue;
      return Rounded<Machine, kType>(ValueIn<Machine>(boxes[b], c, spot));
    }
  }
  const int32_t x = IsMirrored<Machine>(job, row) ? job.width - 1 - spot.x : spot.x;
  const size_t pixel = static_cast<size_t>(spot.y) * static_cast<size_t>(job.width) + x;
  const uint32_t byte = job.from[3 * (static_cast<size_t>(row) * PixelsOf(job) + pixel) + c];
  if constexpr (kType == DType::kU8) return byte;
  return Rounded<Machine, kType>(Scaled<Machine>(job, c, byte));
}

template <class Machine, DType kType, Extent kExtent>
constexpr uint32_t OutputBits(const DeferredOpsJob& job, int64_t row, int c, Spot spot) {
  const uint32_t own = UnmixedBits<Machine, kType, kExtent>(job, row, c, spot);
  if constexpr (kExtent != Extent::kMixes) return own;
  const DeferredOps& work = WorkOf<Machine>(job, row);
  const bool keeps = work.mixing == RowMixing::kNone ||
                     (work.mixing == RowMixing::kCut && CountIn(work.cut, spot, 1) == 0);
  if (keeps) return own;
  const uint32_t before = UnmixedBits<Machine, kType, kExtent>(job, RowBefore(job, row), c, spot);
  return work.mixing == RowMixing::kCut ? before : Blended<Machine, kType>(own, before, work);
}

}  // namespace stoker::deferred
