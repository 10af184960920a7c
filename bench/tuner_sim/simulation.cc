#include "bench/tuner_sim/simulation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace stoker::tuner_sim {
namespace {

// A set of small numbers, taken lowest first.
class Numbers {
 public:
  void Add(uint32_t n) { words_[n / 64] |= uint64_t{1} << (n % 64), ++count_; }
  uint32_t TakeLowest() {
    for (uint32_t w = 0;; ++w) {
      if (words_[w] == 0) continue;
      const auto n = static_cast<uint32_t>(std::countr_zero(words_[w]));
      words_[w] &= words_[w] - 1, --count_;
      return w * 64 + n;
    }
  }
  template <typename Less>
  uint32_t TakeIf(Less less) {
    uint32_t best = kMax;
    for (uint32_t w = 0; w < words_.size(); ++w) {
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        const uint32_t n = w * 64 + static_cast<uint32_t>(std::countr_zero(bits));
        if (best == kMax || less(n, best)) best = n;
      }
    }
    words_[best / 64] &= ~(uint64_t{1} << (best % 64)), --count_;
    return best;
  }
  uint32_t count() const { return count_; }
  static constexpr uint32_t kMax = 1024;

 private:
  std::array<uint64_t, kMax / 64> words_{};
  uint32_t count_ = 0;
};

struct Event {
  enum class Kind : uint32_t { kRead, kWorked, kMixed, kAsk };
  double at;
  Kind kind;
  uint32_t which;
  bool operator>(const Event& other) const { return at > other.at; }
};

struct Request {
  uint64_t sample = 0;
  double claimed = 0, read = 0, begun = 0, left = 0;
};

class Pipeline {
 public:
  Pipeline(const Workload& workload, Controller& controller, Trace* trace)
      : w_(workload),
        controller_(controller),
        trace_(trace),
        settings_(controller.Start()),
        open_(workload.batches),
        requests_(Numbers::kMax),
        channel_free_(static_cast<size_t>(std::max(1, workload.channels)), 0.0) {
    for (uint32_t r = 0; r < Numbers::kMax; ++r) free_.Add(r);
  }

  Outcome Run() {
    Open();
    Push(0, Event::Kind::kAsk, 0);
    while (taken_ < w_.batches) {
      Work();
      std::pop_heap(events_.begin(), events_.end(), std::greater<>());
      const Event event = events_.back();
      events_.pop_back();
      Advance(event.at);
      switch (event.kind) {
        case Event::Kind::kRead:
          OnRead(event.which);
          break;
        case Event::Kind::kWorked:
          OnWorked(event.which);
          break;
        case Event::Kind::kMixed:
          --busy_, Complete(event.which);
          break;
        case Event::Kind::kAsk:
          asked_ = now_, asking_ = true;
          break;
      }
      if (asking_ && open_[taken_].complete) Take();
    }
    return Result();
  }

 private:
  struct Batch {
    BatchRecord record;
    uint32_t missing = 0;
    double last_read = 0;
    bool complete = false;
  };

  void Push(double at, Event::Kind kind, uint32_t which) {
    events_.push_back({at, kind, which});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
  }

  void Advance(double to) {
    if (taken_ > w_.converged_from()) {
      const double ns = to - now_;
      memory_ += ns * (settings_.depth * w_.slot_bytes + in_use_ * w_.buffer_bytes);
      depth_ += ns * settings_.depth;
      workers_ += ns * settings_.workers;
      reads_ += ns * settings_.reads;
    }
    now_ = to;
  }

  void Open() {
    while (opened_ < w_.batches && opened_ - taken_ < static_cast<uint32_t>(settings_.depth)) {
      open_[opened_].record.opened_ns = static_cast<uint64_t>(now_);
      open_[opened_].record.rows = w_.batch_size;
      open_[opened_].missing = w_.batch_size;
      ++opened_;
    }
  }

  // Claims rows that may be read, and gives free workers the rows that are ready.
  void Work() {
    const uint64_t rows = uint64_t{opened_} * w_.batch_size;
    const auto most = static_cast<uint32_t>(RowsAhead(settings_.reads, settings_.workers));
    while (claimed_ < rows && in_use_ < most && in_flight_ < settings_.reads) Claim();
    while (busy_ < settings_.workers && ready_.count() != 0) Begin(TakeReady());
  }

  // Samples in memory have no requests to take from: a worker claims the next row.
  uint32_t TakeReady() {
    if (w_.channels != 0 && !w_.oldest_first) return ready_.TakeLowest();
    return ready_.TakeIf(
        [this](uint32_t a, uint32_t b) { return requests_[a].sample < requests_[b].sample; });
  }

  void Claim() {
    const uint32_t index = free_.TakeLowest();
    Request& request = requests_[index];
    request = {claimed_++, now_, now_, 0, 0};
    ++in_use_;
    if (w_.channels == 0) {
      ready_.Add(index);
      return;
    }
    ++in_flight_;
    Batch& batch = BatchOf(request);
    batch.record.reads += 1;
    batch.record.reads_in_flight += static_cast<uint64_t>(in_flight_);
    if (stall_ < w_.stalls.size() && request.sample >= w_.stalls[stall_].sample) {
      stalled_until_ = now_ + w_.stalls[stall_++].duration;
    }
    const double waiting = std::max(0.0, static_cast<double>(in_flight_) / w_.channels - 1);
    const double service = w_.service[request.sample] * (1 + w_.thrash * waiting) /
                           (1 + w_.elevator * std::log2(in_flight_));
    auto channel = std::min_element(channel_free_.begin(), channel_free_.end());
    *channel = std::max({*channel, now_, stalled_until_}) + service;
    const double delay = w_.delay.empty() ? 0 : w_.delay[request.sample];
    Push(*channel + delay, Event::Kind::kRead, index);
  }

