#include "transforms/plan/stage_watch.h"

#include <utility>

#include "transforms/plan/workspace.h"

namespace stoker {

StageWatch::StageWatch(Workspace& workspace, StageTimes& times)
    : workspace_(workspace), times_(times), last_(NowNanoseconds()) {
  for (ImageContext& context : workspace_.contexts) {
    context.mask_rows.Reset();
    for (ViewContext& view : context.views) {
      view.resampler.Reset();
      view.augment_ns = 0;
    }
  }
}

// Time that is neither resampling nor augmenting is decoding.
void StageWatch::Add() {
  const uint64_t now = NowNanoseconds(), passed = now - std::exchange(last_, now);
  uint64_t resampled = 0, augmented = 0;
  for (const ImageContext& context : workspace_.contexts) {
    resampled += context.mask_rows.busy_ns();
    for (const ViewContext& view : context.views) {
      resampled += view.resampler.busy_ns();
      augmented += view.augment_ns;
    }
  }
  resampled -= std::exchange(seen_.resize_ns, resampled);
  augmented -= std::exchange(seen_.augment_ns, augmented);
  times_.resize_ns += resampled;
  times_.augment_ns += augmented;
  times_.decode_ns += passed - resampled - augmented;
}

}  // namespace stoker
