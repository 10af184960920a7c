// The memory of batches: slabs of one size, mapped once and reused. Small columns are not in the
// slab: each batch has new memory for them, which may stay with the consumer when the slab returns.
//
// There are two accounts. Slots in production count as working memory: their bytes are reserved
// from the budget as their number is set. A slot that the consumer holds is lent: a separate limit,
// if any, applies to it, and a new slot replaces it in production. Returned slots beyond those in
// production plus kSpareSlots are unmapped, so that a consumer that once held many does not keep
// them mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/crop_region.h"
#include "core/batch/lent_account.h"
#include "core/memory/memory_budget.h"
#include "core/memory/pinning.h"
#include "core/result/result.h"

namespace stoker {

// The memory of one batch, and what describes its content.
//
// While a batch is made, a ragged column has room for the most objects in each row, so that rows
// are written at any time and in any order: shape[0] is rows × max_objects, and offsets[r + 1] is
// the number of objects of row r. Compact() makes it what Column says. Where the numbers are known
// before, rows have places of these sizes instead (ColumnSpec::room), and full ones are not moved.
//
// Rows that have the size of the batch's largest image (ColumnSpec::height_at) have room for the
// largest of all, until SetRowShape(). Rows that are as long as the batch's longest one (padded
// columns) lie one after another from the start, after SetLongest().
struct Slot {
  std::vector<Column> columns;        // shape[0] is set for each batch, and data of small columns
  std::vector<uint32_t> max_objects;  // by column, as ColumnSpec
  std::vector<size_t> row_bytes;      // by column, as ColumnSpec; of padded ones, SetLongest's
  std::optional<size_t> placed;       // the ragged column with ColumnSpec::room
  std::vector<size_t> padded;         // the dense columns with it
  // By row: where its place begins in that column, in objects; and where the last place ends.
  std::vector<uint64_t> starts;
  std::vector<std::shared_ptr<void>> own_memory;  // by column, for small ones; null in the slab
  std::vector<uint64_t> sample_ids;               // capacity: batch size; first `rows` valid
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;
  uint64_t start = 0;
  uint64_t position = 0;          // of row 0 in the epoch's order
  std::weak_ptr<Slot> viewed;     // the lease that SlotPool::View returned, while anyone keeps it
  int numa_node = 0;              // preferred for its pages
  bool pinned = false;            // whether the memory in the slab is pinned
  std::vector<CropRegion> crops;  // after the columns; empty unless devices decode

  BatchName name() const { return {epoch, index, start}; }
  // Sets the number of rows, and the shapes. Objects are not counted yet.
  void SetRows(int64_t count);
  // Sets the number of objects of all rows of the padded columns, and their shapes.
  void SetLongest(uint32_t objects);
  // Preconditions of the functions below: Compact has not been called since SetRows, `starts` is
  // set if there is a placed column, and SetLongest was called if there are padded ones. Row: it is
  // another column than the placed one.
  void* Row(size_t column, int64_t row) const;

  // Removes these rows from the batch; the others keep their order.
  void DropRows(std::vector<uint32_t> dropped);

  // The number of objects that a row has in a ragged column. Different rows may be written at the
  // same time.
  int64_t& Objects(size_t column, int64_t row) const { return columns[column].offsets[row + 1]; }
  // The place of a row in a ragged column.
  void* Placed(size_t column, int64_t row) const;
  // Whether the rows of a column have room for the objects that they were expected to have.
  bool has_room() const { return placed || !padded.empty(); }
  // The objects that a row has room for in that column. Preconditions: has_room(), and no row was
  // dropped.
  uint64_t RoomOf(int64_t row) const {
    if (!placed) return static_cast<uint64_t>(columns[padded[0]].shape[1]);
    return starts[static_cast<size_t>(row) + 1] - starts[static_cast<size_t>(row)];
  }
  // Moves the objects of ragged columns together. Called once for each batch, when all rows are
  // written and before any function of the program has the batch.
  void Compact();
  // Says what shape the rows have, which are now one after another without gaps. Called once for
  // each batch, as Compact is.
  void SetRowShape(size_t column, std::span<const int64_t> row_shape);

  // Copies a string into a row of a column that owns its strings; its bytes are outside the budget.
  // Different rows may be written at the same time. On ResourceExhausted (the system has no memory)
  // the row is empty.
  Status SetString(size_t column, int64_t row, std::string_view string) const;

