#include "engine/device/stage_plan.h"

#include <algorithm>
#include <utility>

#include "core/try.h"
#include "transforms/plan/plan.h"

namespace stoker {

Result<LoaderOptions> ForDevice(LoaderOptions options, std::shared_ptr<Device> device,
                                int buffers) {
  if (device == nullptr) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "device is null",
                 .advice = "Open one with Device::Open"};
  }
  TRY(Stager::CheckBuffers(buffers));
  options.device = std::move(device);
  options.one_slab = true;
  options.finish_on_device =
      !options.transforms.empty() && (options.dtype != DType::kU8 || options.mix.has_value());
  // One for each copy on its way, and the next. That many are pinned; nobody counts them, for a
  // stager holds no more.
  options.lent_batches = buffers + 1;
  options.lent = std::make_shared<LentAccount>(0);
  return options;
}

Result<StagePlan> StagePlanOf(const LoaderOptions& options, const std::vector<ColumnSpec>& host) {
  StagePlan stage;
  stage.host = host;
  stage.device = host;
  stage.batch_size = options.batch_size;
  if (!options.finish_on_device) return stage;
  Result<Plan> plan =
      Plan::Compile(options.transforms, {.dtype = options.dtype,
                                         .layout = options.layout,
                                         .exif_orientation = options.exif_orientation,
                                         .finish_on_device = true,
                                         .limits = options.limits});
  if (!plan.ok()) return std::move(plan).error();
  stage.device.pop_back();  // the work that is left
  stage.device[0].dtype = options.dtype;
  stage.device[0].row_shape = plan->finished_shape();
  stage.finishes = true;
  stage.has_work = true;
  FinishJob& job = stage.job;
  job.height = plan->output_size().height;
  job.width = plan->output_size().width;
  job.dtype = options.dtype;
  job.layout = options.layout;
  std::copy(plan->scale().begin(), plan->scale().end(), job.scale);
  std::copy(plan->bias().begin(), plan->bias().end(), job.bias);
  job.boxes = plan->boxes();
  job.mixes = options.mix.has_value();
  return stage;
}

}  // namespace stoker
