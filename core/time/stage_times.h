// Times in nanoseconds: of a worker by stage, of a thread on a core, and of a consumer's waits by
// cause.
#pragma once

#include <algorithm>
#include <array>
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
  uint64_t augment_ns = 0;  // work that is not fused with resizing: colour, blur, policies, erasing
  uint64_t mix_ns = 0;      // MixUp and CutMix
  uint64_t map_ns = 0;      // the program's own function

  StageTimes& operator+=(const StageTimes& other) {
    decode_ns += other.decode_ns;
    resize_ns += other.resize_ns;
    augment_ns += other.augment_ns;
    mix_ns += other.mix_ns;
    map_ns += other.map_ns;
    return *this;
  }
};

// The share of its runnable time that a thread has a core, summed over periods of work.
struct CoreTime {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;

  // 0 to 1; 1 if nothing was measured.
  double share() const {
    if (wall_ns == 0) return 1;
    return std::min(1.0, static_cast<double>(cpu_ns) / static_cast<double>(wall_ns));
  }
  CoreTime& operator+=(const CoreTime& other) {
    wall_ns += other.wall_ns;
    cpu_ns += other.cpu_ns;
    return *this;
  }
};

// The time that a consumer waited, by cause, in nanoseconds. The sum is the time waited.
struct WaitCauses {
  uint64_t storage_ns = 0;  // reads were in progress
  uint64_t decode_ns = 0;   // a worker was decoding, or none was free
  uint64_t map_ns = 0;      // the program's function had the batch
  uint64_t copy_ns = 0;     // copies to a device were in progress
  uint64_t other_ns = 0;    // threads waking up, and unknown causes

  uint64_t sum() const { return storage_ns + decode_ns + map_ns + copy_ns + other_ns; }
  WaitCauses& operator+=(const WaitCauses& other) {
    storage_ns += other.storage_ns;
    decode_ns += other.decode_ns;
    map_ns += other.map_ns;
    copy_ns += other.copy_ns;
    other_ns += other.other_ns;
    return *this;
  }
};

// All causes, with the names that users see.
struct NamedCause {
  const char* name;
  uint64_t WaitCauses::*ns;
};
inline constexpr std::array<NamedCause, 5> kNamedCauses{{{"storage", &WaitCauses::storage_ns},
                                                         {"decode", &WaitCauses::decode_ns},
                                                         {"map", &WaitCauses::map_ns},
                                                         {"copy", &WaitCauses::copy_ns},
                                                         {"other", &WaitCauses::other_ns}}};

}  // namespace stoker
