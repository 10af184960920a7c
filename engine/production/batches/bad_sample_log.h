// BadSampleLog: counts the samples of a loader that could not be used, lists them in a file, and
// ends the run if there are too many.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "core/result/sample_fault.h"
#include "core/system/descriptor.h"
#include "engine/options/bad_policy.h"

namespace stoker {

// A row whose sample could not be used.
struct BadRow {
  uint32_t row = 0;  // in the batch, counting dropped rows
  uint64_t sample = 0;
  SampleFault fault = SampleFault::kUndecodable;
  OnBad action = OnBad::kFail;
  Error error;
};

// Counts a batch when it is delivered, so that neither the counts nor the list depend on threads or
// depth. Thread-safe.
class BadSampleLog {
 public:
  // `list`: a file to which a line of JSON is appended for each bad sample; empty means none.
  // Several processes may append to one file. Errors: those of opening it. `most`: the largest
  // share of the samples that may be substituted or dropped, which is checked once kSamplesBefore
  // samples have been delivered. If it is below 1, kInARow bad samples in consecutive batches
  // without a good sample are too many at any time, because then no single sample is to blame.
  static Result<std::shared_ptr<BadSampleLog>> Open(std::string list, double most);
  static constexpr uint64_t kSamplesBefore = 1000, kInARow = 100;

  // Counts a delivered batch of `samples` samples; `bad` lists the bad ones in the order of rows. A
  // row has several entries if samples that replaced another were bad, too. `failed`: an
  // error replaced the batch.
  void Count(BatchName batch, uint64_t samples, const std::vector<BadRow>& bad, bool failed);

  // Must be called before the next batch is delivered. If there are too many bad samples, returns
  // DataLoss from then on, and the run ends. Otherwise returns the error of appending to the list,
  // until appending succeeds; no line is lost.
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
  mutable std::mutex mutex_;  // guards the members below
  uint64_t samples_ = 0;      // of batches that no error replaced
  uint64_t in_a_row_ = 0;     // bad samples in the last batches, which had no good sample
  BadCounts counts_;
  std::optional<Error> first_;  // of the first bad sample
  std::optional<Error> ended_;
  std::string lines_;  // not yet appended
  std::mutex append_;  // held while appending, which may take long; locked before mutex_
};

}  // namespace stoker
