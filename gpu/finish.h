// FinishJob: the last step of a batch, on a device: bytes become the values that a model takes.
//
// One pass for each batch: mirror, value × scale + bias, erased boxes, rows mixed with each other,
// rounding to the type, NHWC or NCHW. What it gives are the bytes that the same transforms give on
// the CPU (transforms/resize/row_format.h, transforms/plan/erase.h, transforms/mix/mix_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/layout.h"

namespace stoker {

// All memory is the device's. `from` and `to` do not overlap.
struct FinishJob {
  const uint8_t* from = nullptr;  // rows × height × width × 3
  void* to = nullptr;             // as many values of `dtype`, in `layout`; 16-byte aligned
  int64_t rows = 0;
  int32_t height = 0;
  int32_t width = 0;
  DType dtype = DType::kU8;  // u8, f16, bf16 or f32
  Layout layout = Layout::kNhwc;
  float scale[3] = {};  // not for u8
  float bias[3] = {};

  // A RowWork for each row, followed by its boxes: RowWorkBytes(boxes) apart. Null: there is
  // nothing to mirror, to erase or to mix.
  const uint8_t* work = nullptr;
  uint32_t boxes = 0;
  bool mixes = false;  // whether rows are mixed; where false, RowWork::mixing is not looked at

  friend bool operator==(const FinishJob&, const FinishJob&) = default;
};

// On the CPU, memory being the host's: what the host device runs, and what the kernel is compared
// with. The kernel calls the same functions for each pixel (finish-inl.h).
void FinishOnHost(const FinishJob& job);

// The plain twin, from the CPU's own rules.
void FinishPlain(const FinishJob& job);

}  // namespace stoker
