#include "engine/production/feeder.h"

#include <utility>

#include "core/time/stage_times.h"

namespace stoker {

Feeder::Feeder(const LoaderOptions& options, const Sampler& order, const std::optional<Plan>& plan,
               uint32_t run, const Neighbours& neighbours)
    : in_memory_(options.source->in_memory()),
      queue_(options, order, plan, neighbours.samples, run),
      to_(neighbours),
      samples_(neighbours.samples),
      again_(samples_.count(), IndexSet::Begin::kEmpty) {}

// ---- Reader threads

size_t Feeder::Pull(std::span<ReadRequest*> requests) {
  if (to_.lifecycle.stopped()) {
    DropAgain();  // which would count as work until the loader is closed
    return 0;
  }
  size_t pulled = PullAgain(requests);
  requests = requests.subspan(pulled);
  if (requests.empty()) return pulled;
  const WorkToken pulling = to_.memory.TryBegin();
  if (!pulling) return pulled + PullRetry(requests);
  to_.trace.Samples(samples_.reading(), samples_.ready());
  if (!in_memory_) return pulled + PullNew(requests);
  SubmitRuns();
  return pulled;
}

// Samples without bytes need no reader. Neither do those in the cache, but a worker reads them just
// before it decodes them, so that the bytes are in its core's own cache. While there are such
// samples, their requests are filled again, but not for long: other loaders, and completed reads,
// wait for this thread.
size_t Feeder::PullNew(std::span<ReadRequest*> requests) {
  size_t pulled = 0, filled = 0, kept = 0, all_kept = 0;
  do {
    filled = queue_.Fill(to_.assembler, requests.subspan(pulled));
    kept = 0;
    for (ReadRequest* read : requests.subspan(pulled, filled)) {
      const uint32_t index = SamplesInFlight::IndexOf(*read);
      if (read == &samples_[index].read) {
        samples_[index].work = to_.memory.Begin();
        if (IsInCache(index) || HasNoBytes(index)) {
          ++kept;
          SubmitUnread(index);
          continue;
        }
        samples_.SetState(index, SamplesInFlight::State::kReading);
      }
      requests[pulled++] = read;
    }
    if (filled > kept) KeepRest(SamplesInFlight::IndexOf(*requests[pulled - 1]));
    all_kept += kept;
  } while (kept != 0 && all_kept < 2 * requests.size() && !to_.lifecycle.stopped() &&
           !to_.lifecycle.ending());
  if (kept != 0) to_.reads.Wake();  // there may be more
  return pulled;
}

// A sample without images, unless it has a record.
bool Feeder::HasNoBytes(uint32_t index) const {
  return !samples_[index].has_image && samples_[index].read.length == 0;
}

void Feeder::SubmitUnread(uint32_t index) {
  samples_.EndRead();
  samples_[index].reads_in_flight = 0;
  samples_[index].read.size = 0;
  samples_[index].read.status = {};
  Submit(index);
}

bool Feeder::IsInCache(uint32_t index) {
  SampleInFlight& sample = samples_[index];
  if (to_.cache == nullptr) return false;
  to_.cache->Find(sample.read, sample.cached);
  return sample.cached.state == CachedSample::State::kKept;
}

void Feeder::SubmitRuns() {
  while (!to_.lifecycle.stopped()) {
    const std::optional<uint32_t> run = queue_.NextRun(to_.assembler);
    if (!run) return;
    samples_[*run].work = to_.memory.Begin();
    Submit(*run);
  }
}

// Replaces PullNew while samples wait: retries the first sample of the wait list, if it is this
// producer's.
size_t Feeder::PullRetry(std::span<ReadRequest*> requests) {
  std::optional<MemoryLease::Retry> retry = to_.memory.TakeRetry();
  if (!retry) return 0;
  SampleInFlight& sample = samples_[retry->sample];
  sample.work = std::move(retry->work);
  // It is read from its file and not packed, because packing takes memory, too.
  sample.cached.state = CachedSample::State::kNone;
  if (in_memory_) {
    Submit(retry->sample);
    return 0;
  }
  return PullPieces(retry->sample, requests);
}

// The work of these samples has begun already, so they do not wait for memory that others hold.
size_t Feeder::PullAgain(std::span<ReadRequest*> requests) {
  size_t pulled = 0;
  while (pulled < requests.size()) {
    const std::optional<uint32_t> index = again_.Take();
    if (!index) break;
    pulled += PullPieces(*index, requests.subspan(pulled));
  }
  return pulled;
}

size_t Feeder::PullPieces(uint32_t index, std::span<ReadRequest*> requests) {
  if (samples_[index].begun == 0) {
    samples_.BeginRead(index);
    samples_.SetState(index, SamplesInFlight::State::kReading);
  }
  const size_t pulled = queue_.FillPieces(samples_[index], requests);
  if (HasNoBytes(index)) {
    SubmitUnread(index);
    return 0;
  }
  KeepRest(index);
  return pulled;
}

// Keeps a sample some of whose pieces this call has pulled, if there was no room for others. These
// are pulled next, by this thread or another one, so no thread is woken.
void Feeder::KeepRest(uint32_t index) {
  if (samples_[index].begun == samples_[index].pieces) return;
  again_.Give(index);
  if (to_.lifecycle.ending()) DropAgain();
}

// Until its last piece arrives, the sample keeps the producer from being destroyed; a thread with
// an earlier one must touch neither the sample nor the producer after it has counted it.
void Feeder::CompleteRead(ReadRequest& read) {
  const uint32_t index = SamplesInFlight::IndexOf(read);
  SampleInFlight& sample = samples_[index];
  if (sample.pieces != 1) {
    sample.ids_being_read[sample.PieceOf(read)].store(0, std::memory_order_relaxed);
    if (!sample.Arrive(1)) return;
  }
  samples_.EndRead();
  if (sample.begun != sample.pieces) return EndCancelled(index);  // DropAgain
  Submit(index);
}

void Feeder::Submit(uint32_t index) {
  SampleTimes& times = samples_[index].path.times();
  times.read_ns = in_memory_ ? times.claimed_ns : NowNanoseconds();
  to_.workers.Add(index);
}

// ---- Samples that workers give back, and those that end when work does

void Feeder::ReadAgain(uint32_t index) {
  samples_.TrimBuffers(index, to_.memory);
  samples_[index].begun = 0;
  samples_[index].path.Claim(NowNanoseconds(), /*behind_workers=*/false);
  Requeue(index);
}

void Feeder::Substitute(uint32_t index, uint64_t substitute) {
  SampleInFlight& sample = samples_[index];
  ++sample.substitutes;
  ++sample.draws;
  queue_.SetSample(sample, substitute);
  sample.cached.state = CachedSample::State::kNone;
  ReadAgain(index);
}

// After this call the sample belongs to Pull, which reads it again, or it has ended because work is
// ending and no thread would pull it. See Lifecycle::ending.
void Feeder::Requeue(uint32_t index) {
  again_.Give(index);
  if (to_.lifecycle.ending()) {
    DropAgain();
  } else {
    to_.reads.Wake();
  }
}

// After this call the sample belongs to the wait list, or it has ended because work is ending and
// no thread would retry it.
void Feeder::Postpone(uint32_t index) {
  samples_[index].FreeBuffers();
  samples_[index].begun = 0;
  samples_[index].path.times().begun_ns = 0;
  samples_.SetState(index, SamplesInFlight::State::kPostponed);
  to_.memory.JoinWaitList(index, std::move(samples_[index].work));
  if (to_.lifecycle.ending()) DropPostponed();
}

void Feeder::DropWaiting() {
  DropPostponed();
  DropAgain();
}

// Any thread, and several at a time.
void Feeder::DropPostponed() {
  for (const uint32_t index : to_.memory.LeaveWaitList()) {
    samples_[index].work = to_.memory.Begin();
    EndCancelled(index);
  }
}

// Any thread, and several at a time. If pieces of a sample are being read, CompleteRead ends it
// with the last of these.
void Feeder::DropAgain() {
  while (again_.available() != 0) {
    const std::optional<uint32_t> index = again_.Take();
    if (!index) continue;
    SampleInFlight& sample = samples_[*index];
    if (sample.begun != 0) {
      if (!sample.Arrive(sample.pieces - sample.begun)) continue;
      samples_.EndRead();
    }
    EndCancelled(*index);
  }
}

void Feeder::EndCancelled(uint32_t index) {
  to_.finisher.End(index, 0, Error{Code::kCancelled, "stopped"}, 0);
}

}  // namespace stoker
