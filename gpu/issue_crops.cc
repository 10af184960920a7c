#include "gpu/issue_crops.h"

#include <algorithm>
#include <span>

#include "core/device_crop.h"
#include "core/try.h"

namespace stoker {

using decode::DeviceCrop;
using decode::kNoCrop;

namespace {

// The column of the places of rows' crops: the one before the deferred operations.
size_t CropColumn(const DeviceRing& ring) { return ring.plan().host.size() - 2; }

std::span<const uint64_t> PlacesOf(const DeviceRing& ring, const Batch& host) {
  return host.columns()[CropColumn(ring)].as<const uint64_t>();
}

}  // namespace

Result<uint64_t> CopyAroundCrops(const DeviceRing& ring, const StagedBatch& entry) {
  const auto* const from = static_cast<const uint8_t*>(entry.host.images().data);
  uint64_t copied = 0;
  const auto copy = [&](uint64_t begin, uint64_t end) {
    copied += end - begin;
    return ring.pieces().Copy(entry.raw + begin, from + begin, end - begin, ring.copy_stream());
  };
  const std::span<const uint64_t> places = PlacesOf(ring, entry.host);
  const uint64_t row_bytes = ring.row_bytes(0);
  for (size_t row = 0; row < places.size(); ++row) {
    const size_t begin = row;
    while (row < places.size() && places[row] == kNoCrop) ++row;
    if (row > begin) TRY(copy(begin * row_bytes, row * row_bytes));
  }
  TRY(copy(ring.offset(1), ring.crops_offset() + entry.host.crops().bytes()));
  return copied;
}

Status IssueCrops(const DeviceRing& ring, const StagedBatch& entry) {
  const std::span<const uint64_t> places = PlacesOf(ring, entry.host);
  const void* const there = entry.raw + ring.offset(CropColumn(ring));
  decode::CropBatch batch{.bytes = entry.raw + ring.crops_offset(),
                          .crop_at = static_cast<const uint64_t*>(there),
                          .samples = ring.samples(),
                          .to = entry.raw,
                          .row_bytes = ring.row_bytes(0),
                          .rows = static_cast<uint32_t>(places.size())};
  for (const uint64_t place : places) {
    if (place == kNoCrop) continue;
    const void* const at = entry.host.crops().memory() + place;
    const auto* const crop = static_cast<const DeviceCrop*>(at);
    batch.most_runs = std::max(batch.most_runs, crop->runs);
    batch.most_intervals = std::max(batch.most_intervals, crop->intervals);
    batch.most_tiles = std::max(batch.most_tiles, crop->tiles);
  }
  if (batch.most_tiles == 0) return {};
  return ring.device()->DecodeCrops(batch, ring.deferred_stream());
}

}  // namespace stoker
