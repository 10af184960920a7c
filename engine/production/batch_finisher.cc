#include "engine/production/batch_finisher.h"

#include <utility>

#include "core/time/stage_times.h"

namespace stoker {

namespace {

// Returns the cost of filling one row.
RowCost CostOf(const SampleTimes& times, uint32_t reads_in_flight, uint64_t work_ns) {
  RowCost cost{.work_ns = work_ns};
  if (times.begun_ns != 0) cost.longest_ns = times.done_ns - times.begun_ns;
  if (reads_in_flight == 0) return cost;
  cost.read_ns = times.read_ns - times.claimed_ns;
  cost.reads = 1;
  cost.reads_in_flight = reads_in_flight;
  return cost;
}

}  // namespace

void BatchFinisher::End(uint32_t index, uint64_t work_ns, Status status, int worker) {
  SampleInFlight& sample = samples_[index];
  const WorkToken work = std::move(sample.work);  // ends after everything else in this function
  samples_.TrimBuffers(index, memory_);
  const RowClaim claim = sample.claim;
  const SamplePath path = sample.path;
  const RowCost cost = CostOf(path.times(), sample.reads_in_flight, work_ns);
  samples_.SetState(index, SamplesInFlight::State::kNone);
  samples_.Give(index);
  if (samples_.waiting() && (wakes_early_ || !samples_.TooFewFree())) reads_.Wake();
  const Assembler::BatchState state = assembler_.RowsDone(claim, cost, std::move(status));
  if (state != Assembler::BatchState::kRowsMissing) Finish(claim, path, state, worker);
}

void BatchFinisher::Finish(const RowClaim& claim, const SamplePath& last_row,
                           Assembler::BatchState state, int worker) {
  if (state == Assembler::BatchState::kWhole) assembler_.DropRows(claim);
  const bool failed = state == Assembler::BatchState::kFailed || claim.slot->rows == 0;
  BatchCost spent;
  if (decoder_.mixes() && !failed) {
    const TraceSpan span(trace_, "stoker.mix", claim.slot->epoch, claim.slot->index);
    spent.mix_ns = decoder_.Mix(*claim.slot, worker);
  }
  if (decoder_.pads() && state == Assembler::BatchState::kWhole) {
    const TraceSpan span(trace_, "stoker.pad", claim.slot->epoch, claim.slot->index);
    spent.mix_ns = decoder_.Pad(*claim.slot, worker);  // instead of mixing
  }
  if (state == Assembler::BatchState::kWhole) claim.slot->Compact();
  if (maps_ == nullptr) return assembler_.Complete(claim, last_row, spent);
  spent.whole_ns = NowNanoseconds();
  maps_->Give({claim, last_row, spent, failed});
}

}  // namespace stoker
