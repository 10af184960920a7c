// SoakModel: computes what each batch of a loader must be, without the engine, from the options,
// the files and the list of bad files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "tests/testing/storage/fake_reader.h"
#include "transforms/plan/plan.h"

namespace stoker::testing {

// The bad samples, by id.
using Faults = std::map<uint64_t, SampleFault>;

struct ExpectedRow {
  uint64_t sample = 0;
  uint64_t position = 0;
};

struct ExpectedBatch {
  bool fails = false;  // an error takes its place
  std::vector<ExpectedRow> rows;
  uint64_t substituted = 0, dropped = 0;
};

class SoakModel {
 public:
  // The references must outlive it. Photographs on `disk`, or several a sample, whether they are
  // read or a source is called for them, or rows in memory without transforms; without a batch mix.
  SoakModel(const LoaderOptions& options, const FakeDisk& disk, const Faults& faults);

  uint64_t batches_per_epoch() const { return sampler_.batches_per_epoch(); }
  ExpectedBatch At(BatchName batch) const;

  // Returns "" if the batch is as expected, otherwise the difference. Decodes `checked` of its rows
  // again.
  std::string Differs(const Batch& batch, const ExpectedBatch& expected, uint64_t checked);

 private:
  void Settle(uint64_t epoch, uint64_t position, uint64_t sample, ExpectedBatch& batch) const;
  Status MakeRow(uint64_t epoch, const ExpectedRow& expected);
  Status MakePiece(const ByteRange& range, uint64_t epoch, const ExpectedRow& expected,
                   const OutputRows& to);
  std::string DifferentRow(const Batch& batch, size_t row, const ExpectedRow& expected);

  const LoaderOptions& options_;
  const FakeDisk& disk_;
  const Faults& faults_;
  const Sampler sampler_;
  const std::optional<Plan> plan_;  // none: rows are copied
  MemoryBudget budget_{uint64_t{1} << 40};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_{nullptr, nullptr};
  std::vector<uint8_t> row_, padded_;
  std::vector<std::vector<uint8_t>> other_rows_;  // of further views, or pieces
  uint64_t checks_ = 0;
};

}  // namespace stoker::testing
