#include "gpu/staging/issue_crops.h"

#include <algorithm>
#include <span>

#include "core/batch/device_crop.h"
#include "core/result/try.h"

namespace stoker {

using decode::DeviceCrop;
using decode::kNoCrop;

namespace {

// The column with the position of each row's crop, just before the deferred operations.
size_t CropColumn(const DeviceRing& ring) { return ring.plan().host.size() - 2; }

std::span<const uint64_t> PlacesOf(const DeviceRing& ring, const RingEntry& entry) {
  return entry.host.columns()[CropColumn(ring)].as<const uint64_t>().subspan(
      static_cast<size_t>(entry.first_row), static_cast<size_t>(entry.rows));
}

}  // namespace

Result<uint64_t> CopyAroundCrops(const DeviceRing& ring, const RingEntry& entry) {
  const uint64_t row_bytes = ring.row_bytes(0);
  const auto* const from = static_cast<const uint8_t*>(entry.host.images().data) +
                           static_cast<size_t>(entry.first_row) * row_bytes;
  uint64_t copied = 0;
  const std::span<const uint64_t> places = PlacesOf(ring, entry);
  for (size_t row = 0; row < places.size(); ++row) {
    const uint64_t begin = row * row_bytes;
    while (row < places.size() && places[row] == kNoCrop) ++row;
    const uint64_t bytes = row * row_bytes - begin;
    if (bytes == 0) continue;
    TRY(ring.pieces().Copy(entry.raw + begin, from + begin, bytes, ring.copy_stream()));
    copied += bytes;
  }
  return copied;
}

decode::CropBatch CropsOf(const DeviceRing& ring, const RingEntry& entry, uint64_t first_byte) {
  const void* const places = entry.raw + ring.offset(CropColumn(ring));
  return {.bytes = entry.raw + ring.crops_offset(),
          .first_byte = first_byte,
          .crop_at = static_cast<const uint64_t*>(places),
          .samples = ring.samples(),
          .to = entry.raw,
          .row_bytes = ring.row_bytes(0),
          .rows = static_cast<uint32_t>(entry.rows)};
}

void SetMost(decode::CropBatch& batch, std::span<const uint64_t> places, const uint8_t* memory) {
  for (const uint64_t place : places) {
    if (place == kNoCrop) continue;
    const void* const at = memory + place;
    const auto* const crop = static_cast<const DeviceCrop*>(at);
    batch.most_runs = std::max(batch.most_runs, crop->runs);
    batch.most_intervals = std::max(batch.most_intervals, crop->intervals);
    batch.most_tiles = std::max(batch.most_tiles, crop->tiles);
  }
}

Status IssueCrops(const DeviceRing& ring, const RingEntry& entry) {
  // Positions count from the first part's region, but the device has only the region of its own
  // part.
  const CropRegion& crops = entry.host.crops()[entry.part];
  decode::CropBatch batch = CropsOf(ring, entry, crops.begin());
  SetMost(batch, PlacesOf(ring, entry), crops.memory());
  if (batch.most_tiles == 0) return {};
  return ring.device()->DecodeCrops(batch, ring.deferred_stream());
}

}  // namespace stoker
