// The memory that batches live in: slabs of one size, mapped once and used again and again. Small
// columns do not lie in the slab: each batch has fresh memory for them, which may stay with the
// consumer when the slab goes home.
//
// Two accounts. Slots in production count as working memory: their bytes are reserved from the
// budget when the pool is made. A slot that the consumer holds is lent: it has a limit of its own,
// or none, and a fresh slot takes its place in production. Slots that come home beyond those in
// production and kSpareSlots more are given to the system, so that a consumer who once held many
// does not keep them mapped for good.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/column_spec.h"
#include "core/lent_account.h"
#include "core/memory_budget.h"
#include "core/pinning.h"
#include "core/result.h"

namespace stoker {

// One batch's memory and what is known of its content.
struct Slot {
  std::vector<Column> columns;  // shape[0] is set for each batch, and data of small columns
  std::vector<std::shared_ptr<void>> own_memory;  // by column: of small ones; null in the slab
  std::vector<uint64_t> sample_ids;               // capacity: batch size; first `rows` valid
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;
  int numa_node = 0;    // where its pages should be
  bool pinned = false;  // what lies in the slab

  void* Row(size_t column, int64_t row) const;
};

class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  struct Options {
    std::vector<ColumnSpec> columns;
    int64_t batch_size = 0;
    int working_slots = 0;  // reserved from the budget; pinned slots: the most there may be
    int lent_slots = 0;     // how many the consumer may hold at once; 0: any number
    // Where it is given, lent slots are counted in it, and its limit holds in place of lent_slots.
    std::shared_ptr<LentAccount> lent{};
    // Where it is given: pins the slots in production and so many lent ones.
    std::shared_ptr<Pinning> pinning{};
    int pinned_lent_slots = 0;
    bool one_slab =
        false;  // small columns lie in the slab too: one copy brings a batch to a device
  };
  static constexpr int kSpareSlots = 4;

  // Whether a column has memory of its own: not the first one, and either at most 64 KiB for a
  // whole batch or a sixteenth of the first one. (The first column is what slots are for.)
  static bool IsSmall(const std::vector<ColumnSpec>& columns, size_t column, int64_t batch_size);

  // Bytes of one batch with these columns, small ones included: those in the slab start on a page
  // of their own each.
  static uint64_t SlotBytes(const std::vector<ColumnSpec>& columns, int64_t batch_size,
                            bool one_slab = false);

  // `memory` is resized to the working slots, and with their number. ResourceExhausted, with what
  // was wanted, when its budget has no room for them; Pinning::Pin's errors. Slabs that are not
  // pinned are mapped when first used; the budget outlives the pool's use in production (Retire).
  static Result<std::shared_ptr<SlotPool>> Make(Options options, Reservation memory);
  ~SlotPool();

  // From now on so many in production; those above that are there already stay until they are
  // delivered, and count. False, and unchanged, when the budget has no room. Pinned slots stay
  // pinned and reserved: precondition there: at most Options::working_slots.
  [[nodiscard]] bool SetWorkingSlots(int slots);

  // A slot to fill; null when so many are in production already or the system has no memory.
  // Each is given back by Abandon or Lend before the pool goes.
  Slot* Acquire();
  // An acquired slot that was not delivered returns to the free ones.
  void Abandon(Slot* slot);
  // An acquired and filled slot becomes a batch. Precondition: CanLend().
  Batch Lend(Slot* slot);
  bool CanLend() const;

  // Production is over: gives the reservation back to the budget and the free slabs to the system.
  // Batches that are still held stay valid; each gives its slab to the system when it returns.
  void Retire();

  const LentAccount& account() const { return *options_.lent; }
  int lent() const;    // slots that the consumer holds, by batches and owners
  int mapped() const;  // slabs: in production, lent and free
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  const std::vector<ColumnSpec>& columns() const { return options_.columns; }

 private:
  struct Slab;
  class PinnedSlabs;

  explicit SlotPool(Options options);
  void Return(Slot* slot);  // a lent slot comes home; any thread
  Status PinSlabs();
  bool Reserve();  // under mutex_: for the slots in production, and those that may be
  uint64_t SlabBytes() const;
  std::unique_ptr<Slab> MapSlab() const;
  std::unique_ptr<Slab> SlabIn(uint8_t* memory) const;
  bool GiveOwnMemory(Slot& slot) const;
  // Under mutex_: puts the slab among the free ones; hands it back when it is one too many.
  std::unique_ptr<Slab> Keep(Slot* slot);
  int MostFree() const;  // slabs that are kept for later; under mutex_

  const Options options_;
  std::vector<uint64_t> own_bytes_;  // by column: of small ones; 0 in the slab
  const uint64_t slot_bytes_;
  uint64_t pinned_bytes_ = 0;
  const pid_t process_;                      // that made it
  Reservation reservation_;                  // of the slots in production
  mutable std::mutex mutex_;                 // taken once or twice a batch
  std::vector<std::unique_ptr<Slab>> free_;  // last in, first out: the warmest memory first
  int working_slots_;                        // at most
  int working_ = 0;                          // in production
  int lent_ = 0;
  bool retired_ = false;
};

}  // namespace stoker
