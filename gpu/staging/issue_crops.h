// Issues the work that decodes the crops of a batch on a device.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/device_crop.h"
#include "core/result/result.h"
#include "gpu/staging/device_ring.h"

namespace stoker {

// Copies the entry's rows of entry.host's first column that the host has decoded, on the copy
// stream. Returns the copied bytes.
Result<uint64_t> CopyAroundCrops(const DeviceRing& ring, const RingEntry& entry);

// The crops of the entry's rows on the device, which begin `first_byte` bytes into the regions of
// the batch, without the sizes of the largest crop, which SetMost sets. `memory`: the regions on
// the host, into which `places` are offsets.
decode::CropBatch CropsOf(const DeviceRing& ring, const RingEntry& entry, uint64_t first_byte);
void SetMost(decode::CropBatch& batch, std::span<const uint64_t> places, const uint8_t* memory);

// Decodes the crops that were copied to the rows of `entry.raw`, on the deferred stream.
Status IssueCrops(const DeviceRing& ring, const RingEntry& entry);

}  // namespace stoker
