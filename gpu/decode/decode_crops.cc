#include "gpu/decode/decode_crops.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "core/try.h"
#include "gpu/decode/crop_kernels-inl.h"

namespace stoker {

namespace decode {
namespace {

// Threads that take turns.
struct HostTeam {
  uint32_t threads;
  uint32_t size() const { return threads; }
  template <typename F>
  void Each(const F& f) const {
    for (uint32_t thread = 0; thread < threads; ++thread) f(thread);
  }
};

constexpr QuadTable kQuadTable = MakeQuadTable();
constexpr CoefficientOrder kOrder = MakeCoefficientOrder();

// What the teams of a kernel have in their shared memory.
struct alignas(kGroupSamples) TeamMemory {
  UnpackMemory run;
  EntropyMemory interval;
  TileMemory tile;
};

void DecodeWith(TeamMemory& memory, const CropBatch& batch) {
  for (uint32_t row = 0; row < batch.rows; ++row) {
    for (uint32_t run = 0; run < batch.most_runs; ++run) {
      UnpackCrop(HostTeam{kUnpackThreads}, batch, row, run, kQuadTable.data(), memory.run);
    }
    for (uint32_t first = 0; first < batch.most_intervals; first += kEntropyThreads) {
      DecodeCrop(HostTeam{kEntropyThreads}, batch, row, first, kOrder.data(), memory.interval);
    }
    for (uint32_t tile = 0; tile < batch.most_tiles; ++tile) {
      ResampleCrop(HostTeam{1}, batch, row, tile, memory.tile);
    }
  }
}

}  // namespace
}  // namespace decode

void DecodeCropsOnHost(const decode::CropBatch& batch) {
  DecodeWith(*std::make_unique<decode::TeamMemory>(), batch);
}

Status HostCropDecoder::Decode(uint8_t* bytes, uint8_t* row) {
  using decode::TeamMemory;
  void* const there = bytes;
  auto& crop = *static_cast<decode::DeviceCrop*>(there);
  crop.samples = 0;  // of its own scratch memory, behind the team's
  TRY(memory_.Grow(sizeof(TeamMemory) + size_t{crop.groups} * decode::kGroupSamples));
  const uint64_t at = 0;
  DecodeWith(*new (memory_.data()) TeamMemory, {.bytes = bytes,
                                                .crop_at = &at,
                                                .samples = memory_.data() + sizeof(TeamMemory),
                                                .to = row,
                                                .rows = 1,
                                                .most_runs = crop.runs,
                                                .most_intervals = crop.intervals,
                                                .most_tiles = crop.tiles});
  return {};
}

}  // namespace stoker
