#include "transforms/plan/put_crop.h"

namespace stoker {

namespace {

OnWorker ReasonOf(const Error& error) {
  if (error.code == Code::kUnimplemented) return OnWorker::kUnsupported;
  return error.code == Code::kResourceExhausted ? OnWorker::kNoRoom : OnWorker::kDamaged;
}

}  // namespace

std::optional<OnWorker> PutCrop(const Status& planned, const CropMaker& maker, CropRegion& region,
                                uint64_t& crop_at) {
  if (!planned) return ReasonOf(planned.error());
  const std::optional<CropRegion::Place> place = region.Take(maker.bytes(), maker.samples());
  if (!place) return OnWorker::kNoRoom;
  maker.Write(place->samples, region.memory() + place->at);
  crop_at = place->at;
  return std::nullopt;
}

}  // namespace stoker
