#include "transforms/plan/put_crop.h"

#include <optional>

namespace stoker {

OnWorker ReasonOf(const Error& error) {
  if (error.code == Code::kUnimplemented) return OnWorker::kUnsupported;
  return error.code == Code::kResourceExhausted ? OnWorker::kNoRoom : OnWorker::kDamaged;
}

bool PutCrop(const CropMaker& maker, CropRegion& region, uint64_t& crop_at) {
  const std::optional<CropRegion::Place> place = region.Take(maker.bytes(), maker.samples());
  if (!place) return false;
  maker.Write(place->samples, region.memory() + place->at);
  crop_at = place->at;
  return true;
}

}  // namespace stoker
