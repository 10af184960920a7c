// Explains why the consumer of device batches waited: the copier waited for the batch on the host,
// or the batch's copy waited for another copy.
//
//   copier: … waits for an entry │ asks the host │ has the batch │ waits for copies, issues │ …
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "core/time/stage_times.h"
#include "engine/metrics/stats.h"
#include "engine/order/batch_sequence.h"
#include "gpu/staging/device_copier.h"
#include "gpu/staging/split_batch.h"

namespace stoker {

// A copier's wait for a host batch. Nanoseconds of the monotonic clock.
struct HostWait {
  BatchName name;
  uint64_t asked_ns = 0;
  uint64_t taken_ns = 0;
  WaitCauses causes;  // of the time from asked_ns to taken_ns
};

// Divides the consumer's time from `asked_ns` to `taken_ns`: while the copier waited for a ring
// entry the cause is `other`, because the consumer held the entries; while it waited for the host,
// the host's causes; from then until all copies of the batch were issued, at `issued_ns`, `copy`. A
// pure function; for any input the sum is taken_ns - asked_ns.
WaitCauses ExplainCopyWait(const HostWait& host, uint64_t issued_ns, uint64_t asked_ns,
                           uint64_t taken_ns);

// Sums up what the consumer has waited for. Thread-safe; both sides must report batches in the same
// order.
class CopyWaits {
 public:
  struct Totals {
    uint64_t wait_ns = 0;
    WaitCauses waited;
    uint64_t consumer_ns = 0;  // time between receiving a batch and asking for the next one
    Totals& operator+=(const Totals& other);
    // Replaces the waits in `stats`, which are the copier's waits for the host.
    void ReplaceWaitsOf(LoaderStats& stats) const;
  };

  // The copier received a batch from the host.
  void AddHostWait(const HostWait& wait);

  // The consumer received a batch. Host waits of earlier batches are dropped.
  void AddDeviceWait(BatchName name, uint64_t issued_ns, uint64_t asked_ns, uint64_t taken_ns);

  // The consumer received something else: the end of an epoch, or an error.
  void AddOtherWait(uint64_t asked_ns, uint64_t taken_ns);

  // Drops pending host waits. The time until the next call is not attributed.
  void Drop();

  Totals totals() const;

 private:
  void Add(const WaitCauses& causes, uint64_t asked_ns, uint64_t taken_ns);

  mutable std::mutex mutex_;
  std::deque<HostWait> pending_;
  Totals totals_;
  uint64_t last_taken_ns_ = 0;  // 0 until a batch has been taken
};

// Calls copier.NextParts and reports the wait.
Result<SplitBatch> TakeFromCopier(DeviceCopier& copier, CopyWaits& waits,
                                  const Interrupt& interrupt);

}  // namespace stoker
