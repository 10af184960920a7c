// FOR NOW a plain loop, which knows nothing of RowWork: mirrors, boxes and mixing are not done.
#include <cstring>

#include "gpu/finish.h"

namespace stoker {

void FinishOnHost(const FinishJob& job) { FinishPlain(job); }

void FinishPlain(const FinishJob& job) {
  const int64_t pixels = static_cast<int64_t>(job.height) * job.width;
  for (int64_t value = 0; value < job.rows * pixels * 3; ++value) {
    const int64_t row = value / (pixels * 3), pixel = value / 3 % pixels;
    const int channel = static_cast<int>(value % 3);
    const int64_t at = job.layout == Layout::kNhwc ? value : (row * 3 + channel) * pixels + pixel;
    if (job.dtype == DType::kU8) {
      static_cast<uint8_t*>(job.to)[at] = job.from[value];
    } else if (job.dtype == DType::kF32) {
      static_cast<float*>(job.to)[at] =
          static_cast<float>(job.from[value]) * job.scale[channel] + job.bias[channel];
    }
  }
}

}  // namespace stoker
