#include "transforms/plan/workspace.h"

#include <memory>
#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"

namespace stoker {

Status ViewContext::ApplySteps() {
  uint64_t last = NowNanoseconds();
  for (const DrawnStep& step : drawn.steps) {
    TRY(augmenter.Apply(step.step));
    const uint64_t now = NowNanoseconds();
    transform_ns[step.transform] += now - std::exchange(last, now);
  }
  return {};
}

std::span<const ShapeMasks::Image> ViewContext::ImagesOf(const DrawnSample& of, ImageSize viewed) {
  images.clear();
  for (OnCanvas& each : std::span(canvas).first(on_canvas)) {
    each.drawn.steps.resize(each.steps);
    each.drawn.steps.insert(each.drawn.steps.end(), of.steps.begin(), of.steps.end());
    images.push_back({&each.drawn, each.size, each.masks, each.first,
                      static_cast<uint32_t>(each.kept.size()), each.kept});
  }
  if (images.empty()) {
    images.push_back({&of, viewed, to.objects->masks, 0, to.objects->count});
  }
  return images;
}

uint64_t MemoryOf(const Workspace& workspace) { return workspace.memory.used(); }

// Replaces the contexts by new ones and keeps their counts.
void FreeMemoryOf(Workspace& workspace) {
  workspace.paths = PathsOf(workspace);
  workspace.displacements = Displacements(workspace.memory);
  for (ImageContext& context : workspace.contexts) {
    ImageContext fresh(workspace.limits, workspace.transforms, workspace.memory,
                       workspace.displacements);
    for (size_t i = 0; i < fresh.views.size(); ++i) {
      fresh.views[i].transform_ns = std::move(context.views[i].transform_ns);
    }
    context = std::move(fresh);
  }
}

DecodePaths PathsOf(const Workspace& workspace) {
  DecodePaths paths = workspace.paths;
  for (const ImageContext& context : workspace.contexts) {
    paths += context.decoder.paths();
    paths.scaled += context.scaled;
    paths.scalable += context.scalable;
    paths.on_device += context.on_device;
    paths.no_end_marker += context.no_end_marker;
    for (size_t i = 0; i < kOnWorkerReasons; ++i) paths.on_worker[i] += context.on_worker[i];
  }
  return paths;
}

std::vector<uint64_t> TransformTimesOf(const Workspace& workspace) {
  std::vector<uint64_t> times;
  const auto& [a, b] = workspace.contexts;
  for (size_t view = 0; view < a.views.size(); ++view) {
    for (size_t i = 0; i < a.views[view].transform_ns.size(); ++i) {
      times.push_back(a.views[view].transform_ns[i] + b.views[view].transform_ns[i]);
    }
  }
  return times;
}

std::unique_ptr<Workspace, void (*)(Workspace*)> Plan::MakeWorkspace(MemoryBudget& budget) const {
  std::vector<size_t> transforms;
  transforms.reserve(views());
  for (size_t i = 0; i < views(); ++i) transforms.push_back(view(i).transforms_.size());
  return {new Workspace(options_.limits, std::move(transforms), budget),
          [](Workspace* workspace) { delete workspace; }};
}

}  // namespace stoker
