#include "engine/tuning/tuner_choice.h"

#include <algorithm>

namespace stoker {
namespace {

// The least in [low, high] that does; `high` where none does. More never does worse.
template <typename Does>
int Fewest(int low, int high, Does does) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (does(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace

TunerSettings Most(const TunerSettings& a, const TunerSettings& b) {
  return {.depth = std::max(a.depth, b.depth),
          .workers = std::max(a.workers, b.workers),
          .reads = std::max(a.reads, b.reads)};
}

TunerSettings Least(const TunerSettings& a, const TunerSettings& b) {
  return {.depth = std::min(a.depth, b.depth),
          .workers = std::min(a.workers, b.workers),
          .reads = std::min(a.reads, b.reads)};
}

TunerSettings TunerChoice::Within(const TunerSettings& wanted, const TunerSettings& fixed,
                                  const TunerLimits& most) {
  const auto within = [](int set, int want, int limit) {
    return set != 0 ? set : std::clamp(want, 1, std::max(1, limit));
  };
  return {.depth = within(fixed.depth, wanted.depth, most.depth),
          .workers = within(fixed.workers, wanted.workers, most.workers),
          .reads = within(fixed.reads, wanted.reads, most.reads)};
}

// Latency with more reads than were tried is unknown: a doubling at a time, and not beyond what
// was seen to bring nothing.
TunerSettings TunerChoice::Top(const TunerLimits& most) const {
  int reads = now_.reads;
  const double knee = model_.curve().knee();
  if (knee > 0) {
    reads = std::max(1, static_cast<int>(1.25 * knee + 0.5));
  } else if (2 * model_.curve().most_seen() > reads) {
    reads = 2 * now_.reads;
  }
  return Within({.depth = most.depth, .workers = most.workers, .reads = reads}, options_.fixed,
                most);
}

// The least depth that loses `part` of wait_target; but up to twice that is lost where a depth
// half as large again, or less, would not do: rare and long waits are not bought with memory.
int TunerChoice::LeastDepth(const TunerSettings& s, double part) const {
  if (options_.fixed.depth != 0) return options_.fixed.depth;
  const auto loses = [&](double times) {
    const double limit = best_ * (1 + times * part * options_.wait_target);
    return [this, &s, limit](int depth) { return Time({depth, s.workers, s.reads}) <= limit; };
  };
  const int loose = Fewest(1, s.depth, loses(kLoose));
  return Fewest(loose, std::min(s.depth, loose + loose * 2 / 5), loses(1));
}

TunerSettings TunerChoice::Choose() const {
  const TunerSettings& fixed = options_.fixed;
  const double slack = kLoose * options_.wait_target * best_;
  TunerSettings s = top_;
  if (fixed.depth == 0) {
    s.depth = LeastDepth(top_, 0.7);
    s.depth = std::min(top_.depth, s.depth + s.depth / 4);
  }
  if (fixed.workers == 0) {
    s.workers = Fewest(1, top_.workers, [&](int workers) {
      return Time({s.depth, workers, s.reads}) <= best_ + 0.8 * slack;
    });
    s.workers = std::min(top_.workers, static_cast<int>(1.1 * s.workers + 0.5));
  }
  if (fixed.reads == 0 && model_.reads_anything()) {
    s.reads = Fewest(1, top_.reads, [&](int reads) {
      return Time({s.depth, s.workers, reads}) <= best_ + 0.9 * slack;
    });
    s.reads = std::min(top_.reads, (5 * s.reads + 3) / 4);
  }
  s.depth = LeastDepth(s, 1);
  return s;
}

}  // namespace stoker
