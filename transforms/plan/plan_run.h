// PlanRun: applies a plan to a succession of samples, two of them interleaved, which is faster than
// one after the other.
//
//   PlanRun run(plan, workspace, times);
//   const auto fill = [&] { while (run.has_room() && (image = pull())) run.Begin(*image); };
//   for (fill(); run.busy(); fill()) {
//     if (rows = run.Advance()) push(*rows);
//   }
#pragma once

#include <cstdint>
#include <optional>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/result/result.h"
#include "core/time/stage_times.h"
#include "transforms/plan/encoded_image.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/stage_watch.h"

namespace stoker {

// A piece whose rows are written. On failure their content is unspecified, and the error has an
// offset if known, but no file.
struct FinishedRows {
  uint32_t tag = 0;    // of its EncodedImage
  uint32_t piece = 0;  // likewise
  // The piece whose image is the cause of an error: this one, or another one on its row's canvas.
  uint32_t failed = 0;
  ImageSize viewed;  // the image's size as viewed; 0 × 0 if its header could not be read
  Status status;
};

// Not thread-safe; a workspace has one run at a time. A run that is destroyed early gives up the
// samples that it has begun.
class PlanRun {
 public:
  // All references must outlive the run.
  PlanRun(const Plan& plan, Workspace& workspace, StageTimes& times);
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  // Whether another sample may be begun. Finished rows are returned first.
  bool has_room() const;
  // Memory that the next sample's crop index may be read into, and that is the sample's until its
  // rows are finished. It counts in the workspace's budget. Precondition: has_room().
  GrowingBuffer& crop_index();
  // Precondition: has_room().
  void Begin(const EncodedImage& image);

  // Whether there are samples whose rows are not finished.
  bool busy() const;
  // Decodes a part of each sample. If the rows of one are finished then, returns them: they are
  // visible to other threads, and the time is added to `times`. Precondition: busy().
  std::optional<FinishedRows> Advance();

  // Keeps the time that has passed since Advance returned out of `times`.
  void SkipTime();

 private:
  ImageContext* FindFree() const;
  ImageContext* FindFinished() const;
  FinishedRows End(ImageContext& context);

  const Plan& plan_;
  Workspace& workspace_;
  StageWatch watch_;
};

}  // namespace stoker
