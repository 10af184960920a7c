#include "bench/device/finish_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>

#include "bindings/cli/bench/device_scratch.h"
#include "core/try.h"

namespace stoker {

namespace {

WorkBox BoxOf(const DeferredOpsJob& job) {
  return {.width = job.width * 3 / 7, .height = job.height * 3 / 7};
}

uint64_t PixelBytes(const DeferredOpsJob& job) {
  return static_cast<uint64_t>(job.rows) * 3 * static_cast<uint64_t>(job.height) *
         static_cast<uint64_t>(job.width);
}

double Rate(uint64_t bytes, uint64_t nanoseconds) {
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(nanoseconds);
}

}  // namespace

DeferredOpsJob WithOps(DeferredOpsJob job, const FinishingOps& ops) {
  job.boxes = ops.erases ? 1 : 0;
  job.mixes = ops.mixing != RowMixing::kNone;
  return job;
}

std::vector<uint64_t> FinishingWork(const DeferredOpsJob& job, const FinishingOps& ops) {
  const size_t words = DeferredOpsBytes(job.boxes) / sizeof(uint64_t);
  std::vector<uint64_t> work;
  if (!ops.flips) return work;
  work.resize(static_cast<size_t>(job.rows) * words);
  std::minstd_rand random;
  const auto upto = [&](int32_t most) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(most + 1));
  };
  for (size_t row = 0; row < static_cast<size_t>(job.rows); ++row) {
    WorkBox box = BoxOf(job);
    box.x = upto(job.width - box.width);
    box.y = upto(job.height - box.height);
    const DeferredOps of_row{.mirror = static_cast<uint32_t>(row % 2),
                             .mixing = ops.mixing,
                             .own = 0.7F,
                             .others = 0.3F,
                             .cut = box};
    std::memcpy(&work[row * words], &of_row, sizeof(of_row));
    if (!ops.erases) continue;
    const ErasedBox erased{.box = box, .noisy = ops.noisy ? 1U : 0U, .noise_key = row << 32U};
    std::memcpy(&work[row * words + sizeof(of_row) / sizeof(uint64_t)], &erased, sizeof(erased));
  }
  return work;
}

uint64_t FinishingBytes(const DeferredOpsJob& job, const FinishingOps& ops) {
  uint64_t bytes = PixelBytes(job);
  if (ops.mixing == RowMixing::kBlend) bytes *= 2;
  if (!ops.erases) return bytes;
  const WorkBox box = BoxOf(job);
  return bytes - static_cast<uint64_t>(job.rows) * 3 * static_cast<uint64_t>(box.width) *
                     static_cast<uint64_t>(box.height);
}

Result<FinishRates> MeasureFinishing(Device& device, DeferredOpsJob job, const FinishingOps& ops) {
  job = WithOps(job, ops);
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  const uint64_t pixels = PixelBytes(job), written = pixels * SizeOf(job.dtype);
  const uint64_t moved = FinishingBytes(job, ops) + written;
  const uint64_t from_bytes = std::max(pixels, moved / 2);
  ASSIGN_OR_RETURN(void* random, scratch.Host(from_bytes, HostMemory::kAllocated));
  ASSIGN_OR_RETURN(void* from, scratch.Upload(random, from_bytes));
  ASSIGN_OR_RETURN(job.to, scratch.Allocate(std::max(written, moved / 2)));
  job.from = static_cast<const uint8_t*>(from);
  const std::vector<uint64_t> work = FinishingWork(job, ops);
  if (!work.empty()) {
    ASSIGN_OR_RETURN(void* there, scratch.Upload(work.data(), work.size() * sizeof(work[0])));
    job.work = static_cast<const uint8_t*>(there);
  }
  ASSIGN_OR_RETURN(const WorkTimes kernel, scratch.Time([&](DeviceStream stream) {
    return device.ApplyDeferred(job, stream);
  }));
  ASSIGN_OR_RETURN(const WorkTimes copy, scratch.Time([&](DeviceStream stream) {
    return device.Copy(job.to, from, moved / 2, stream);
  }));
  return FinishRates{.kernel_ns = kernel.median_ns,
                     .kernel = Rate(moved, kernel.median_ns),
                     .copy = Rate(moved, copy.median_ns)};
}

}  // namespace stoker
