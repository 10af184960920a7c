#include "engine/pipeline/tuner_model.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kFading = 0.9;    // of a point's weight, for each batch that is added to it
constexpr double kNoGain = 1.1;    // less is no more throughput
constexpr double kDoubling = 1.7;  // so many times as many reads should have brought more

size_t HalfOctave(double in_flight, size_t count) {
  const double at = 2 * std::log2(std::max(1.0, in_flight));
  return std::min(count - 1, static_cast<size_t>(at + 0.5));
}

}  // namespace

void ReadCurve::Add(double in_flight, double latency, double reads) {
  Point& point = seen_[HalfOctave(in_flight, seen_.size())];
  point.weight = point.weight * kFading + reads;
  const double share = reads / point.weight;
  point.in_flight += (in_flight - point.in_flight) * share;
  point.latency += (latency - point.latency) * share;
}

double ReadCurve::Latency(double in_flight) const {
  const Point* below = nullptr;
  for (const Point& point : seen_) {
    if (point.weight == 0) continue;
    if (point.in_flight >= in_flight) {
      if (!below) return point.latency;
      const double share =
          (in_flight - below->in_flight) / std::max(1e-9, point.in_flight - below->in_flight);
      return below->latency + share * (point.latency - below->latency);
    }
    below = &point;
  }
  if (!below) return 0;
  const double most = knee();
  return most > 0 ? below->latency * in_flight / below->in_flight : below->latency;
}

double ReadCurve::knee() const {
  const Point* most = nullptr;
  for (const Point& point : seen_) {
    if (point.weight != 0) most = &point;
  }
  if (!most) return 0;
  const double rate = most->in_flight / most->latency;
  // From the fewest that were not fewer than half of the most: what did doubling bring?
  for (const Point& point : seen_) {
    if (point.weight == 0 || point.in_flight * kDoubling > most->in_flight) continue;
    const double before = point.in_flight / point.latency;
    const bool should = most->in_flight / point.in_flight >= kDoubling;
    if (should && rate < before * kNoGain) return rate * point.latency;
  }
  return 0;
}

double ReadCurve::most_seen() const {
  double most = 0;
  for (const Point& point : seen_) {
    if (point.weight != 0) most = std::max(most, point.in_flight);
  }
  return most;
}

TunerModel::TunerModel() : taken_(2 * kWindow), scratch_(kWindow) {}

void TunerModel::Add(const BatchRecord& batch) {
  Cost& cost = costs_[next_ & (kWindow - 1)];
  cost = Cost{};
  if (last_taken_ != 0 && batch.asked_ns > last_taken_) {
    cost.gap = static_cast<double>(batch.asked_ns - last_taken_);
  }
  if (last_taken_ != 0 && batch.opened_ns > last_taken_) {
    cost.pause = static_cast<double>(batch.opened_ns - last_taken_);
  }
  cost.work = static_cast<double>(batch.work_ns);
  cost.longest = static_cast<double>(batch.longest_ns);
  cost.mix = static_cast<double>(batch.mix_ns);
  cost.read = static_cast<double>(batch.read_ns);
  cost.longest_read = static_cast<double>(batch.longest_read_ns);
  cost.rows = std::max(1.0, static_cast<double>(batch.rows));
  cost.reads = batch.reads;
  cost.waited = static_cast<double>(batch.taken_ns - batch.asked_ns);
  if (batch.reads != 0) {
    cost.in_flight = static_cast<double>(batch.reads_in_flight) / batch.reads;
    curve_.Add(cost.in_flight, cost.read / cost.reads, cost.reads);
    reads_anything_ = true;
  }
  last_taken_ = batch.taken_ns;
  ++next_;
  count_ = std::min(count_ + 1, kWindow);
}

void TunerModel::Forget(int keep) {
  count_ = std::min(count_, keep);
  curve_.Clear();
  for (int i = count_ - 1; i >= 0; --i) {
    const Cost& cost = Back(i);
    if (cost.reads != 0) curve_.Add(cost.in_flight, cost.read / cost.reads, cost.reads);
  }
}

