// UnpackCrop, DecodeCrop and ResampleCrop are the kernels' work for one team of threads.
//
// All definitions here have internal linkage: a program may contain them twice, for the host and
// for a variant of the kernels (bench/gpu/variants), and the linker would keep only one of the two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "gpu/crops/entropy-inl.h"
#include "gpu/crops/resample-inl.h"
#include "gpu/crops/unpack-inl.h"

namespace stoker::decode {
namespace {

// Returns the part of a crop that begins at `at`. reinterpret_cast keeps the functions below from
// being constexpr for the compiler, though not for nvcc; so pointers are made here, from void.
template <typename T>
constexpr const T* At(const uint8_t* bytes, uint64_t at) {
  const void* const there = bytes + at;
  return static_cast<const T*>(there);
}

constexpr const DeviceCrop* CropOf(const CropBatch& batch, uint32_t row) {
  const uint64_t at = row < batch.rows ? batch.crop_at[row] : kNoCrop;
  return at == kNoCrop ? nullptr : At<DeviceCrop>(batch.bytes, at - batch.first_byte);
}

// The bytes of the row's crop. Precondition: the row has a crop.
constexpr const uint8_t* BytesOf(const CropBatch& batch, uint32_t row) {
  return batch.bytes + (batch.crop_at[row] - batch.first_byte);
}

// Run `run` of the row's crop, if there is one.
template <class Team>
constexpr void UnpackCrop(const Team& team, const CropBatch& batch, uint32_t row, uint32_t run,
                          const QuadWord* table, UnpackMemory& memory) {
  const DeviceCrop* const crop = CropOf(batch, row);
  if (crop == nullptr || run >= crop->runs) return;
  const uint8_t* const bytes = BytesOf(batch, row);
  uint8_t* const samples = batch.samples + crop->samples * kGroupSamples;
  void* const to = samples;
  UnpackRun(team, *crop, At<CropRun>(bytes, crop->runs_at)[run], At<uint32_t>(bytes, 0), table,
            memory, static_cast<RowOfBlock*>(to));
}

// Intervals from `first` on of the row's crop, if there is one.
template <class Team>
constexpr void DecodeCrop(const Team& team, const CropBatch& batch, uint32_t row, uint32_t first,
                          const uint8_t* order, EntropyMemory& memory) {
  const DeviceCrop* const crop = CropOf(batch, row);
  if (crop == nullptr || first >= crop->intervals) return;
  const uint8_t* const bytes = BytesOf(batch, row);
  void* const to = batch.samples + crop->samples * kGroupSamples;
  const EntropyParts parts{crop, At<uint32_t>(bytes, 0),
                           At<CropInterval>(bytes, crop->intervals_at),
                           At<CropCodes>(bytes, crop->codes_at), static_cast<RowOfBlock*>(to)};
  DecodeIntervals(team, parts, first, order, memory);
}

// The parts of the crop that begins at `bytes`. `samples` are the batch's.
constexpr CropParts PartsOf(const uint8_t* bytes, const uint8_t* samples) {
  const DeviceCrop* const crop = At<DeviceCrop>(bytes, 0);
  return {crop,
          samples + crop->samples * kGroupSamples,
          At<int32_t>(bytes, crop->rows.starts_at),
          At<int32_t>(bytes, crop->columns.starts_at),
          At<WeightPair>(bytes, crop->rows.weights_at),
          At<WeightPair>(bytes, crop->columns.weights_at)};
}

// Tile `tile` of the row's crop, if there is one.
template <class Team>
constexpr void ResampleCrop(const Team& team, const CropBatch& batch, uint32_t row, uint32_t tile,
                            TileMemory& memory) {
  const DeviceCrop* const crop = CropOf(batch, row);
  if (crop == nullptr || tile >= crop->tiles) return;
  const uint8_t* const bytes = BytesOf(batch, row);
  const CropParts parts = PartsOf(bytes, batch.samples);
  const CropTile& of_crop = At<CropTile>(bytes, crop->tiles_at)[tile];
  uint8_t* const to = batch.to + size_t{row} * batch.row_bytes;
  ResampleTile(team, parts, of_crop, memory, to);
}

}  // namespace
}  // namespace stoker::decode
