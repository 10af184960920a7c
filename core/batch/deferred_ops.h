// DeferredOps: the deferred operations of a row, which the device applies after the copy. The
// worker that makes the row writes them into a column of the batch's slot, and they are copied with
// the pixels.
//
// Plain data, read by a kernel: fixed sizes, no pointers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {

enum class RowMixing : uint32_t {
  kNone,
  kBlend,  // own × row + others × the previous row, value by value
  kCut,    // the box comes from the previous row
};

struct WorkBox {
  int32_t x = 0, y = 0, width = 0, height = 0;  // in the finished image; empty means no box
};

// A box of the finished row that is overwritten, like Erasure (transforms/plan/drawn.h).
struct ErasedBox {
  WorkBox box{};
  float value[3] = {};     // in the row's own values
  uint32_t noisy = 0;      // 1 means normal numbers instead of `value`
  uint64_t noise_key = 0;  // of the normal numbers
};

// The operations, in order: mirror the stored row, convert it, erase its boxes one after the other,
// then mix it with the previous row (row 0: with the last), which has been through the same steps.
struct DeferredOps {
  uint32_t mirror = 0;  // 1 means flip horizontally
  RowMixing mixing = RowMixing::kNone;
  float own = 1, others = 0;
  WorkBox cut{};
  // Followed by ErasedBox[boxes], the same number for every row of the batch.
};

static_assert(sizeof(ErasedBox) == 40 && sizeof(DeferredOps) == 32 && alignof(ErasedBox) == 8);

// Bytes of one row's operations; a multiple of 8.
constexpr size_t DeferredOpsBytes(size_t boxes) {
  return sizeof(DeferredOps) + boxes * sizeof(ErasedBox);
}

}  // namespace stoker