TunerModel::Replayed TunerModel::Replay(const TunerSettings& settings) const {
  const int depth = settings.depth;
  const double workers = settings.workers;
  const double reads = std::max(1, settings.reads);
  const double latency_now = curve_.Latency(reads);
  // Some batches go before, so that it does not begin with everything empty.
  const int before = std::min(count_, 2 * depth + 8);
  Replayed replayed;
  double opened = 0, read_until = 0, work_until = 0, taken = 0, began = 0;
  for (int j = 0; j < before + count_; ++j) {
    const Cost& cost = j < before ? Back(before - 1 - j) : Back(before + count_ - 1 - j);
    if (j == before) began = taken;
    if (j >= depth) opened = std::max(opened, taken_[j - depth]);
    if (cost.pause > 0) opened = std::max(opened, taken + cost.pause);
    double first = opened, last = opened;  // rows are there for workers
    if (cost.reads > 0) {
      const double measured = cost.read / cost.reads;
      const double usual = curve_.Latency(cost.in_flight);
      const double scale = usual > 0 ? latency_now / usual : 1;
      const double latency = measured * scale;
      const double rate = cost.read * scale / reads;
      const double begun = std::max(read_until - latency, opened);
      first = std::max(read_until, opened + latency);
      read_until = std::max(read_until, opened) + rate;
      last = std::max(read_until,
                      begun + std::max(0.0, rate - latency) / 2 + cost.longest_read * scale);
    }
    const double row = (cost.work - cost.mix) / cost.rows;
    const double all = cost.work / workers;
    const double begun = std::max(work_until - row, first);
    work_until = std::max(work_until, first) + all;
    const double done =
        std::max({work_until, last + row, begun + std::max(0.0, all - row) / 2 + cost.longest}) +
        cost.mix;
    const double asked = taken + cost.gap;
    taken = std::max(asked, done);
    taken_[j] = taken;
    if (j >= before) replayed.waited += taken - asked;
  }
  replayed.total = taken - began;
  return replayed;
}

TunerModel::Replayed TunerModel::Observed(int batches) const {
  Replayed observed;
  for (int i = 0; i < std::min(batches, count_); ++i) {
    observed.waited += Back(i).waited;
    observed.total += Back(i).waited + Back(i).gap;
  }
  return observed;
}

// The middle half of the recent ones lies beyond nearly all of those before, clearly.
template <typename Value>
bool TunerModel::Differs(int recent, Value value) const {
  constexpr double kClearly = 1.25;
  const int before = count_ - recent;
  for (int i = 0; i < before; ++i) scratch_[i] = value(Back(recent + i));
  std::sort(scratch_.begin(), scratch_.begin() + before);
  const double low = scratch_[before / 10], high = scratch_[before - 1 - before / 10];
  for (int i = 0; i < recent; ++i) scratch_[i] = value(Back(i));
  std::sort(scratch_.begin(), scratch_.begin() + recent);
  const double quarter = scratch_[recent / 4], three = scratch_[recent - 1 - recent / 4];
  return quarter > high * kClearly || three * kClearly < low;
}

int TunerModel::Change() const {
  constexpr int kRecent = 12;
  if (count_ < 3 * kRecent) return 0;
  const bool changed =
      Differs(kRecent, [](const Cost& c) { return c.gap; }) ||
      Differs(kRecent, [](const Cost& c) { return c.work / c.rows; }) ||
      Differs(kRecent, [](const Cost& c) { return c.reads > 0 ? c.read / c.reads : 0; });
  return changed ? kRecent : 0;
}

double TunerModel::MedianWork() const {
  for (int i = 0; i < count_; ++i) scratch_[i] = Back(i).work;
  std::nth_element(scratch_.begin(), scratch_.begin() + count_ / 2, scratch_.begin() + count_);
  return count_ == 0 ? 0 : scratch_[count_ / 2];
}

double TunerModel::MedianGap() const {
  for (int i = 0; i < count_; ++i) scratch_[i] = Back(i).gap;
  std::nth_element(scratch_.begin(), scratch_.begin() + count_ / 2, scratch_.begin() + count_);
  return count_ == 0 ? 0 : scratch_[count_ / 2];
}

double TunerModel::MeanLatency() const {
  double sum = 0, reads = 0;
  for (int i = 0; i < count_; ++i) sum += Back(i).read, reads += Back(i).reads;
  return reads > 0 ? sum / reads : 0;
}

}  // namespace stoker
