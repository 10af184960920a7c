// Why a consumer waited: the time, by cause.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// Nanoseconds. Their sum is the time waited.
struct WaitCauses {
  uint64_t storage_ns = 0;  // bytes were on their way
  uint64_t decode_ns = 0;   // a worker was at it, or none was free
  uint64_t copy_ns = 0;     // on the way to a device
  uint64_t other_ns = 0;    // threads that had to wake up, and what is unknown

  uint64_t sum() const { return storage_ns + decode_ns + copy_ns + other_ns; }
  WaitCauses& operator+=(const WaitCauses& other) {
    storage_ns += other.storage_ns;
    decode_ns += other.decode_ns;
    copy_ns += other.copy_ns;
    other_ns += other.other_ns;
    return *this;
  }
};

// All of them, by the names that users see.
struct NamedCause {
  const char* name;
  uint64_t WaitCauses::*ns;
};
inline constexpr std::array<NamedCause, 4> kNamedCauses{{{"storage", &WaitCauses::storage_ns},
                                                         {"decode", &WaitCauses::decode_ns},
                                                         {"copy", &WaitCauses::copy_ns},
                                                         {"other", &WaitCauses::other_ns}}};

}  // namespace stoker
