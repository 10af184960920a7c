// Makes the parts of a producer from its loader's options: the plan, the columns and the slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/memory/memory_plan.h"
#include "transforms/plan/plan.h"

namespace stoker {

// The compiled transforms; none if rows are copied as they are. Errors: those of Plan::Compile.
Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, bool defer_to_device);

// Whether samples are images alone. Batches of them have labels all the same, of kNoLabel.
inline bool HasOnlyImages(const SampleSource& source) {
  return source.fields().size() == 1 && source.fields()[0].kind == Field::Kind::kImage;
}

// The columns of a batch: those of the source's fields, with their numbers, and stoker's own.
// `plan`: none if rows are copied as they are.
std::vector<ColumnSpec> ColumnsOf(const SampleSource& source, const std::optional<Plan>& plan);

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory);

// How many rows a worker copies per task: enough small rows that the cost of a task does not
// matter.
uint32_t RunOf(const LoaderOptions& options);

}  // namespace stoker
