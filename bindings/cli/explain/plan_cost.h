// Measures the cost of a plan, for `stoker explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bindings/cli/text/text_layout.h"
#include "core/result/result.h"
#include "core/time/core_time.h"
#include "core/time/stage_times.h"
#include "io/source/source.h"
#include "transforms/plan/explain.h"
#include "transforms/plan/plan.h"

namespace stoker {

struct PlanCost {
  uint64_t images = 0;   // measured
  uint64_t refused = 0;  // could not be read or decoded
  std::string first_refusal;
  StageTimes stages;                   // of all images
  std::vector<uint64_t> transform_ns;  // of each transform that is not fused
  uint64_t work_ns = 0;                // of all images, including time outside the stages
  CoreTime clocked;                    // sampled: how much of the time it had a core
  std::string warning;                 // of the source; empty means none
  SkippedFiles skipped;                // by the source
};

// The extent of a measurement.
struct PlanWork {
  uint64_t images = 0;  // at most
  int rounds = 1;
  uint64_t seed = 0;               // of random transforms
  uint64_t until_ns = UINT64_MAX;  // of NowNanoseconds(): one image and one round are enough then
};

// Reads images of the source, evenly spaced, with their entry points, and applies the plan to each
// `rounds` times on this thread, as a worker does, after one round that is not counted. Asks
// `keep_going` before each read and each round of some images; Cancelled if it returns false.
// Unimplemented for samples with masks or other further images.
Result<PlanCost> MeasurePlan(const SampleSource& source, const Plan& plan, const PlanWork& work,
                             const std::function<bool(uint64_t done, uint64_t total)>& keep_going);

// `mix`: null if batches are not mixed. `cost`: null if nothing was measured.
std::string PlanText(const Plan& plan, const BatchMix* mix, const PlanCost* cost,
                     const cli::PageWidth& width = {});
std::string PlanJson(const Plan& plan, const BatchMix* mix, const PlanCost* cost);

}  // namespace stoker
