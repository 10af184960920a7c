// BadSamples: what is done about the samples of one producer that cannot be used, and when they
// count.
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
    kWhenTaken,      // a batch that is taken has been delivered
    kWhenDelivered,  // RecordDelivered says so, for one batch after the other
  };

  // `order` must outlive it.
  BadSamples(BadPolicy policy, std::shared_ptr<BadSampleLog> log, const Sampler& order,
             Counts counts);

  // Returns what is done about `sample`, which failed with `error`, and after how many
  // `substitutes` in its row; none if the sample is not to blame. An error of too many substitutes
  // says so.
  std::optional<BadRow> Judge(uint64_t sample, uint32_t row, uint32_t substitutes,
                              Error& error) const;

  // Must be called for each batch that was taken, in order. `bad`: its bad rows, by row; `failed`:
  // an error was taken instead of the batch.
  void RecordTaken(BatchName batch, const std::vector<BadRow>& bad, bool failed);
  // Must be called for each batch, in the same order, if Counts::kWhenDelivered.
  void RecordDelivered();
  // The batches that were taken and not delivered never will be.
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
