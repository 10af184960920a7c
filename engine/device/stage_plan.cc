#include "engine/device/stage_plan.h"

#include <algorithm>

#include "core/result/try.h"
#include "transforms/plan/plan.h"

namespace stoker {

Result<StagePlan> StagePlanOf(const LoaderOptions& options, const ProducerOptions& producer,
                              const std::vector<ColumnSpec>& host) {
  StagePlan stage;
  stage.host = host;
  stage.device = host;
  stage.batch_size = options.batch_size / static_cast<int64_t>(options.to_device->devices.size());
  if (const size_t chosen = options.to_device->piece_bytes; chosen != 0) stage.piece_bytes = chosen;
  if (!producer.defer_to_device) return stage;
  ASSIGN_OR_RETURN(Plan plan,
                   Plan::Compile(options.transforms, {.dtype = options.dtype,
                                                      .layout = options.layout,
                                                      .exif_orientation = options.exif_orientation,
                                                      .decode = options.decode,
                                                      .defer_to_device = true,
                                                      .limits = options.limits}));
  stage.device.pop_back();  // the deferred operations
  stage.crops = producer.crops;
  if (stage.crops.bytes != 0) stage.device.pop_back();  // the places of crops
  stage.device[0].dtype = options.dtype;
  stage.device[0].row_shape = plan.finished_shape();
  stage.has_deferred_ops = true;
  stage.has_work = true;
  DeferredOpsJob& job = stage.job;
  job.height = plan.output_size().height;
  job.width = plan.output_size().width;
  job.dtype = options.dtype;
  job.layout = options.layout;
  std::copy(plan.scale().begin(), plan.scale().end(), job.scale);
  std::copy(plan.bias().begin(), plan.bias().end(), job.bias);
  job.boxes = plan.boxes();
  job.mixes = options.mix.has_value();
  stage.has_row_before = job.mixes && options.to_device->devices.size() > 1;
  return stage;
}

}  // namespace stoker
