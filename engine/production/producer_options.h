// Options that a Loader chooses for its producers, in addition to the user's options.
#pragma once

#include <memory>

#include "core/batch/crop_region.h"
#include "core/batch/lent_account.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/production/batches/bad_sample_log.h"
#include "engine/production/samples/sample_cache.h"
#include "gpu/backend/device.h"

namespace stoker {

struct ProducerOptions {
  // The device that slots are pinned for, those in production and `lent_batches` more. Null means
  // ordinary memory.
  std::shared_ptr<Device> pinned_for{};
  // Batches that the caller, or a copier, may hold at once; 0 means no limit.
  int lent_batches = 0;
  // Counts lent batches of all producers of a loader; null means the producer has its own.
  std::shared_ptr<LentAccount> lent{};
  // Counts the bad samples of all producers of a loader; null means none are expected.
  std::shared_ptr<BadSampleLog> bad{};
  // Keeps photographs for all producers of a loader; null means there is no cache.
  std::shared_ptr<SampleCache> cache{};
  bool one_slab = false;  // all columns of a batch lie in one block of memory
  // The plan has PlanOptions::defer_to_device, and a last column, "work", holds the deferred
  // operations.
  bool defer_to_device = false;
  // With room for crops the plan also has PlanOptions::decode_on_device, and a column "crop" before
  // the last one has the place of each row's crop, or decode::kNoCrop.
  CropRoom crops{};
};

// Returns the producer options for `options`. With to_device, the slots that a copier holds at once
// are pinned; each batch is one block of memory; and operations that would add bytes on the bus, or
// work on the host, are left to the device. InvalidArgument: LoaderOptions::to_device. Errors of
// BadSampleLog::Open and of SampleCache::Open.
Result<ProducerOptions> ProducerOptionsOf(const LoaderOptions& options);

}  // namespace stoker
