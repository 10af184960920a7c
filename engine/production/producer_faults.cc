// Producer, continued: samples that cannot be used.
#include <string>
#include <utility>

#include "core/time/stage_times.h"
#include "engine/production/producer.h"
#include "engine/production/read_feed.h"

namespace stoker {

bool Producer::Forgive(uint32_t index, uint64_t work_ns, Error& error, int worker) {
  if (ending_) return false;
  SampleInFlight& sample = samples_[index];
  const RowTicket& ticket = sample.ticket;
  const std::optional<BadRow> bad =
      bad_.Judge(sample.read.sample, ticket.row, sample.substitutes, error);
  if (!bad) return false;
  assembler_.AddBadRow(ticket, *bad);
  if (bad->action == OnBad::kFail) return false;
  if (bad->action == OnBad::kDrop) {
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

}  // namespace stoker
