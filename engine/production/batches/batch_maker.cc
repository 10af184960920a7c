#include "engine/production/batches/batch_maker.h"

#include "gpu/staging/split_batch.h"
#include "gpu/staging/stager.h"

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

StagerStats BatchMaker::StageStats() const { return {}; }

}  // namespace stoker
