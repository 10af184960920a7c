#include "engine/tuning/tuner_model.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stoker {
namespace {

constexpr double kRequestsPerWorker = 3;  // read and not yet decoded, at most
constexpr double kFading = 0.95;          // of a point's weight, for each batch that is added to it
constexpr double kNoGain = 1.05;          // less is no more throughput
constexpr double kDoubling = 1.7;         // so many times as many reads should have brought more
constexpr double kOutlier = 2;     // one batch counts as so many times the usual latency at most
constexpr int kSure = 6;           // batches at a point before it proves anything
constexpr double kUnlike = 1.5;    // times as slow, or as fast, as it was
constexpr int kUnlikeInARow = 10;  // batches, and storage is not what it was
constexpr int kLongAgo = 32;       // batches
constexpr double kLongPause = 64;  // times the usual time of a batch
constexpr int kRare = 4;           // gaps, that are longer than all others
constexpr int kLongest = 32;       // gaps, of which some may be pauses
constexpr int kStale = 8192;       // batches until a point is forgotten

size_t HalfOctave(double in_flight, size_t count) {
  const double at = 2 * std::log2(std::max(1.0, in_flight));
  return std::min(count - 1, static_cast<size_t>(at + 0.5));
}

// So many rows at so many places: how often each place has one.
double Rounds(double rows, double places) {
  return static_cast<double>(static_cast<int64_t>((rows + places - 1) / places));
}

// When the longest of a batch's rows is done: in the middle of the others it is begun.
double Straggler(double all, double longest, double places) {
  return std::max(0.0, all - longest) / places / 2 + longest;
}

}  // namespace

bool ReadCurve::Add(double in_flight, double latency, double reads) {
  ++batches_;
  const double usual = Latency(in_flight);
  Point& point = seen_[HalfOctave(in_flight, seen_.size())];
  if (point.batches >= kSure) {
    const bool slower = latency > kUnlike * usual, faster = latency * kUnlike < usual;
    unlike_ = slower ? std::max(unlike_, 0) + 1 : faster ? std::min(unlike_, 0) - 1 : 0;
  }
  if (sure_ == kSure) latency = std::min(latency, kOutlier * usual);
  point.weight = point.weight * kFading + reads;
  const double share = reads / point.weight;
  point.in_flight += (in_flight - point.in_flight) * share;
  point.latency += (latency - point.latency) * share;
  point.last = batches_;
  if (++point.batches >= kSure) sure_ = kSure;
  Sum();
  return std::abs(unlike_) >= kUnlikeInARow || Contradicted();
}

double ReadCurve::Latency(double in_flight) const {
  const Point* below = nullptr;
  for (const Point& point : seen_) {
    if (!Usable(point)) continue;
    if (point.in_flight >= in_flight) {
      if (!below) return point.latency;
      const double share =
          (in_flight - below->in_flight) / std::max(1e-9, point.in_flight - below->in_flight);
      return below->latency + share * (point.latency - below->latency);
    }
    below = &point;
  }
  if (!below) return 0;
  return knee_ > 0 ? below->latency * in_flight / below->in_flight : below->latency;
}

bool ReadCurve::OnlyKnows(double in_flight) const {
  for (const Point& point : seen_) {
    if (point.batches >= kSure && point.in_flight * kDoubling <= in_flight) return false;
  }
  return true;
}

void ReadCurve::Sum() {
  knee_ = most_seen_ = 0;
  const Point* most = nullptr;
  double best = 0;  // rate
  for (Point& point : seen_) {
    if (point.batches == 0) continue;
    if (batches_ - point.last > kStale) {
      point = {};
      continue;
    }
    most_seen_ = std::max(most_seen_, point.in_flight);
    if (point.batches < kSure) continue;
    most = &point;
    best = std::max(best, point.in_flight / point.latency);
  }
  if (!most) return;
  const double rate = most->in_flight / most->latency;
  for (const Point& point : seen_) {  // from the fewest on: what did doubling bring?
    if (point.batches < kSure || point.in_flight * kDoubling > most->in_flight) continue;
    if (rate < point.in_flight / point.latency * kNoGain) {
      knee_ = best * point.latency;
      return;
    }
  }
}

// More reads at a time bring far less than fewer did, or the other way round, and the two were
// measured at different times: it is not their number.
bool ReadCurve::Contradicted() const {
  constexpr double kFarLess = 0.5;
  const Point* fewer = nullptr;
  for (const Point& point : seen_) {
    if (point.batches < kSure) continue;
    if (fewer && std::abs(fewer->last - point.last) > kLongAgo &&
        point.in_flight / point.latency < kFarLess * fewer->in_flight / fewer->latency) {
      return true;
    }
    fewer = &point;
  }
  return false;
}

TunerModel::TunerModel() : taken_(2 * kWindow), worked_(2 * kWindow), scratch_(kWindow) {}

bool TunerModel::Add(const BatchRecord& batch) {
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
  if (batch.taken_ns > batch.asked_ns) {
    cost.waited = static_cast<double>(batch.taken_ns - batch.asked_ns);
  }
  cost.waited_for_storage = static_cast<double>(batch.waited.storage_ns);
  if (batch.reads != 0) {
    cost.in_flight = static_cast<double>(batch.reads_in_flight) / batch.reads;
    reads_anything_ = true;
  }
  last_taken_ = batch.taken_ns;
  ++next_;
  count_ = std::min(count_ + 1, kWindow);
  return cost.reads > 0 && curve_.Add(cost.in_flight, cost.read / cost.reads, cost.reads);
}

