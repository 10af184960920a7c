// WaitCauses: the time that a consumer waited, by cause.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// Nanoseconds. The sum is the time waited.
struct WaitCauses {
  uint64_t storage_ns = 0;  // reads were in progress
  uint64_t decode_ns = 0;   // a worker was decoding, or none was free
  uint64_t copy_ns = 0;     // copies to a device were in progress
  uint64_t other_ns = 0;    // threads waking up, and unknown causes

  uint64_t sum() const { return storage_ns + decode_ns + copy_ns + other_ns; }
  WaitCauses& operator+=(const WaitCauses& other) {
    storage_ns += other.storage_ns;
    decode_ns += other.decode_ns;
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
inline constexpr std::array<NamedCause, 4> kNamedCauses{{{"storage", &WaitCauses::storage_ns},
                                                         {"decode", &WaitCauses::decode_ns},
                                                         {"copy", &WaitCauses::copy_ns},
                                                         {"other", &WaitCauses::other_ns}}};

}  // namespace stoker
