#include "gpu/staging/issue_batch.h"

#include <span>

#include "core/batch/crop_region.h"
#include "core/result/try.h"
#include "gpu/staging/issue_crops.h"

namespace stoker {

namespace {

// Whether the columns and the crops, which are null if there are none, are in one slab, at the
// ring's offsets, so that one copy transfers them all.
bool InOneSlab(const DeviceRing& ring, const RingEntry& entry, const CropRegion* crops) {
  const Batch& host = entry.host;
  if (entry.rows != host.rows() || ring.plan().has_row_before) return false;
  const std::span<const Column> columns = host.columns();
  const auto* first = static_cast<const uint8_t*>(columns[0].data);
  for (size_t c = 1; c < columns.size(); ++c) {
    if (host.Owner(c) != host.Owner(0) || columns[c].data != first + ring.offset(c)) return false;
  }
  return crops == nullptr || crops->memory() + crops->begin() == first + ring.crops_offset();
}

bool HasRowBefore(const DeviceRing& ring, const RingEntry& entry) {
  return ring.plan().has_row_before && entry.rows > 0;
}

// The row of the host batch that the job mixes the entry's first row with.
int64_t RowBefore(const RingEntry& entry) {
  return (entry.first_row == 0 ? entry.host.rows() : entry.first_row) - 1;
}

Result<uint64_t> Copy(const DeviceRing& ring, const RingEntry& entry) {
  Device& device = *ring.device();
  const std::span<const Column> columns = entry.host.columns();
  uint64_t copied = 0;
  const auto copy = [&](const void* from, uint64_t offset, uint64_t bytes) {
    copied += bytes;
    return ring.pieces().Copy(entry.raw + offset, from, bytes, ring.copy_stream());
  };
  const auto copy_rows = [&](size_t c, int64_t first, int64_t rows, int64_t to) {
    const size_t row_bytes = ring.row_bytes(c);
    return copy(
        static_cast<const uint8_t*>(columns[c].data) + static_cast<size_t>(first) * row_bytes,
        ring.offset(c) + static_cast<size_t>(to) * row_bytes,
        static_cast<size_t>(rows) * row_bytes);
  };
  Status s = ring.timed() ? device.Record(entry.begun, ring.copy_stream()) : Status();
  const CropRegion* const crops =
      ring.plan().crops.bytes != 0 ? &entry.host.crops()[entry.part] : nullptr;
  if (s.ok() && crops != nullptr) {
    ASSIGN_OR_RETURN(copied, CopyAroundCrops(ring, entry));
  }
  const size_t first = crops != nullptr ? 1 : 0;  // of the columns that are copied as they are
  if (s.ok() && InOneSlab(ring, entry, crops)) {
    const size_t last = columns.size() - 1;
    const auto rows = static_cast<size_t>(entry.rows);
    const uint64_t end = crops != nullptr ? ring.crops_offset() + crops->bytes()
                                          : ring.offset(last) + rows * ring.row_bytes(last);
    s = copy(columns[first].data, ring.offset(first), end - ring.offset(first));
  } else {
    if (s.ok() && crops != nullptr) {
      s = copy(crops->memory() + crops->begin(), ring.crops_offset(), crops->bytes());
    }
    for (size_t c = 0; s.ok() && c < columns.size(); ++c) {
      if (c >= first) s = copy_rows(c, entry.first_row, entry.rows, 0);
      // The job reads only these two.
      const bool read_before = c == 0 || c + 1 == columns.size();
      if (s.ok() && read_before && HasRowBefore(ring, entry)) {
        s = copy_rows(c, RowBefore(entry), 1, entry.rows);
      }
    }
  }
  if (s.ok()) s = device.Record(entry.copied, ring.copy_stream());
  if (!s.ok()) return s.error();
  return copied;
}

// Makes later work of the deferred stream, which overwrites the delivered columns, wait for those
// who still read them.
Status AwaitUsers(const DeviceRing& ring, RingEntry& entry) {
  Device& device = *ring.device();
  if (entry.untracked) TRY(device.Wait(ring.deferred_stream(), entry.all_done));
  for (size_t i = 0; i < entry.used; ++i) {
    TRY(device.Wait(ring.deferred_stream(), entry.uses[i].consumed));
  }
  entry.untracked = false;
  entry.used = 0;
  return {};
}

// Makes the delivered columns: the first one by the kernel, the others by copies on the device.
// Crops are decoded to `raw`, which the consumer does not see, so that need not wait for it.
Status Finish(const DeviceRing& ring, RingEntry& entry) {
  Device& device = *ring.device();
  Status s = device.Wait(ring.deferred_stream(), entry.copied);
  if (s.ok() && ring.plan().crops.bytes != 0) s = IssueCrops(ring, entry);
  if (s.ok()) s = AwaitUsers(ring, entry);
  if (s.ok()) s = device.ApplyDeferred(JobOf(ring, entry), ring.deferred_stream());
  for (size_t c = 1; s.ok() && c < entry.columns.size(); ++c) {
    s = device.Copy(entry.columns[c].data, entry.raw + ring.offset(c),
                    static_cast<size_t>(entry.rows) * ring.row_bytes(c), ring.deferred_stream());
  }
  return s;
}

}  // namespace

DeferredOpsJob JobOf(const DeviceRing& ring, const RingEntry& entry) {
  const CopyPlan& plan = ring.plan();
  DeferredOpsJob job = plan.job;
  job.from = entry.raw;
  job.to = entry.columns[0].data;
  job.rows = entry.rows + (HasRowBefore(ring, entry) ? 1 : 0);
  job.work = plan.has_work ? entry.raw + ring.offset(plan.host.size() - 1) : nullptr;
  return job;
}

Result<uint64_t> IssueBatch(const DeviceRing& ring, RingEntry& entry) {
  Device& device = *ring.device();
  const bool finishes = ring.plan().has_deferred_ops;
  TRY(device.Wait(ring.copy_stream(), entry.arrived));
  if (!finishes) TRY(AwaitUsers(ring, entry));  // the two streams are one
  ASSIGN_OR_RETURN(const uint64_t copied, Copy(ring, entry));
  if (finishes) TRY(Finish(ring, entry));
  TRY(device.Record(entry.arrived, ring.deferred_stream()));
  return copied;
}

}  // namespace stoker
