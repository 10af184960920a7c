// Why the consumer of a device's batches waited for one: it was waited for itself, by the stager,
// on the host; or its copy had to wait for another one's.
//
//   the stager:  … waits for an entry │ asks the host │ has it │ waits for copies, issues │ …
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/batch_sequence.h"
#include "engine/watching/stats.h"
#include "engine/watching/wait_causes.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

// How a stager waited for a batch of the host. Nanoseconds of the monotonic clock.
struct HostWait {
  BatchName name;
  uint64_t asked_ns = 0;
  uint64_t taken_ns = 0;
  WaitCauses causes;  // of that time
};

// Of the consumer's time from `asked_ns` to `taken_ns`: what the stager waited for an entry is
// other, for the consumer held them; what it waited for the host is the host's causes; from then
// until all copies of the batch were issued, at `issued_ns`, copy. Pure arithmetic; the sum is
// taken_ns - asked_ns, whatever the numbers are.
WaitCauses ExplainStaged(const HostWait& host, uint64_t issued_ns, uint64_t asked_ns,
                         uint64_t taken_ns);

// What the consumer has waited for so far. Any thread; batches come in the same order on both
// sides.
class StagedWaits {
 public:
  struct Totals {
    uint64_t wait_ns = 0;
    WaitCauses waited;
    uint64_t consumer_ns = 0;  // between having a batch and asking for the next one
    Totals& operator+=(const Totals& other);
    // In the place of what the stager waited for on the host.
    void PutInto(LoaderStats& stats) const;
  };

  // The stager has had a batch from the host.
  void OfHost(const HostWait& wait);

  // The consumer has had one. What came before it on the host is forgotten.
  void OfDevice(BatchName name, uint64_t issued_ns, uint64_t asked_ns, uint64_t taken_ns);

  // The consumer has had something else: an epoch's end, an error.
  void OfElse(uint64_t asked_ns, uint64_t taken_ns);

  // What is on its way will not come. The time until the next call is nobody's.
  void Drop();

  Totals totals() const;

 private:
  void Add(const WaitCauses& causes, uint64_t asked_ns, uint64_t taken_ns);

  mutable std::mutex mutex_;
  std::deque<HostWait> on_the_way_;
  Totals totals_;
  uint64_t last_taken_ns_ = 0;  // 0: nobody has taken anything
};

// stager.Next, counted.
Result<DeviceBatch> TakeStaged(Stager& stager, StagedWaits& waits, const Interrupt& interrupt);

}  // namespace stoker
