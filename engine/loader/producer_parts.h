// What the parts of a producer are made with: options, put into each part's own terms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/column_spec.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/assembler.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/memory/memory_plan.h"
#include "engine/tuning/tuner.h"
#include "transforms/plan/plan.h"

namespace stoker {

// What is drawn and done to a sample; none where rows are copied as they are. Errors:
// Plan::Compile's.
Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, bool finish_on_device);

// What it took to fill a row.
RowCost CostOf(const SampleTimes& times, uint32_t reads_in_flight, uint64_t work_ns);

// What a batch consists of. `plan`: none where rows are copied as they are.
std::vector<ColumnSpec> ColumnsOf(const SampleSource& source, const std::optional<Plan>& plan);

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory);

// As many batches as have twice the samples that can be on their way at a time; fewer where they
// are pinned for good. Not for a depth that is fixed.
int MostDepth(const LoaderOptions& options, const ProducerOptions& own,
              const RuntimeOptions& limits);

// Rows that a worker copies in one go: so many small ones that handing them out costs little.
uint32_t RunOf(const LoaderOptions& options);

TunerLimits MostOf(const Runtime& runtime, const MemoryPlan& memory);
TunerOptions TunerOptionsOf(const LoaderOptions& options, const Runtime& runtime);

}  // namespace stoker
