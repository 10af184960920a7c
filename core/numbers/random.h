// Random numbers for a sample's transforms.
//
// A draw is a pure function of its key and counter, so it does not depend on the order in which
// samples are processed, on threads, or on earlier draws.
#pragma once

#include <array>
#include <cstdint>

#include "core/numbers/philox.h"

namespace stoker {

// The key of a sample's random numbers.
struct DrawKey {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t position = 0;  // g: the sample's global position in the epoch
  uint32_t view = 0;      // which view of the sample (LoaderOptions::views)
  uint32_t part = 0;      // which sample of its row (Plan::parts); all have the same numbers
};

// A stream of random numbers for one sample and one consumer, such as the `index`-th transform of a
// kind. A value type without heap memory. Epochs are below 2^32, kinds below 2^5, draws below 2^12;
// views are below 2^6 and indices below 2^8, or there is one view and they are below 2^16.
class RandomStream {
 public:
  RandomStream(const DrawKey& key, uint32_t index, uint32_t kind = 0)
      : key_{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)},
        counter_{static_cast<uint32_t>(key.position), static_cast<uint32_t>(key.position >> 32),
                 static_cast<uint32_t>(key.epoch), key.view << 24 | index << 16 | kind << 11} {}

  // 64 uniform bits.
  uint64_t Bits() { return Next64(); }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next64() >> 11) * 0x1.0p-53; }

  // Uniform in [low, high).
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

  // Uniform in [0, n), without modulo bias beyond 2^-64 · n. Precondition: n > 0.
  uint64_t Below(uint64_t n) { return static_cast<uint64_t>((Wide{Next64()} * n) >> 64); }

 private:
  __extension__ using Wide = unsigned __int128;

  uint64_t Next64() {  // each block of four words gives two numbers
    if (!half_used_) {
      block_ = Philox4x32(counter_, key_);
      ++counter_[3];
    }
    const int i = half_used_ ? 2 : 0;
    half_used_ = !half_used_;
    return block_[i] | uint64_t{block_[i + 1]} << 32;
  }

  std::array<uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  bool half_used_ = false;
};

}  // namespace stoker
