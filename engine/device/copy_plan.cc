#include "engine/device/copy_plan.h"

#include <algorithm>

#include "core/result/try.h"
#include "transforms/plan/plan.h"

namespace stoker {

Result<CopyPlan> CopyPlanOf(const LoaderOptions& options, const ProducerOptions& producer,
                            const std::vector<ColumnSpec>& host) {
  CopyPlan copy;
  copy.host = host;
  copy.device = host;
  copy.batch_size = options.batch_size / static_cast<int64_t>(options.to_device->devices.size());
  if (const size_t chosen = options.to_device->piece_bytes; chosen != 0) copy.piece_bytes = chosen;
  if (!producer.defer_to_device) return copy;
  ASSIGN_OR_RETURN(Plan plan,
                   Plan::Compile(options.transforms, {.dtype = options.dtype,
                                                      .layout = options.layout,
                                                      .exif_orientation = options.exif_orientation,
                                                      .decode = options.decode,
                                                      .defer_to_device = true,
                                                      .limits = options.limits}));
  copy.device.pop_back();  // the deferred operations
  copy.crops = producer.crops;
  if (copy.crops.bytes != 0) copy.device.pop_back();  // the places of crops
  copy.device[0].dtype = options.dtype;
  copy.device[0].row_shape = plan.finished_shape();
  copy.has_deferred_ops = true;
  copy.has_work = true;
  DeferredOpsJob& job = copy.job;
  job.height = plan.output_size().height;
  job.width = plan.output_size().width;
  job.dtype = options.dtype;
  job.layout = options.layout;
  std::copy(plan.scale().begin(), plan.scale().end(), job.scale);
  std::copy(plan.bias().begin(), plan.bias().end(), job.bias);
  job.boxes = plan.boxes();
  job.mixes = options.mix.has_value();
  copy.has_row_before = job.mixes && options.to_device->devices.size() > 1;
  return copy;
}

}  // namespace stoker