  void OnRead(uint32_t index) {
    Request& request = requests_[index];
    request.read = now_;
    --in_flight_;
    Batch& batch = BatchOf(request);
    const auto took = static_cast<uint64_t>(now_ - request.claimed);
    batch.record.read_ns += took;
    batch.record.longest_read_ns = std::max(batch.record.longest_read_ns, took);
    batch.last_read = now_;
    ready_.Add(index);
  }

  void Begin(uint32_t index) {
    Request& request = requests_[index];
    request.begun = now_;
    request.left = w_.work[request.sample];
    ++busy_;
    GoOn(index);
  }

  // Continues a row as fast as the busy workers are now; long rows are looked at again.
  void GoOn(uint32_t index) {
    Request& request = requests_[index];
    const double now = std::min(request.left, w_.quantum_ns);
    request.left -= now;
    const double cores = w_.cores[request.sample / w_.batch_size];
    const double whole = cores * w_.whole_cores;
    const double speed =  // of all busy workers together, in cores
        busy_ <= whole ? busy_ : whole + std::min(busy_ - whole, cores - whole) * w_.twin_gain;
    Push(now_ + now * busy_ / speed, Event::Kind::kWorked, index);
  }

  void OnWorked(uint32_t index) {
    Request& request = requests_[index];
    if (request.left > 0) return GoOn(index);
    Batch& batch = BatchOf(request);
    const auto took = static_cast<uint64_t>(now_ - request.begun);
    batch.record.work_ns += took;
    batch.record.longest_ns = std::max(batch.record.longest_ns, took);
    free_.Add(index);
    --in_use_;
    const auto number = static_cast<uint32_t>(request.sample / w_.batch_size);
    if (--batch.missing == 0 && w_.mix_ns != 0) {
      batch.record.mix_ns = static_cast<uint64_t>(w_.mix_ns);
      batch.record.work_ns += batch.record.mix_ns;
      Push(now_ + w_.mix_ns, Event::Kind::kMixed, number);
      return;
    }
    --busy_;
    if (batch.missing == 0) Complete(number);
  }

  void Complete(uint32_t number) {
    open_[number].complete = true;
    open_[number].record.complete_ns = static_cast<uint64_t>(now_);
  }

  void Take() {
    Batch& batch = open_[taken_];
    BatchRecord& record = batch.record;
    record.name.index = taken_;
    record.asked_ns = static_cast<uint64_t>(asked_);
    record.taken_ns = static_cast<uint64_t>(now_);
    const double waited = now_ - asked_;
    const double storage = std::clamp(batch.last_read - asked_, 0.0, waited);
    record.waited.storage_ns = static_cast<uint64_t>(storage);
    record.waited.decode_ns = static_cast<uint64_t>(waited - storage);
    if (taken_ == w_.converged_from()) converged_at_ = now_;
    if (taken_ > w_.converged_from()) waited_ += waited;
    asking_ = false;
    Push(now_ + w_.gap[taken_], Event::Kind::kAsk, 0);
    ++taken_;
    Open();
    const TunerSettings before = settings_;
    settings_ = controller_.Observe(record);
    if (settings_ != before) {
      if (taken_ > w_.converged_from()) ++changes_;
      Open();
    }
    if (trace_) {
      trace_->records.push_back(record);
      trace_->settings.push_back(settings_);
    }
  }

  Outcome Result() const {
    const double ns = now_ - converged_at_;
    Outcome outcome;
    outcome.seconds = ns / 1e9;
    outcome.batches_per_second = (w_.batches - 1 - w_.converged_from()) / outcome.seconds;
    outcome.waited = waited_ / ns;
    outcome.memory = memory_ / ns;
    outcome.depth = depth_ / ns;
    outcome.workers = workers_ / ns;
    outcome.reads = reads_ / ns;
    outcome.changes = changes_;
    outcome.whole_run_seconds = now_ / 1e9;
    return outcome;
  }

  Batch& BatchOf(const Request& request) { return open_[request.sample / w_.batch_size]; }

  const Workload& w_;
  Controller& controller_;
  Trace* const trace_;
  TunerSettings settings_;
  std::vector<Batch> open_;  // all batches of the run
  std::vector<Request> requests_;
  Numbers free_, ready_;
  std::vector<double> channel_free_;  // time when each is free
  std::vector<Event> events_;         // a heap, soonest first
  double now_ = 0, asked_ = 0, stalled_until_ = 0;
  bool asking_ = false;
  uint32_t opened_ = 0, taken_ = 0, in_use_ = 0;
  uint64_t claimed_ = 0;
  size_t stall_ = 0;
  int in_flight_ = 0, busy_ = 0;
  double converged_at_ = 0, waited_ = 0, memory_ = 0, depth_ = 0, workers_ = 0, reads_ = 0;
  uint32_t changes_ = 0;
};

}  // namespace

Outcome Simulate(const Workload& workload, Controller& controller, Trace* trace) {
  return Pipeline(workload, controller, trace).Run();
}

}  // namespace stoker::tuner_sim
