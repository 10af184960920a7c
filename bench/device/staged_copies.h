// Measures copies to a device: bare ones, and those of batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

// In bytes per second: medians of several measurements, which take turns so that what else happens
// on the machine hits all of them. Copies of either kind are of random bytes, as large as a batch,
// and issued one after another; the time between two is not counted for batches. Bare copies read
// the same block again and again, and those of batches what workers have just written.
struct CopyRates {
  // Bare copies, by the memory they are made from (HostMemory).
  double pageable = 0, registered = 0, registered_huge = 0, host_alloc = 0;
  // Copies of batches: in the copier's pieces, in pieces of 32 MiB, and whole.
  double batches = 0, batches_32mib = 0, batches_whole = 0;
  // The memory of one loader of `batches`.
  uint64_t pinned_bytes = 0;
  double pinning_s = 0;
  std::optional<std::string> memory_warning;  // the memory of batches is not what it should be
};
// Makes `rounds` of `batches` batches of each kind.
Result<CopyRates> MeasureCopies(const std::shared_ptr<Device>& device, uint32_t mib, int rounds,
                                uint64_t batches);

// Batches that are copied while a step of fixed duration uses an earlier one.
struct CopiesBehindSteps {
  double step_ms = 0;
  double idle_ms = 0;  // the device's time between two steps
  double copy_ms = 0;  // of a batch
  double hidden_at_least = 0;
};
Result<CopiesBehindSteps> MeasureBehindSteps(const std::shared_ptr<Device>& device, uint32_t mib,
                                             uint64_t steps);

}  // namespace stoker
