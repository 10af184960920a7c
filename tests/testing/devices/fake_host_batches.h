// FakeHostBatches: host batches for tests of stages after a loader. Each has unique bytes, and
// returned memory is overwritten at once, so that late reads are detected.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/batch/batch.h"
#include "gpu/staging/device_copier.h"

namespace stoker::testing {

struct HostBatchesOptions {
  std::vector<ColumnSpec> columns = {{"image", DType::kU8, {4, 8, 3}}, {"label", DType::kI64, {}}};
  int64_t batch_size = 16;
  int64_t epoch_rows = 16 * 5 + 3;       // so the last batch of an epoch is short; no rows: none
  bool one_slab = true;                  // otherwise each column except the first has its own
                                         // memory
  size_t zeros = SIZE_MAX;               // a column whose bytes are all 0, as operations that do
                                         // nothing
  std::shared_ptr<Device> pinned_for{};  // the memory is pinned for it; null means it is not
  // Called before a batch, or the end of an epoch, is made; its error replaces it. May wait, and
  // return Cancelled when `interrupt` says so, which replaces nothing.
  std::function<Status(uint64_t epoch, uint64_t index, const Interrupt& interrupt)> before;
};

class FakeHostBatches final : public HostBatches {
 public:
  explicit FakeHostBatches(HostBatchesOptions options = {});
  ~FakeHostBatches() override;

  Result<Batch> Next(const Interrupt& interrupt) override;

  int lent() const;      // batches that have not been returned
  int max_lent() const;  // so far
  uint64_t batches_per_epoch() const;
  int64_t RowsIn(uint64_t index) const;

 private:
  struct Home;  // where memory returns to; outlives lent batches

  const HostBatchesOptions options_;
  const std::shared_ptr<Home> home_;
  uint64_t epoch_ = 0, index_ = 0;
};

// Fills a column of a batch with its bytes.
std::vector<uint8_t> BytesOf(size_t column, uint64_t epoch, uint64_t index, size_t bytes);

}  // namespace stoker::testing
