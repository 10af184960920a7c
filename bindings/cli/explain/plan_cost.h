// What a plan costs: `stoker explain`.
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
  uint64_t images = 0;   // that were measured
  uint64_t refused = 0;  // that could not be read or decoded
  std::string first_refusal;
  StageTimes stages;                   // of all of them
  std::vector<uint64_t> transform_ns;  // of each transform, where it is not fused
  CoreTime clocked;                    // some stretches of that: how much of it there was a core
  std::string warning;                 // of the source; empty: none
  SkippedFiles skipped;                // by the source
};

// Reads up to `images` of the source, evenly spread, with what its index has of them, and applies
// the plan to each `rounds` times on this thread, as a worker does; the first time is not counted.
// `seed`: of random transforms. Cancelled when `keep_going` says no.
Result<PlanCost> MeasurePlan(const SampleSource& source, const Plan& plan, uint64_t images,
                             int rounds, uint64_t seed,
                             const std::function<bool(uint64_t done, uint64_t total)>& keep_going);

// `mix`: null where batches are not mixed. `cost`: null where nothing was measured.
std::string PlanText(const Plan& plan, const BatchMix* mix, const PlanCost* cost);
std::string PlanJson(const Plan& plan, const BatchMix* mix, const PlanCost* cost);

}  // namespace stoker
