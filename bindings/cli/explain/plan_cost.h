// Measures the cost of a plan, for `stoker explain`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/core_time.h"
#include "core/result.h"
#include "core/stage_times.h"
#include "io/sources/source.h"
#include "transforms/plan/explain.h"
#include "transforms/plan/plan.h"

namespace stoker {

struct PlanCost {
  uint64_t images = 0;   // measured
  uint64_t refused = 0;  // could not be read or decoded
  std::string first_refusal;
  StageTimes stages;                   // of all images
  std::vector<uint64_t> transform_ns;  // of each transform that is not fused
  uint64_t work_ns = 0;                // of all images, with what is no stage
  CoreTime clocked;                    // for sampled periods: how much of the time there was a core
  std::string warning;                 // of the source; empty: none
  SkippedFiles skipped;                // by the source
};

// Reads up to `images` evenly spaced images of the source, with their entry points, and applies the
// plan to each `rounds` times on this thread, as a worker does, after one round that is not
// counted. `seed`: the seed of random transforms. Cancelled if `keep_going` returns false.
Result<PlanCost> MeasurePlan(const SampleSource& source, const Plan& plan, uint64_t images,
                             int rounds, uint64_t seed,
                             const std::function<bool(uint64_t done, uint64_t total)>& keep_going);

// `mix`: null if batches are not mixed. `cost`: null if nothing was measured.
std::string PlanText(const Plan& plan, const BatchMix* mix, const PlanCost* cost);
std::string PlanJson(const Plan& plan, const BatchMix* mix, const PlanCost* cost);

}  // namespace stoker
