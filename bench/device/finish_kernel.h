// Measures the kernel that finishes batches (gpu/ops/deferred_ops_job.h), and a copy on the device
// of as many bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/cli/bench/device_scratch.h"
#include "core/batch/deferred_ops.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"
#include "gpu/ops/deferred_ops_job.h"

namespace stoker {

// Operations that the kernel applies as well as converting.
struct FinishingOps {
  const char* name;
  bool flips = false, erases = false, noisy = false;
  RowMixing mixing = RowMixing::kNone;
};
inline constexpr FinishingOps kFinishingOps[] = {
    {.name = "none"},
    {.name = "flip", .flips = true},
    {.name = "erase", .flips = true, .erases = true},
    {.name = "noise", .flips = true, .erases = true, .noisy = true},
    {.name = "mixup", .flips = true, .mixing = RowMixing::kBlend},
    {.name = "cutmix", .flips = true, .mixing = RowMixing::kCut}};

// The job with these operations, without its pointers.
DeferredOpsJob WithOps(DeferredOpsJob job, const FinishingOps& ops);
// The work of its rows: every second row is flipped, and a box of 3/7 of the image in either
// direction is erased, or is the previous row's.
std::vector<uint64_t> FinishingWork(const DeferredOpsJob& job, const FinishingOps& ops);
// The bytes that its kernel reads. A blended row is read twice, for itself and for the next one,
// even if the second time it comes from a cache. A box that is erased is not read.
uint64_t FinishingBytes(const DeferredOpsJob& job, const FinishingOps& ops);

struct FinishRates {
  uint64_t kernel_ns = 0;
  double kernel = 0, copy = 0;  // bytes per second, read and written
};

// Measures jobs in the same memory: to allocate and to fill it takes longer than the kernel's runs.
class FinishKernel {
 public:
  // For jobs that are as large as this one, or smaller, of any type and operations.
  static Result<std::unique_ptr<FinishKernel>> Make(Device& device, const DeferredOpsJob& size);
  Result<FinishRates> Measure(DeferredOpsJob job, const FinishingOps& ops);

 private:
  explicit FinishKernel(Device& device) : device_(device), scratch_(device) {}

  Device& device_;
  DeviceScratch scratch_;
  void* from_ = nullptr;
  void* to_ = nullptr;
  uint64_t pixels_ = 0;
};

}  // namespace stoker
