#include "bench/tuner_sim/grid.h"

#include <array>
#include <optional>
#include <vector>

namespace stoker::tuner_sim {
namespace {

constexpr std::array kDepths = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr double kEnough = 0.99;

std::vector<int> PowersUpTo(int most) {
  std::vector<int> powers;
  for (int n = 1; n <= most; n *= 2) powers.push_back(n);
  return powers;
}

class Search {
 public:
  explicit Search(const Workload& workload)
      : workload_(workload),
        workers_(PowersUpTo(workload.max_workers)),
        reads_(workload.channels == 0 ? std::vector<int>{1} : PowersUpTo(64)),
        known_(kDepths.size() * workers_.size() * reads_.size()) {}

  const Outcome& At(size_t d, size_t w, size_t r) {
    std::optional<Outcome>& known = known_[(d * workers_.size() + w) * reads_.size() + r];
    if (!known) {
      Fixed fixed(SettingsOf(d, w, r));
      known = Simulate(workload_, fixed);
      ++result_.points;
      if (known->batches_per_second > result_.best_outcome.batches_per_second) {
        result_.best_outcome = *known;
        result_.best = SettingsOf(d, w, r);
      }
    }
    return *known;
  }

  void FindBest() {
    for (size_t r = 0; r < reads_.size(); ++r) At(kDepths.size() - 1, workers_.size() - 1, r);
    enough_ = kEnough * result_.best_outcome.batches_per_second;
  }

  // Finds the least sufficient depth, if any, in each column of workers and reads.
  void FindSmallest() {
    for (size_t r = 0; r < reads_.size(); ++r) {
      size_t least = 0;  // fewer workers never need less depth
      for (size_t w = workers_.size(); w-- > 0;) {
        const std::optional<size_t> d = MinDepth(least, w, r);
        if (!d) break;
        least = *d;
        Consider(*d, w, r);
        // Deeper than a smaller point with more workers: fewer workers only save their buffers.
        if (kDepths[*d] * workload_.slot_bytes > result_.smallest_outcome.memory) break;
      }
    }
  }

  void ConsiderAll() {
    for (size_t d = 0; d < kDepths.size(); ++d) {
      for (size_t w = 0; w < workers_.size(); ++w) {
        for (size_t r = 0; r < reads_.size(); ++r) At(d, w, r);
      }
    }
    enough_ = kEnough * result_.best_outcome.batches_per_second;
    for (size_t d = 0; d < kDepths.size(); ++d) {
      for (size_t w = 0; w < workers_.size(); ++w) {
        for (size_t r = 0; r < reads_.size(); ++r) Consider(d, w, r);
      }
    }
  }

  const GridResult& result() const { return result_; }

 private:
  TunerSettings SettingsOf(size_t d, size_t w, size_t r) const {
    return {.depth = kDepths[d], .workers = workers_[w], .reads = reads_[r]};
  }

  bool Does(size_t d, size_t w, size_t r) { return At(d, w, r).batches_per_second >= enough_; }

  std::optional<size_t> MinDepth(size_t from, size_t w, size_t r) {
    size_t below = from, above = kDepths.size() - 1;
    if (!Does(above, w, r)) return std::nullopt;
    while (below < above) {
      const size_t middle = (below + above) / 2;
      if (Does(middle, w, r)) {
        above = middle;
      } else {
        below = middle + 1;
      }
    }
    return above;
  }

  void Consider(size_t d, size_t w, size_t r) {
    const Outcome& outcome = At(d, w, r);
    if (outcome.batches_per_second < enough_) return;
    if (result_.smallest.depth != 0 && outcome.memory >= result_.smallest_outcome.memory) return;
    result_.smallest = SettingsOf(d, w, r);
    result_.smallest_outcome = outcome;
  }

  const Workload& workload_;
  const std::vector<int> workers_;
  const std::vector<int> reads_;
  std::vector<std::optional<Outcome>> known_;
  double enough_ = 0;
  GridResult result_;
};

}  // namespace

TunerLimits GridLimits(const Workload& workload) {
  return {.depth = kDepths.back(), .workers = workload.max_workers, .reads = 64};
}

GridResult SearchGrid(const Workload& workload) {
  Search search(workload);
  search.FindBest();
  search.FindSmallest();
  return search.result();
}

GridResult SearchWholeGrid(const Workload& workload) {
  Search search(workload);
  search.ConsiderAll();
  return search.result();
}

}  // namespace stoker::tuner_sim
