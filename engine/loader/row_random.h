// RowRandom: random numbers for a program's function of rows or batches.
#pragma once

#include <array>
#include <cstdint>

#include "core/philox.h"

namespace stoker {

// A generator for the distributions of <random>. Its numbers depend on seed, epoch and position
// alone: they are the same on every thread and in every run, and others than those of the
// transforms. A value type without heap memory. The distributions of <random> differ between
// standard libraries; Uniform and Below do not.
class RowRandom {
 public:
  using result_type = uint64_t;  // NOLINT(readability-identifier-naming): of the standard

  // `epoch`: below 2^32. `position`: in the epoch's order, over all ranks.
  RowRandom(uint64_t seed, uint64_t epoch, uint64_t position)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32) ^ kOfFunctions},
        counter_{static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                 static_cast<uint32_t>(epoch), 0} {}

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }

  // 64 uniform bits. They repeat after 2^33 calls.
  uint64_t operator()() {
    if (!half_used_) {
      block_ = Philox4x32(counter_, key_);
      ++counter_[3];
    }
    const unsigned i = half_used_ ? 2 : 0;
    half_used_ = !half_used_;
    return block_[i] | uint64_t{block_[i + 1]} << 32;
  }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  // Uniform in [0, n), without modulo bias beyond 2^-64 · n. Precondition: n > 0.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<Wide>((*this)()) * n) >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr uint32_t kOfFunctions = 0x9D2C5680;  // the transforms' keys do not have it

  std::array<uint32_t, 2> key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  bool half_used_ = false;
};

}  // namespace stoker
