#include "gpu/issue_batch.h"

#include <span>

#include "gpu/issue_crops.h"

namespace stoker {

namespace {

// Whether all columns are in one slab, at the ring's offsets, so that one copy transfers them all.
bool InOneSlab(const DeviceRing& ring, const Batch& host) {
  const std::span<const Column> columns = host.columns();
  const auto* first = static_cast<const uint8_t*>(columns[0].data);
  for (size_t c = 1; c < columns.size(); ++c) {
    if (host.Owner(c) != host.Owner(0) || columns[c].data != first + ring.offset(c)) return false;
  }
  return true;
}

Result<uint64_t> Copy(const DeviceRing& ring, const StagedBatch& entry) {
  Device& device = *ring.device();
  const std::span<const Column> columns = entry.host.columns();
  const auto rows = static_cast<uint64_t>(entry.host.rows());
  uint64_t copied = 0;
  const auto copy = [&](const void* from, uint64_t offset, uint64_t bytes) {
    copied += bytes;
    return ring.pieces().Copy(entry.raw + offset, from, bytes, ring.copy_stream());
  };
  Status s = ring.timed() ? device.Record(entry.begun, ring.copy_stream()) : Status();
  if (s.ok() && ring.plan().crops.bytes != 0) {
    Result<uint64_t> parts = CopyAroundCrops(ring, entry);
    if (!parts.ok()) return parts;
    copied = *parts;
  } else if (s.ok() && InOneSlab(ring, entry.host)) {
    const size_t last = columns.size() - 1;
    s = copy(columns[0].data, 0, ring.offset(last) + rows * ring.row_bytes(last));
  } else {
    for (size_t c = 0; s.ok() && c < columns.size(); ++c) {
      s = copy(columns[c].data, ring.offset(c), rows * ring.row_bytes(c));
    }
  }
  if (s.ok()) s = device.Record(entry.copied, ring.copy_stream());
  if (!s.ok()) return s.error();
  return copied;
}

// Makes the delivered columns: the first one by the kernel, the others by copies on the device.
Status Finish(const DeviceRing& ring, const StagedBatch& entry) {
  Device& device = *ring.device();
  const StagePlan& plan = ring.plan();
  DeferredOpsJob job = plan.job;
  job.from = entry.raw;
  job.to = entry.columns[0].data;
  job.rows = entry.host.rows();
  job.work = plan.has_work ? entry.raw + ring.offset(plan.host.size() - 1) : nullptr;
  Status s = device.Wait(ring.deferred_stream(), entry.copied);
  if (s.ok() && plan.crops.bytes != 0) s = DecodeCrops(ring, entry);
  if (s.ok()) s = device.ApplyDeferred(job, ring.deferred_stream());
  for (size_t c = 1; s.ok() && c < entry.columns.size(); ++c) {
    s = device.Copy(entry.columns[c].data, entry.raw + ring.offset(c),
                    static_cast<uint64_t>(job.rows) * ring.row_bytes(c), ring.deferred_stream());
  }
  return s;
}

}  // namespace

Result<uint64_t> IssueBatch(const DeviceRing& ring, const StagedBatch& entry) {
  Result<uint64_t> copied = Copy(ring, entry);
  if (!copied.ok()) return copied;
  Status s = ring.plan().has_deferred_ops ? Finish(ring, entry) : Status();
  if (s.ok()) s = ring.device()->Record(entry.arrived, ring.deferred_stream());
  if (!s.ok()) return s.error();
  return copied;
}

}  // namespace stoker
