#include "bench/device/finish_kernel.h"

#include <cstddef>
#include <cstring>
#include <random>

#include "core/result/try.h"

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

Result<std::unique_ptr<FinishKernel>> FinishKernel::Make(Device& device,
                                                         const DeferredOpsJob& size) {
  std::unique_ptr<FinishKernel> kernel(new FinishKernel(device));
  TRY(kernel->scratch_.Prepare());
  const uint64_t pixels = PixelBytes(size), most_written = pixels * SizeOf(DType::kF32);
  const uint64_t most_copied = (2 * pixels + most_written) / 2;  // of a row, and of the one before
  ASSIGN_OR_RETURN(void* random, kernel->scratch_.Host(most_copied, HostMemory::kAllocated));
  ASSIGN_OR_RETURN(kernel->from_, kernel->scratch_.Upload(random, most_copied));
  ASSIGN_OR_RETURN(kernel->to_, kernel->scratch_.Allocate(most_written));
  kernel->pixels_ = pixels;
  return kernel;
}

Result<FinishRates> FinishKernel::Measure(DeferredOpsJob job, const FinishingOps& ops) {
  job = WithOps(job, ops);
  if (PixelBytes(job) > pixels_) {
    return Error{Code::kInvalidArgument, "the job is larger than that of FinishKernel::Make"};
  }
  const uint64_t moved = FinishingBytes(job, ops) + PixelBytes(job) * SizeOf(job.dtype);
  job.from = static_cast<const uint8_t*>(from_);
  job.to = to_;
  const std::vector<uint64_t> work = FinishingWork(job, ops);
  if (!work.empty()) {
    ASSIGN_OR_RETURN(void* there, scratch_.Upload(work.data(), work.size() * sizeof(work[0])));
    job.work = static_cast<const uint8_t*>(there);
  }
  ASSIGN_OR_RETURN(const WorkTimes kernel, scratch_.Time([&](DeviceStream stream) {
    return device_.ApplyDeferred(job, stream);
  }));
  ASSIGN_OR_RETURN(const WorkTimes copy, scratch_.Time([&](DeviceStream stream) {
    return device_.Copy(to_, from_, moved / 2, stream);
  }));
  return FinishRates{.kernel_ns = kernel.median_ns,
                     .kernel = Rate(moved, kernel.median_ns),
                     .copy = Rate(moved, copy.median_ns)};
}

}  // namespace stoker
