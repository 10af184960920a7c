// Latencies: a histogram of durations, for quantiles, whose memory does not grow with their number.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stoker {

class Latencies {
 public:
  void Add(uint64_t nanoseconds) {
    ++counts_[ClassOf(nanoseconds)];
    ++total_;
  }

  // Returns the quantile `share` of the durations, in nanoseconds, rounded down to the least
  // duration of its class: at most 1/32 too small. 0 if there are no durations.
  uint64_t Quantile(double share) const {
    const auto rank = static_cast<uint64_t>(share * static_cast<double>(total_));
    uint64_t below = 0;
    size_t last = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      last = i;
      below += counts_[i];
      if (below > rank) break;
    }
    return LeastOf(last);
  }

 private:
  // 32 classes per doubling; each duration below 64 ns has its own.
  static constexpr int kBits = 6;
  static constexpr size_t kPerDoubling = size_t{1} << (kBits - 1);

  static size_t ClassOf(uint64_t ns) {
    const int shift = ns >> kBits == 0 ? 0 : std::bit_width(ns) - kBits;
    return static_cast<size_t>(shift) * kPerDoubling + (ns >> shift);
  }
  static uint64_t LeastOf(size_t index) {
    if (index < 2 * kPerDoubling) return index;
    const size_t shift = index / kPerDoubling - 1;
    return static_cast<uint64_t>(index - shift * kPerDoubling) << shift;
  }

  std::array<uint64_t, (64 - kBits + 2) * kPerDoubling> counts_{};
  uint64_t total_ = 0;
};

}  // namespace stoker
