// StallWatch: detects that a consumer waits for a batch while nothing makes progress.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace stoker {

struct LoaderStats;

// Begin and Poll are called by one thread at a time, Report and AddTo by any.
class StallWatch {
 public:
  // The time without progress that counts as a stall; 0 means never.
  explicit StallWatch(uint64_t patience_ns) : patience_ns_(patience_ns) {}

  // The consumer begins to wait.
  void Begin() { last_.reset(); }

  // Called from time to time while the consumer waits, with a hash of all progress. Returns true
  // once per stall. Time without calls, because the process was stopped, hardly counts.
  [[nodiscard]] bool Poll(uint64_t now_ns, uint64_t state);

  // Sets the description of the stall, for the statistics.
  void Report(std::string what);
  void AddTo(LoaderStats& stats) const;

  uint64_t patience_ns() const { return patience_ns_; }

 private:
  struct Observation {
    uint64_t state;
    uint64_t at_ns;
  };

  const uint64_t patience_ns_;
  std::optional<Observation> last_;
  uint64_t still_ns_ = 0;  // for how long nothing has moved
  bool reported_ = false;  // Poll has returned true for this stall

  mutable std::mutex mutex_;
  uint64_t stalls_ = 0;  // this and the following: under mutex_
  std::string stall_;
};

}  // namespace stoker
