// WorkerCounters: the counters of one worker, written by it alone, on their own cache lines.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/time/core_time.h"
#include "core/time/stage_times.h"
#include "engine/metrics/stats.h"

namespace stoker {

class alignas(64) WorkerCounters {
 public:
  void Add(uint64_t samples, uint64_t bytes, const StageTimes& times, uint64_t work_ns) {
    Bump(samples_, samples);
    Bump(bytes_, bytes);
    Bump(decode_ns_, times.decode_ns);
    Bump(resize_ns_, times.resize_ns);
    Bump(augment_ns_, times.augment_ns);
    Bump(mix_ns_, times.mix_ns);
    Bump(map_ns_, times.map_ns);
    Bump(work_ns_, work_ns);
  }

  // Whether to measure CPU time around the next task: about once in sixteen calls, because it takes
  // system calls. The intervals are irregular because a CPU quota stops workers at regular ones.
  bool MayClock() {
    if (--until_clock_ != 0) return false;
    clock_draw_ = clock_draw_ * 1'664'525 + 1'013'904'223;  // Numerical Recipes' generator
    until_clock_ = 1 + (clock_draw_ >> 27);
    return true;
  }
  void AddClocked(const CoreTime& time) {
    Bump(clocked_ns_, time.wall_ns);
    Bump(clocked_cpu_ns_, time.cpu_ns);
  }

  // Sets the totals of everything that the worker has decoded.
  void SetPaths(const DecodePaths& paths) {
    const auto counts = std::bit_cast<DecodeCounts>(paths);
    for (size_t i = 0; i < counts.size(); ++i) {
      decoded_[i].store(counts[i], std::memory_order_relaxed);
    }
  }

  void AddTo(LoaderStats& stats) const {  // thread-safe
    stats.samples += samples_.load(std::memory_order_relaxed);
    stats.bytes_read += bytes_.load(std::memory_order_relaxed);
    stats.stages.decode_ns += decode_ns_.load(std::memory_order_relaxed);
    stats.stages.resize_ns += resize_ns_.load(std::memory_order_relaxed);
    stats.stages.augment_ns += augment_ns_.load(std::memory_order_relaxed);
    stats.stages.mix_ns += mix_ns_.load(std::memory_order_relaxed);
    stats.stages.map_ns += map_ns_.load(std::memory_order_relaxed);
    stats.worker_busy_ns.push_back(work_ns_.load(std::memory_order_relaxed));
    stats.work_ns += stats.worker_busy_ns.back();
    stats.clocked += {.wall_ns = clocked_ns_.load(std::memory_order_relaxed),
                      .cpu_ns = clocked_cpu_ns_.load(std::memory_order_relaxed)};
    DecodeCounts counts;
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = decoded_[i].load(std::memory_order_relaxed);
    }
    stats.decoded += std::bit_cast<DecodePaths>(counts);
  }

 private:
  using Counter = std::atomic<uint64_t>;
  static void Bump(Counter& counter, uint64_t by) {  // one writer: no locked instruction needed
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  Counter samples_{0}, bytes_{0}, decode_ns_{0}, resize_ns_{0}, augment_ns_{0}, mix_ns_{0};
  Counter map_ns_{0}, work_ns_{0}, clocked_ns_{0}, clocked_cpu_ns_{0};
  uint32_t until_clock_ = 1, clock_draw_ = 0;  // used by the worker only
  std::array<Counter, std::tuple_size_v<DecodeCounts>> decoded_{};
};

}  // namespace stoker
