// What a Loader settles for its producers, beside the options of its user.
#pragma once

#include <memory>

#include "core/lent_account.h"
#include "core/result.h"
#include "engine/loader/options.h"
#include "gpu/device.h"

namespace stoker {

struct ProducerOptions {
  // Slots are pinned for it, those in production and `lent_batches` more. Null: ordinary memory.
  std::shared_ptr<Device> pinned_for{};
  int lent_batches = 0;  // how many may be held at once; 0: no limit
  // Of all producers of a loader together; null: one of its own.
  std::shared_ptr<LentAccount> lent{};
  bool one_slab = false;  // all columns of a batch lie in one piece of memory
  // Transformed images are as PlanOptions::finish_on_device has them, and a last column, "work",
  // says what is left to do.
  bool finish_on_device = false;
};

// Where batches go to a device: slots are pinned, as many as a stager holds at once; a batch lies
// in one piece; and what spares bytes on the way, or the host work, is left to the device.
// InvalidArgument: LoaderOptions::to_device.
Result<ProducerOptions> ProducerOptionsOf(const LoaderOptions& options);

}  // namespace stoker
