#include "engine/production/batches/bad_samples.h"

#include <string>
#include <utility>

namespace stoker {

BadSamples::BadSamples(BadPolicy policy, std::shared_ptr<BadSampleLog> log, const Sampler& order,
                       Counts counts)
    : policy_(policy), log_(std::move(log)), order_(order), counts_(counts) {}

std::optional<BadRow> BadSamples::Judge(uint64_t sample, uint32_t row, uint32_t substitutes,
                                        Error& error) const {
  const std::optional<SampleFault> fault = FaultOf(error);
  if (!fault) return std::nullopt;
  OnBad action = policy_[*fault];
  if (action == OnBad::kSubstitute && substitutes == Sampler::kMostSubstitutes) {
    // Samples with as few tokens may be few. A batch without the row is within its budget, too.
    if (order_.options().tokens != nullptr) return BadRow{row, sample, *fault, OnBad::kDrop, error};
    error.cause += " (nor could the " + std::to_string(Sampler::kMostSubstitutes) +
                   " samples before it, for which it was a substitute, be used)";
    action = OnBad::kFail;
  }
  return BadRow{row, sample, *fault, action, error};
}

void BadSamples::RecordTaken(BatchName batch, const std::vector<BadRow>& bad, bool failed) {
  if (counts_ == Counts::kWhenTaken) return log_->Count(batch, order_.RowsIn(batch), bad, failed);
  const std::lock_guard lock(mutex_);
  undelivered_.push_back({batch, bad, failed});
}

void BadSamples::RecordDelivered() {
  Undelivered first;
  {
    const std::lock_guard lock(mutex_);
    first = std::move(undelivered_.front());
    undelivered_.pop_front();
  }
  log_->Count(first.batch, order_.RowsIn(first.batch), first.bad, first.failed);
}

void BadSamples::DropUndelivered() {
  const std::lock_guard lock(mutex_);
  undelivered_.clear();
}

}  // namespace stoker