 private:
  size_t StartOf(size_t column, int64_t row) const;  // of a ragged column's row, in objects
};

class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  struct Options {
    std::vector<ColumnSpec> columns;
    int64_t batch_size = 0;
    int working_slots = 0;  // reserved from the budget; with pinned slots, the maximum
    int lent_slots = 0;     // limit on the slots that the consumer holds; 0 means none
    // If set, lent slots are counted here, and its limit replaces lent_slots.
    std::shared_ptr<LentAccount> lent{};
    // If set, pins the slots in production and this many lent ones, or says why not (not_pinned).
    std::shared_ptr<Pinning> pinning{};
    int pinned_lent_slots = 0;
    // Small columns are in the slab too, so that one copy brings a batch to a device. Columns that
    // own strings still have memory of their own.
    bool one_slab = false;
    CropRoom crops{};  // requires one_slab
  };
  static constexpr int kSpareSlots = 4;

  // Whether a column has memory of its own: it is not the first one, and owns its strings, or takes
  // at most 64 KiB per batch or a sixteenth of the first one. (Slots exist for the first column.)
  static bool IsSmall(const std::vector<ColumnSpec>& columns, size_t column, int64_t batch_size);

  // Bytes of one batch with these columns, small ones included; each column in the slab starts on
  // its own page, and so does each region of crops.
  static uint64_t SlotBytes(const std::vector<ColumnSpec>& columns, int64_t batch_size,
                            bool one_slab = false, const CropRoom& crops = {});

  // Resizes `memory` to the bytes of the working slots, and again whenever their number changes.
  // ResourceExhausted, with wanted_bytes, if its budget has no room for them; FailedPrecondition if
  // Pinning returns it. Slabs that are not pinned are mapped on first use; the budget must outlive
  // production (Retire).
  static Result<std::shared_ptr<SlotPool>> Make(Options options, Reservation memory);
  ~SlotPool();

  // Sets how many slots may be in production. Surplus slots stay, and count, until they are
  // delivered. Returns false, and changes nothing, if the budget has no room. Pinned slots stay
  // pinned and reserved; for them `slots` may not exceed Options::working_slots.
  [[nodiscard]] bool SetWorkingSlots(int slots);

  // Returns a slot to fill; null if the maximum number is in production or the system has no
  // memory. Each slot must be returned by Abandon or Lend before the pool is destroyed.
  Slot* Acquire();
  // Returns an acquired and filled slot as a batch, before it is delivered, for functions of the
  // program that may keep its memory through Batch::Owner. The delivered batch shares that memory;
  // a slot that is abandoned meanwhile counts as lent until its memory is released.
  Batch View(Slot* slot);
  // Returns an acquired slot that was not delivered.
  void Abandon(Slot* slot);
  // Makes an acquired and filled slot a batch. Precondition: CanLend().
  Batch Lend(Slot* slot);
  bool CanLend() const;

  // Ends production: releases the reservation and unmaps the free slabs. Batches that are still
  // held stay valid; each unmaps its slab when it returns.
  void Retire();

  const LentAccount& account() const { return *options_.lent; }
  int lent() const;    // slots held by the consumer, through batches and owners
  int mapped() const;  // slabs in production, lent and free
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t pinning_ns() const { return pinning_ns_; }  // time that pinning took, or its attempt
  // Why slots that should be pinned are pageable instead; empty if they are pinned or need not be.
  const std::string& not_pinned() const { return not_pinned_; }
  const std::vector<ColumnSpec>& columns() const { return options_.columns; }

 private:
  struct Slab;
  class PinnedSlabs;

  struct Lease;

  explicit SlotPool(Options options);
  std::shared_ptr<Slot> LeaseOn(Slot* slot);  // a new one, or that of View
  void Return(Slot* slot);                    // returns a lent slot; any thread
  Status PinSlabs();
  bool pins() const { return pinned_bytes_ != 0; }
  // Under mutex_: resizes the reservation to the larger of the limit and the slots in production.
  // False, and unchanged, if the budget has no room.
  bool Reserve();
  uint64_t SlabBytes() const;
  std::unique_ptr<Slab> MapSlab() const;
  std::unique_ptr<Slab> SlabIn(uint8_t* memory) const;
  bool GiveOwnMemory(Slot& slot) const;
  // Under mutex_: adds the slab to the free ones, or returns it if there are enough.
  std::unique_ptr<Slab> Keep(Slot* slot);
  int MaxFree() const;  // the number of free slabs to keep; under mutex_

  const Options options_;
  std::vector<uint64_t> own_bytes_;  // by column, for small ones; 0 in the slab
  const uint64_t slot_bytes_;
  uint64_t pinned_bytes_ = 0;
  uint64_t pinning_ns_ = 0;
  std::string not_pinned_;
  const pid_t process_;                      // the creating process
  Reservation reservation_;                  // of the slots in production
  mutable std::mutex mutex_;                 // locked once or twice per batch
  std::vector<std::unique_ptr<Slab>> free_;  // last in, first out, so that the memory is warm
  int working_slots_;                        // the limit
  int working_ = 0;                          // in production
  int lent_ = 0;
  bool retired_ = false;
};

}  // namespace stoker
