// Producer, continued: samples that cannot be used.
#include <string>
#include <utility>

#include "core/time/stage_times.h"
#include "engine/production/producer.h"
#include "engine/production/read_feed.h"

namespace stoker {

bool Producer::Forgive(uint32_t index, uint64_t work_ns, Error& error, int worker) {
  const std::optional<SampleFault> fault = FaultOf(error);
  if (!fault || ending_) return false;
  SampleInFlight& sample = samples_[index];
  OnBad action = options_.on_bad[*fault];
  if (action == OnBad::kSubstitute && sample.substitutes == Sampler::kMostSubstitutes) {
    error.cause += " (nor could the " + std::to_string(Sampler::kMostSubstitutes) +
                   " samples before it, for which it was a substitute, be used)";
    action = OnBad::kFail;
  }
  assembler_->AddBadRow(sample.ticket,
                        {sample.ticket.row, sample.read.sample, *fault, action, error});
  if (action == OnBad::kFail) return false;
  if (action == OnBad::kDrop) {
    End(index, work_ns, {}, worker);
  } else {
    Substitute(index);
  }
  return true;
}

void Producer::Substitute(uint32_t index) {
  SampleInFlight& sample = samples_[index];
  TrimBuffer(sample.read.buffer);
  sample.path.Claim(NowNanoseconds(), /*behind_workers=*/false);
  feed_.SetSample(sample, sampler_.SubstituteFor(sample.draw.epoch, sample.draw.position,
                                                 sample.substitutes++));
  sample.cached.state = CachedSample::State::kNone;
  PutBack(index);
}

// The cache has lost the sample.
void Producer::ReadFromFile(uint32_t index) {
  SampleInFlight& sample = samples_[index];
  TrimBuffer(sample.read.buffer);
  sample.path.Claim(NowNanoseconds(), /*behind_workers=*/false);
  PutBack(index);
}

// After this call the sample belongs to Pull, which reads it again, or it has ended because work
// ends: nobody would pull it. When one thread sets ending_ while another gives a sample, at least
// one of the two sees what the other did.
void Producer::PutBack(uint32_t index) {
  substitutes_.Give(index);
  if (ending_) {
    DropSubstitutes();
  } else {
    reads_.Wake();
  }
}

// Gives the reader the samples that take the place of others. Their work has begun already, so they
// do not wait for memory that others hold.
size_t Producer::PullSubstitutes(std::span<ReadRequest*> requests) {
  size_t pulled = 0;
  while (pulled < requests.size()) {
    const std::optional<uint32_t> index = substitutes_.Take();
    if (!index) break;
    samples_.BeginRead(*index);
    samples_.SetPlace(*index, SamplesInFlight::Place::kReading);
    requests[pulled++] = &samples_[*index].read;
  }
  return pulled;
}

// Any thread, and several at a time.
void Producer::DropSubstitutes() {
  while (substitutes_.available() != 0) {
    const std::optional<uint32_t> index = substitutes_.Take();
    if (index) End(*index, 0, Error{Code::kCancelled, "stopped"}, 0);
  }
}

void Producer::CountBad(BadOfBatch bad) {
  if (!counts_later_) {
    bad_->Count(bad.batch, sampler_.RowsIn(bad.batch), bad.rows, bad.failed);
    return;
  }
  const std::lock_guard lock(uncounted_mutex_);
  uncounted_.push_back(std::move(bad));
}

void Producer::CountDelivered() {
  BadOfBatch bad;
  {
    const std::lock_guard lock(uncounted_mutex_);
    bad = std::move(uncounted_.front());
    uncounted_.pop_front();
  }
  bad_->Count(bad.batch, sampler_.RowsIn(bad.batch), bad.rows, bad.failed);
}

void Producer::DropUncounted() {
  const std::lock_guard lock(uncounted_mutex_);
  uncounted_.clear();
}

}  // namespace stoker
