#include "engine/production/batches/batch_maker.h"

#include "gpu/staging/device_copier.h"
#include "gpu/staging/split_batch.h"

namespace stoker {

Result<Batch> BatchMaker::Next(const Interrupt& /*interrupt*/) {
  return Error{Code::kFailedPrecondition, "batches go to a device"};
}

Result<SplitBatch> BatchMaker::NextOnDevices(const Interrupt& /*interrupt*/) {
  return Error{Code::kFailedPrecondition, "batches stay on the host"};
}

Status BatchMaker::Append(BatchName /*batch*/) {
  return Error{Code::kFailedPrecondition, "batches go to a device"};
}

DeviceCopyStats BatchMaker::CopyStats() const { return {}; }

}  // namespace stoker
