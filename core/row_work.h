// RowWork: what is left to do to a row of a batch when it has arrived on a device. The worker that
// makes the row writes it into a column of the batch's slot, and it is copied with the pixels.
//
// Plain data, read by a kernel: fixed sizes, no pointers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

enum class RowMixing : uint32_t {
  kNone,
  kBlend,  // own × row + others × the row before, value by value
  kCut,    // the box is that of the row before
};

struct WorkBox {
  int32_t x = 0, y = 0, width = 0, height = 0;  // in the finished image; empty: no box
};

// A box of the finished row that is overwritten, as Erasure (transforms/plan/drawn.h) has it.
struct ErasedBox {
  WorkBox box{};
  float value[3] = {};     // in the row's own values
  uint32_t noisy = 0;      // 1: normal numbers in place of `value`
  uint64_t noise_key = 0;  // theirs
};

// In the order in which it is done: the stored row is mirrored, converted, its boxes are erased,
// one after the other; then it is mixed with the row before (row 0: with the last), which is
// finished to that point too.
struct RowWork {
  uint32_t mirror = 0;  // 1: left and right change places
  RowMixing mixing = RowMixing::kNone;
  float own = 1, others = 0;
  WorkBox cut{};
  // Followed by ErasedBox[boxes], as many for every row of the batch.
};

static_assert(sizeof(ErasedBox) == 40 && sizeof(RowWork) == 32 && alignof(ErasedBox) == 8);

// Bytes from one row's work to the next; a multiple of 8.
constexpr size_t RowWorkBytes(size_t boxes) { return sizeof(RowWork) + boxes * sizeof(ErasedBox); }

}  // namespace stoker
