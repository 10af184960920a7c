// Translates the options of a loader into the options of a producer's parts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/assembler.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/memory/memory_plan.h"
#include "engine/tuning/tuner.h"
#include "transforms/plan/plan.h"

namespace stoker {

// The compiled transforms; none if rows are copied as they are. Errors: those of Plan::Compile.
Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, bool defer_to_device);

// The cost of filling one row.
RowCost CostOf(const SampleTimes& times, uint32_t reads_in_flight, uint64_t work_ns);

// The columns of a batch. `plan`: none if rows are copied as they are.
std::vector<ColumnSpec> ColumnsOf(const SampleSource& source, const std::optional<Plan>& plan);

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory);

// The maximum depth: as many batches as hold twice the samples that can be in flight; fewer if
// slots are pinned. Not used for a fixed depth.
int MaxDepth(const LoaderOptions& options, const ProducerOptions& own,
             const RuntimeOptions& limits);

// How many rows a worker copies per task: enough small rows that the cost of a task does not
// matter.
uint32_t RunOf(const LoaderOptions& options);

TunerLimits LimitsOf(const Runtime& runtime, const MemoryPlan& memory);
TunerOptions TunerOptionsOf(const LoaderOptions& options, const Runtime& runtime);

}  // namespace stoker
