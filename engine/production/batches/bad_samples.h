// BadSamples: how the unusable samples of one producer are handled, and when they count.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/options/bad_policy.h"
#include "engine/order/sampler.h"
#include "engine/production/batches/bad_sample_log.h"

namespace stoker {

// Each sample that cannot be used gets one action, and counts when its batch is delivered.
// Thread-safe.
class BadSamples {
 public:
  enum class Counts : uint8_t {
    kWhenTaken,      // when its batch is taken
    kWhenDelivered,  // when RecordDelivered is called for its batch, in order
  };

  // `order` must outlive it.
  BadSamples(BadPolicy policy, std::shared_ptr<BadSampleLog> log, const Sampler& order,
             Counts counts);

  // Returns the action for `sample`, which failed with `error` after `substitutes` in its row;
  // nullopt if the sample is not to blame. The error says when there were too many substitutes.
  std::optional<BadRow> Judge(uint64_t sample, uint32_t row, uint32_t substitutes,
                              Error& error) const;

  // Must be called for each batch that was taken, in order. `bad`: its bad rows, by row; `failed`:
  // an error was taken instead of the batch.
  void RecordTaken(BatchName batch, const std::vector<BadRow>& bad, bool failed);
  // Must be called for each batch, in the same order, if Counts::kWhenDelivered.
  void RecordDelivered();
  // Forgets the batches that were taken and will never be delivered.
  void DropUndelivered();

 private:
  struct Undelivered {
    BatchName batch;
    std::vector<BadRow> bad;
    bool failed = false;
  };

  const BadPolicy policy_;
  const std::shared_ptr<BadSampleLog> log_;  // of all producers of a loader
  const Sampler& order_;
  const Counts counts_;
  std::mutex mutex_;                     // a leaf
  std::deque<Undelivered> undelivered_;  // under mutex_
};

}  // namespace stoker
