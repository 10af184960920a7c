// BadSampleLog: counts the samples of a loader that could not be used, lists them in a file, and
// ends the run if there are too many.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/descriptor.h"
#include "core/result.h"
#include "core/sample_fault.h"
#include "engine/loader/bad_policy.h"

namespace stoker {

// A row whose sample could not be used.
struct BadRow {
  uint32_t row = 0;  // in the batch, as if none were dropped
  uint64_t sample = 0;
  SampleFault fault = SampleFault::kUndecodable;
  OnBad action = OnBad::kFail;
  Error error;
};

// A batch counts when it is delivered, so that neither counts nor list depend on threads or depth.
// Thread-safe.
class BadSampleLog {
 public:
  // `list`: a file that a line of JSON is appended to for each bad sample; empty: none. Several
  // processes may append to one file. Errors: those of opening it. `most`: the share of the samples
  // that may be substituted or dropped, once kSamplesBefore have been delivered. Below 1, so many
  // as kInARow in batches that have no good sample are too many at any time: then no sample is to
  // blame.
  static Result<std::shared_ptr<BadSampleLog>> Open(std::string list, double most);
  static constexpr uint64_t kSamplesBefore = 1000, kInARow = 100;

  // Counts a batch that is delivered, which has this many samples; these were bad, in the order of
  // rows. A row has several if samples that took the place of another were bad, too. `failed`: an
  // error replaced the batch.
  void Count(BatchName batch, uint64_t samples, const std::vector<BadRow>& bad, bool failed);

  // To be asked before the next batch is delivered. DataLoss, from then on, if there are too many:
  // the run ends. The error of appending to the list, until that succeeds; nothing is lost.
  Status Check();

  BadCounts counts() const;

 private:
  BadSampleLog(std::string list, Descriptor file, double most);
  void CountRows(BatchName batch, uint64_t samples, const std::vector<BadRow>& bad, bool failed);
  void CountRow(const BadRow& last);
  Status Append();
  Error TooMany(std::string what) const;

  const std::string list_;
  const Descriptor file_;
  const double most_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t samples_ = 0;      // of batches that no error replaced
  uint64_t in_a_row_ = 0;     // of them, in the last batches without a good sample
  BadCounts counts_;
  std::string first_;  // the message of the first one
  std::optional<Error> ended_;
  std::string lines_;  // not yet appended
  std::mutex append_;  // held while appending, which may take long; taken first
};

}  // namespace stoker
