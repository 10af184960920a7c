// The memory that batches live in: slabs of one size, allocated once and used again and again.
//
// Two accounts. Slots in production count as working memory: their bytes are reserved from the
// budget when the pool is made. A slot that the consumer holds is lent: it has a limit of its own,
// and a fresh slot takes its place in production.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/core/batch.h"
#include "engine/core/memory_budget.h"
#include "engine/core/result.h"

namespace stoker {

// What one row of a column is.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> row_shape;  // without the batch dimension; {} for a scalar

  size_t row_bytes() const;
};

// One batch's memory and what is known of its content.
struct Slot {
  std::vector<Column> columns;       // data pointers fixed; shape[0] set for each batch
  std::vector<uint64_t> sample_ids;  // capacity: batch size; first `rows` valid
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;
  int numa_node = 0;  // where its pages are; always 0 for now

  void* Row(size_t column, int64_t row) const;
};

class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  struct Options {
    std::vector<ColumnSpec> columns;
    int64_t batch_size = 0;
    int working_slots = 0;  // reserved from the budget
    int lent_slots = 0;     // how many the consumer may hold at once
  };

  // Bytes of one slot for these columns: each column starts on a page of its own.
  static uint64_t SlotBytes(const std::vector<ColumnSpec>& columns, int64_t batch_size);

  // ResourceExhausted, naming the minimum, when the budget has no room for the working slots. The
  // slabs are mapped when first used; `budget` outlives the pool's use in production (Retire).
  static Result<std::shared_ptr<SlotPool>> Make(Options options, MemoryBudget& budget);
  ~SlotPool();

  // A slot to fill; null when working_slots are in production already or the system has no memory.
  Slot* Acquire();
  // An acquired slot that was not delivered returns to the free ones.
  void Abandon(Slot* slot);
  // An acquired and filled slot becomes a batch. Precondition: CanLend().
  Batch Lend(Slot* slot);
  bool CanLend() const;

  // Production is over: gives the reservation back to the budget and the free slabs to the system.
  // Batches that are still held stay valid; each gives its slab to the system when it returns.
  void Retire();

  int lent() const;
  uint64_t slot_bytes() const { return slot_bytes_; }

 private:
  friend class Batch;
  struct Slab;

  explicit SlotPool(Options options);
  void Return(Slot* slot);  // a lent slot comes home; any thread
  std::unique_ptr<Slab> MapSlab() const;
  void Unmap(Slot* slot);  // under mutex_

  const Options options_;
  const uint64_t slot_bytes_;
  Reservation reservation_;   // of the slots in production
  mutable std::mutex mutex_;  // taken once or twice a batch
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<Slot*> free_;  // last in, first out: the warmest memory first
  int working_ = 0;
  int lent_ = 0;
  bool retired_ = false;
};

}  // namespace stoker
