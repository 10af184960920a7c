// Workload: one to three loaders of one Runtime with random options and random jobs, whose batches,
// counts and memory a model checks.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/torture/soak_job.h"

namespace stoker::testing {

struct WorkloadTotals {
  SoakTotals jobs;
  uint64_t loaders = 0, samples_waited = 0;
  uint64_t alike = 0;        // pairs of loaders that differ in nothing
  uint64_t most_behind = 0;  // samples that one of them got while the other waited for a batch
};

// Small images, which differ; made before a simulation, because they take their time.
std::vector<std::vector<uint8_t>> WorkloadImages();

// Runs the workload of a seed and calls Scheduler::Fail if it is not as the model says. Within a
// simulation only.
void RunWorkload(uint64_t seed, const std::vector<std::vector<uint8_t>>& images,
                 WorkloadTotals& totals);

}  // namespace stoker::testing
