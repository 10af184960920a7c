// StageTimes: a worker's time by stage.
#pragma once

#include <chrono>
#include <cstdint>

namespace stoker {

// The monotonic clock in nanoseconds, read without a system call.
inline uint64_t NowNanoseconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// Time spent on one sample, or summed over many.
struct StageTimes {
  uint64_t decode_ns = 0;   // bytes → pixels of the region
  uint64_t resize_ns = 0;   // pixels → the row: resample, flip, normalise, convert
  uint64_t augment_ns = 0;  // what is not fused with resizing: colour, blur, policies, erasing
  uint64_t mix_ns = 0;      // MixUp and CutMix

  StageTimes& operator+=(const StageTimes& other) {
    decode_ns += other.decode_ns;
    resize_ns += other.resize_ns;
    augment_ns += other.augment_ns;
    mix_ns += other.mix_ns;
    return *this;
  }
};

}  // namespace stoker
