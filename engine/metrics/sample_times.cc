#include "engine/metrics/sample_times.h"

#include <algorithm>

namespace stoker {

namespace {

uint64_t Between(uint64_t from_ns, uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; }

}  // namespace

void WorkerPace::Begin(SampleTimes& sample, uint64_t now_ns) {
  sample.begun_ns = now_ns;
  sample.workers_since_ns = sample.read_ns;
  if (in_hand_++ == 0 && sample.read_ns > done_ns_) {
    idle_ns_ += sample.read_ns - done_ns_;
    if (idle_ns_ * 8 > sample.read_ns - busy_since_ns_) {
      busy_since_ns_ = sample.read_ns;
      idle_ns_ = 0;
    }
  } else if (busy_since_ns_ <= sample.claimed_ns) {
    sample.workers_since_ns = busy_since_ns_;
  }
}

void WorkerPace::End(SampleTimes& sample, uint64_t now_ns) {
  sample.done_ns = now_ns;
  if (sample.begun_ns == 0) return;  // the sample was given up
  done_ns_ = now_ns;
  --in_hand_;
}

void SamplePath::Claim(uint64_t now_ns, bool behind_workers) {
  if (times_.done_ns != 0) Remember();
  times_ = {.claimed_ns = now_ns, .behind_workers = behind_workers};
}

void SamplePath::Remember() {
  const SampleTimes& t = times_;
  Segment last{.from_ns = before_ns_ != 0 ? before_ns_ : t.claimed_ns, .samples = 1};
  last.decode_ns = Between(std::max(t.workers_since_ns, last.from_ns), t.done_ns);
  if (t.behind_workers) {
    last.decode_ns += Between(last.from_ns, std::min(t.claimed_ns, t.workers_since_ns));
  }
  before_ns_ = t.done_ns;
  std::move_backward(before_.begin(), before_.end() - 1, before_.end());
  before_[0] = last;
  // The two older of three segments of one size are merged into one of the next size, and so on
  // (the exponential histogram of Datar, Gionis, Indyk and Motwani, 2002).
  for (auto at = before_.begin();
       before_.end() - at > 2 && at->samples == (at + 2)->samples && at->samples != 0; ++at) {
    Segment& older = *(at + 1);
    older.from_ns = (at + 2)->from_ns;
    older.decode_ns += (at + 2)->decode_ns;
    older.samples += (at + 2)->samples;
    *std::move(at + 3, before_.end(), at + 2) = {};
  }
}

}  // namespace stoker
