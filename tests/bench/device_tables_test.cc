// What device_bench measures is what it says: bytes are counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/device/finish_kernel.h"

namespace stoker {
namespace {

// Each value depends on each byte that it was made from.
uint64_t Dependences(DeferredOpsJob job, const FinishingOps& ops) {
  job = WithOps(job, ops);
  const std::vector<uint64_t> work = FinishingWork(job, ops);
  if (!work.empty()) job.work = reinterpret_cast<const uint8_t*>(work.data());
  const size_t values = static_cast<size_t>(job.rows) * 3 * static_cast<size_t>(job.height) *
                        static_cast<size_t>(job.width);
  std::vector<uint8_t> from(values, 100);
  std::vector<float> before(values), after(values);
  job.from = from.data();
  job.to = before.data();
  ApplyDeferredPlain(job);
  job.to = after.data();
  uint64_t dependences = 0;
  for (uint8_t& byte : from) {
    byte = 200;
    ApplyDeferredPlain(job);
    byte = 100;
    for (size_t i = 0; i < values; ++i) dependences += before[i] != after[i] ? 1 : 0;
  }
  return dependences;
}

TEST(FinishKernel, CountsEveryByteThatIsRead) {
  DeferredOpsJob job{.rows = 3, .height = 7, .width = 14, .dtype = DType::kF32};
  std::fill_n(job.scale, 3, 1.0F / 255);
  for (const FinishingOps& ops : kFinishingOps) {
    EXPECT_EQ(FinishingBytes(WithOps(job, ops), ops), Dependences(job, ops)) << ops.name;
  }
}

TEST(FinishKernel, IsMeasured) {
  const auto device = Device::Open({DeviceName::Kind::kHost, 0}).value();
  DeferredOpsJob job{.rows = 2, .height = 14, .width = 14, .dtype = DType::kF16};
  for (const FinishingOps& ops : kFinishingOps) {
    const FinishRates rates = MeasureFinishing(*device, job, ops).value();
    EXPECT_GT(rates.kernel, 0) << ops.name;
    EXPECT_GT(rates.copy, 0) << ops.name;
  }
}

}  // namespace
}  // namespace stoker
