#include "engine/tuning/tuner_model.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stoker {
namespace {

constexpr double kMaxInFlight = 2048;  // more reads than stoker ever has in flight
constexpr int kKnown = 6;              // batches at a point before its mean is trusted
constexpr double kNearlyAll = 0.98;    // of the best rate of reads; the rest is within noise
constexpr double kFading = 1.0 / 32;   // a mean follows in 32 batches, after a change is noticed

double Elapsed(uint64_t later, uint64_t earlier) {
  return earlier != 0 && later > earlier ? static_cast<double>(later - earlier) : 0;
}

// Returns the time from the first row's begin to the longest row's end. On average the longest row
// begins when half of the others are done.
double UntilLongest(double all, double longest, double places) {
  return std::max(0.0, all - longest) / places / 2 + longest;
}

}  // namespace

double ReadLatency::Add(double in_flight, double latency) {
  in_flight = std::clamp(in_flight, 1.0, kMaxInFlight);
  Point& point = points_[static_cast<size_t>(2 * std::log2(in_flight) + 0.5)];
  const double slowdown = point.batches >= kKnown ? latency / std::max(1.0, point.latency) : 1;
  const double share = std::max(1.0 / ++point.batches, kFading);
  point.in_flight += (in_flight - point.in_flight) * share;
  point.latency += (latency - point.latency) * share;
  sure_ = std::clamp(point.batches, sure_, kKnown);
  max_seen_ = std::max(max_seen_, point.in_flight);
  return slowdown;
}

double ReadLatency::At(double in_flight) const {
  const Point* below = nullptr;
  for (const Point& point : points_) {
    if (point.batches < sure_) continue;
    if (point.in_flight >= in_flight) {
      if (!below) return point.latency;
      const double share = (in_flight - below->in_flight) / (point.in_flight - below->in_flight);
      return std::lerp(below->latency, point.latency, share);
    }
    below = &point;
  }
  if (!below) return 0;
  const double slope = std::log2(below->latency / std::max(1.0, At(below->in_flight / 2)));
  return below->latency * std::pow(in_flight / below->in_flight, std::max(slope, 0.0));
}

int ReadLatency::Useful() const {
  const int most = std::max(2, static_cast<int>(2 * max_seen_ + 0.5));
  const auto rate = [this](int reads) { return reads / std::max(1.0, At(reads)); };
  double best = 0;
  for (int reads = 1; reads <= most; ++reads) best = std::max(best, rate(reads));
  int least = 1;
  while (rate(least) < kNearlyAll * best) ++least;
  return std::min(most, (5 * least + 3) / 4);
}

TunerModel::TunerModel()
    : taken_(2 * kWindow), worked_(2 * kWindow), mapped_(2 * kWindow), sorted_(kWindow) {}

void TunerModel::Add(const BatchRecord& batch) {
  Cost cost{.gap = Elapsed(batch.asked_ns, last_taken_),
            .waited = Elapsed(batch.taken_ns, batch.asked_ns),
            .work = static_cast<double>(batch.work_ns),
            .longest = static_cast<double>(batch.longest_ns),
            .mix = static_cast<double>(batch.mix_ns),
            .map = static_cast<double>(batch.map_ns),
            .map_calls = static_cast<int>(batch.map_calls),
            .read = static_cast<double>(batch.read_ns),
            .longest_read = static_cast<double>(batch.longest_read_ns),
            .reads = static_cast<double>(batch.reads),
            .rows = std::max(1.0, static_cast<double>(batch.rows)),
            .stopped = Elapsed(batch.opened_ns, last_taken_)};
  if (batch.reads != 0) {
    cost.in_flight = static_cast<double>(batch.reads_in_flight) / cost.reads;
    cost.slowdown = read_latency_.Add(cost.in_flight, cost.read / cost.reads);
  }
  costs_[next_++ & (kWindow - 1)] = cost;
  count_ = std::min(count_ + 1, kWindow);
  last_taken_ = batch.taken_ns;
}

void TunerModel::Forget(int keep) {
  count_ = std::min(count_, keep);
  read_latency_ = {};
  for (int i = count_ - 1; i >= 0; --i) {
    const Cost& cost = CostBack(i);
    if (cost.reads != 0) read_latency_.Add(cost.in_flight, cost.read / cost.reads);
  }
}

template <typename Value>
double* TunerModel::SortedOf(int from, int count, Value value) const {
  for (int i = 0; i < count; ++i) sorted_[i] = value(CostBack(from + i));
  std::sort(sorted_.begin(), sorted_.begin() + count);
  return sorted_.data();
}

// Returns the length that gaps count for at most. A gap that is exceeded in fewer than three of
// eight parts of the window is a pause (a validation, a first step that is compiled) and not the
// pace: otherwise the batches that could be made meanwhile would seem worth their memory.
double TunerModel::LongestGap() const {
  const int length = std::max(8, count_ / 8), parts = count_ / length;
  if (parts < 3) return SortedOf(0, count_, [](const Cost& c) { return c.gap; })[count_ / 2];
  for (int k = 0; k < parts; ++k) {
    sorted_[k] = 0;
    for (int i = 0; i < length; ++i)
      sorted_[k] = std::max(sorted_[k], CostBack(k * length + i).gap);
  }
  std::sort(sorted_.begin(), sorted_.begin() + parts, std::greater());
  return sorted_[2];
}

