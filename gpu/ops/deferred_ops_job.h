// DeferredOpsJob: the last step of a batch, on a device: converts bytes to the values that a model
// takes.
//
// One pass per batch: flip, value × scale + bias, erased boxes, rows mixed with each other,
// rounding to the type, NHWC or NCHW. The result equals that of the same transforms on the CPU,
// byte for byte (transforms/resize/row_format.h, transforms/plan/row/erase.h,
// transforms/mix/mix_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/dtype.h"

namespace stoker {

// All memory is on the device. `from` and `to` do not overlap.
struct DeferredOpsJob {
  const uint8_t* from = nullptr;  // rows × height × width × 3
  void* to = nullptr;             // the same number of `dtype` values, in `layout`; 16-byte aligned
  int64_t rows = 0;
  int32_t height = 0;
  int32_t width = 0;
  DType dtype = DType::kU8;  // u8, f16, bf16 or f32
  Layout layout = Layout::kNhwc;
  float scale[3] = {};  // not for u8
  float bias[3] = {};

  // A DeferredOps for each row, followed by its boxes, DeferredOpsBytes(boxes) apart. Null if there
  // is nothing to flip, erase or mix.
  const uint8_t* work = nullptr;
  uint32_t boxes = 0;
  bool mixes = false;  // whether rows are mixed; otherwise DeferredOps::mixing is ignored

  friend bool operator==(const DeferredOpsJob&, const DeferredOpsJob&) = default;
};

// Runs the job on the CPU, in host memory: the host device uses it, and the kernel is compared with
// it. The kernel calls the same functions for each pixel (deferred_ops-inl.h).
void ApplyDeferredOnHost(const DeferredOpsJob& job);

// The plain version, which uses the CPU transforms' own functions.
void ApplyDeferredPlain(const DeferredOpsJob& job);

}  // namespace stoker
