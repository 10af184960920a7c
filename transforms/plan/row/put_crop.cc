#include "transforms/plan/row/put_crop.h"

#include <optional>

namespace stoker {

OnWorker ReasonOf(const Error& error) {
  if (error.code == Code::kUnimplemented) return OnWorker::kUnsupported;
  return error.code == Code::kResourceExhausted ? OnWorker::kNoRoom : OnWorker::kDamaged;
}

bool PutCrop(const CropMaker& maker, CropRegion& region, uint64_t& crop_at) {
  const std::optional<CropRegion::Slice> slice = region.Take(maker.bytes(), maker.samples());
  if (!slice) return false;
  maker.Write(slice->samples, region.memory() + slice->at);
  crop_at = slice->at;
  return true;
}

}  // namespace stoker