TunerModel::Time TunerModel::Observed(int batches) const {
  Time time;
  const double longest_gap = LongestGap();
  for (int i = 0; i < std::min(batches, count_); ++i) {
    time.waited += CostBack(i).waited;
    time.total += CostBack(i).waited + std::min(CostBack(i).gap, longest_gap);
    time.work += CostBack(i).work;
  }
  return time;
}

TunerModel::Time TunerModel::Replay(const TunerSettings& settings) const {
  const int depth = settings.depth;
  const double workers = settings.workers, reads = std::max(1, settings.reads);
  const double latency = read_latency_.At(reads);
  const double ahead = RowsAhead(std::max(1, settings.reads), settings.workers);
  const double longest_gap = LongestGap();
  // The oldest batches are replayed twice, so that the replay does not begin with everything empty.
  const int first = std::min({count_, 2 * depth + 8, kWindow / 4});
  Time time;
  double opened = 0, read_until = 0, work_until = 0, taken = 0, began = 0;
  for (int j = 0; j < first + count_; ++j) {
    const Cost& cost = CostBack(count_ - 1 - (j < first ? j : j - first));
    if (j == first) began = taken;
    if (j >= depth) opened = std::max(opened, taken_[j - depth]);
    if (cost.stopped > 0) opened = std::max(opened, taken + std::min(cost.stopped, longest_gap));
    double first_row = opened, last_row = opened;  // when workers can have them
    double last_rows = 1;                          // how many come together
    if (cost.reads > 0) {
      const double measured = read_latency_.At(cost.in_flight);
      const double scale = measured > 0 ? latency / measured : 1;
      const double each = scale * cost.read / cost.reads, all = scale * cost.read / reads;
      const double claimed = std::max(opened, MeanWork(j - ahead / cost.rows));
      const double begun = std::max(read_until - each, claimed);
      first_row = std::max(read_until, claimed + each);
      read_until = std::max(read_until, claimed) + all;
      const double rounds = std::ceil(cost.reads / reads);
      last_row =
          std::max({read_until, begun + rounds * each,
                    begun + UntilLongest(scale * cost.read, scale * cost.longest_read, reads)});
      if (begun == claimed) last_rows = cost.reads - (rounds - 1) * reads;
    }
    const double work = cost.work - cost.mix, row = work / cost.rows;
    const double begun = std::max(work_until - row, first_row);
    work_until = std::max(work_until, first_row) + cost.work / workers;
    worked_[j] = work_until;
    // In a fluid all workers finish together; in fact the last one lags by part of a row.
    const double ragged = std::max(0.0, cost.longest - row) / 2 * (1 - 1 / workers);
    const double done =
        std::max({work_until + ragged, last_row + std::ceil(last_rows / workers) * row,
                  begun + std::ceil(cost.work / std::max(1.0, row) / workers) * row,
                  begun + UntilLongest(work, cost.longest, workers)});
    // Calls begin in order, each when one of those before it has ended.
    const int free = j - cost.map_calls;
    const double whole = done + cost.mix, called = free < 0 ? 0 : mapped_[free];
    mapped_[j] = cost.map > 0 ? std::max(whole, called) + cost.map : whole;
    const double asked = taken + std::min(cost.gap, longest_gap);
    taken_[j] = taken = std::max(asked, mapped_[j]);
    if (j >= first) time.waited += taken - asked;
  }
  time.total = taken - began;
  return time;
}

// Returns the time at which workers had done `batches` batches, which may be a fraction. The batch
// that is being replayed is not known yet.
double TunerModel::MeanWork(double batches) const {
  if (batches <= 1) return 0;
  const int whole = static_cast<int>(batches);
  const double until = worked_[whole - 1];
  return until + (batches - whole) * std::max(0.0, worked_[whole] - until);
}

int TunerModel::CountSinceChange() const {
  constexpr int kRecent = 12;        // the fewest batches with meaningful quartiles
  constexpr int kCompared = 128;     // batches before them
  constexpr double kClearly = 1.25;  // the factor beyond the spread that is a change
  if (count_ < 3 * kRecent) return 0;
  const int before = std::min(count_ - kRecent, kCompared);
  const auto differs = [&](auto value) {
    double* sorted = SortedOf(kRecent, before, value);
    const double low = sorted[before / 10], high = sorted[before - 1 - before / 10];
    sorted = SortedOf(0, kRecent, value);
    return sorted[kRecent / 4] > kClearly * high || kClearly * sorted[kRecent * 3 / 4 - 1] < low;
  };
  return differs([](const Cost& c) { return c.gap; }) ||
                 differs([](const Cost& c) { return c.work / c.rows; }) ||
                 differs([](const Cost& c) { return c.slowdown; })
             ? kRecent
             : 0;
}

}  // namespace stoker
