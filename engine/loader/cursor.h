// Cursor: one iteration over a SharedLoader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/batch.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/shared_loader.h"

namespace stoker {

// One iteration. One thread at a time, the destructor included.
class Cursor {
 public:
  ~Cursor();
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // As Loader::Next; an empty batch at the end, again and again.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // Batches that Next has passed, good ones and errors that took the place of one. An error that
  // passed none (Cancelled, a limit) leaves the next Next where this one was.
  uint64_t passed() const { return passed_; }

  // What the last Next that passed a batch waited, by cause.
  const WaitCauses& waited() const { return waited_; }

  // O(1), reads nothing. `index` may be batches_per_epoch(): the end. The epoch counter stays.
  Status Seek(BatchName batch);

  // Where the next Next goes on; {epoch, batches_per_epoch()} at the end. None while no epoch is
  // decided, and once batches were appended.
  std::optional<BatchName> position() const;

  // From the first call on, and until Seek: exactly the appended batches, in the order of the
  // calls; Next is empty when there are none left.
  Status Append(BatchName batch);

 private:
  friend class SharedLoader;
  Cursor(std::shared_ptr<SharedLoader> shared, std::optional<uint64_t> epoch, bool repeat);
  Status FindEngine();

  const std::shared_ptr<SharedLoader> shared_;
  const bool repeat_;
  std::optional<uint64_t> epoch_;
  uint64_t index_ = 0;
  uint64_t passed_ = 0;
  WaitCauses waited_;
  bool appended_ = false;
  bool took_epoch_ = false;  // from the counter
  SharedLoader::Lease engine_;
};

}  // namespace stoker