void TunerModel::Forget(int keep) {
  count_ = std::min(count_, keep);
  curve_.Clear();
  longest_gap_of_ = 0;
  for (int i = count_ - 1; i >= 0; --i) {
    const Cost& cost = Back(i);
    if (cost.reads != 0) curve_.Add(cost.in_flight, cost.read / cost.reads, cost.reads);
  }
}

// What is longer counts as so long: pauses, which say nothing of the pace, and what is too rare to
// be prepared for. Else a batch for which there was time meanwhile would seem worth its memory.
double TunerModel::LongestGap() const {
  if (longest_gap_of_ == next_) return longest_gap_;
  longest_gap_of_ = next_;
  double time = 0;
  for (int i = 0; i < count_; ++i) {
    scratch_[i] = Back(i).gap;
    time += Back(i).gap + Back(i).waited;
  }
  const int longest = std::min(count_, kLongest);
  std::partial_sort(scratch_.begin(), scratch_.begin() + longest, scratch_.begin() + count_,
                    std::greater());
  int at = 0;
  for (; at + 1 < longest; ++at) {
    time -= scratch_[at];
    if (at >= kRare && scratch_[at] <= kLongPause * time / count_) break;
  }
  return longest_gap_ = count_ == 0 ? 0 : scratch_[at];
}

TunerModel::Replayed TunerModel::Replay(const TunerSettings& settings, int last_ones) const {
  const int depth = settings.depth;
  const double workers = settings.workers;
  const double reads = std::max(1, settings.reads);
  const double latency_now = curve_.Latency(reads);
  // Reads run ahead of workers by so many rows at most.
  const double ahead = reads + kRequestsPerWorker * workers;
  // Some batches go before, so that it does not begin with everything empty: those that did, or
  // else the last ones.
  const int count = std::min(count_, last_ones);
  const int before = std::min(count, std::min(2 * depth + 8, kWindow / 4));
  const int from = count_ >= count + before ? count + before : before;
  const double longest_gap = LongestGap();
  Replayed replayed;
  double opened = 0, read_until = 0, work_until = 0, taken = 0, began = 0;
  for (int j = 0; j < before + count; ++j) {
    const Cost& cost = Back((j < before ? from : before + count) - 1 - j);
    if (j == before) began = taken;
    if (j >= depth) opened = std::max(opened, taken_[j - depth]);
    if (cost.pause > 0) opened = std::max(opened, taken + std::min(cost.pause, longest_gap));
    const double row = (cost.work - cost.mix) / cost.rows;
    double first = opened, last = opened;  // rows are there for workers
    double wave = 0;                       // where nothing is under way, rows come in waves
    if (cost.reads > 0) {
      const double measured = cost.read / cost.reads;
      const double usual = curve_.Latency(cost.in_flight);
      const double scale = usual > 0 ? latency_now / usual : 1;
      const double latency = measured * scale;
      const double rate = cost.read * scale / reads;
      const double claimed = std::max(opened, Worked(j - ahead / cost.rows));
      const double begun = std::max(read_until - latency, claimed);
      first = std::max(read_until, claimed + latency);
      read_until = std::max(read_until, claimed) + rate;
      const double rounds = Rounds(cost.reads, reads);
      last = std::max({read_until, begun + rounds * latency,
                       begun + Straggler(cost.read * scale, cost.longest_read * scale, reads)});
      if (begun == claimed) {
        wave = begun + rounds * latency + Rounds(cost.reads - (rounds - 1) * reads, workers) * row;
      }
    }
    const double all = cost.work / workers;
    const double begun = std::max(work_until - row, first);
    work_until = std::max(work_until, first) + all;
    worked_[j] = work_until;
    const double done =
        std::max({work_until, last + row, wave, begun + Rounds(cost.rows, workers) * row,
                  begun + Straggler(cost.work - cost.mix, cost.longest, workers)}) +
        cost.mix;
    const double asked = taken + std::min(cost.gap, longest_gap);
    taken = std::max(asked, done);
    taken_[j] = taken;
    if (j >= before) replayed.waited += taken - asked;
  }
  replayed.total = taken - began;
  return replayed;
}

// When workers had done so many batches, and a part of one.
double TunerModel::Worked(double batches) const {
  if (batches <= 1) return 0;
  const int whole = static_cast<int>(batches);
  const double until = worked_[whole - 1];
  const double part = batches - whole;
  // Of the batch itself, only what came before is known.
  const double next = worked_[whole] > until ? worked_[whole] : until;
  return part == 0 ? until : until + part * (next - until);
}

TunerModel::Replayed TunerModel::Observed(int batches) const {
  Replayed observed;
  const double longest_gap = LongestGap();
  for (int i = 0; i < std::min(batches, count_); ++i) {
    observed.waited += Back(i).waited;
    observed.for_storage += Back(i).waited_for_storage;
    observed.total += Back(i).waited + std::min(Back(i).gap, longest_gap);
  }
  return observed;
}

double TunerModel::Longest(int batches) const {
  double longest = 0;
  for (int i = 0; i < std::min(batches, count_); ++i) {
    longest = std::max(longest, Back(i).longest + Back(i).longest_read);
  }
  return longest;
}

// The middle half of the recent ones lies beyond nearly all of those before, clearly.
template <typename Value>
bool TunerModel::Differs(int recent, Value value) const {
  constexpr double kClearly = 1.25;
  constexpr int kCompared = 128;
  const int before = std::min(count_ - recent, kCompared);
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
  const bool changed = Differs(kRecent, [](const Cost& c) { return c.gap; }) ||
                       Differs(kRecent, [](const Cost& c) { return c.work / c.rows; });
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
