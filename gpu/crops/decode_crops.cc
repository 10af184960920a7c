#include "gpu/crops/decode_crops.h"

#include <cstdint>
#include <memory>

#include "gpu/crops/crop_kernels-inl.h"

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
  template <typename F>
  void EachUnawaited(const F& f) const {
    Each(f);
  }
};

constexpr QuadTable kQuadTable = MakeQuadTable();
constexpr CoefficientOrder kOrder = MakeCoefficientOrder();

}  // namespace
}  // namespace decode

void DecodeCropsOnHost(const decode::CropBatch& batch) {
  const auto run_memory = std::make_unique<decode::UnpackMemory>();
  const auto interval_memory = std::make_unique<decode::EntropyMemory>();
  const auto tile_memory = std::make_unique<decode::TileMemory>();
  for (uint32_t row = 0; row < batch.rows; ++row) {
    for (uint32_t run = 0; run < batch.most_runs; ++run) {
      UnpackCrop(decode::HostTeam{decode::kUnpackThreads}, batch, row, run,
                 decode::kQuadTable.data(), *run_memory);
    }
    for (uint32_t first = 0; first < batch.most_intervals; first += decode::kEntropyThreads) {
      DecodeCrop(decode::HostTeam{decode::kEntropyThreads}, batch, row, first,
                 decode::kOrder.data(), *interval_memory);
    }
    for (uint32_t tile = 0; tile < batch.most_tiles; ++tile) {
      ResampleCrop(decode::HostTeam{1}, batch, row, tile, *tile_memory);
    }
  }
}

}  // namespace stoker
