// Makes the parts of a producer from its loader's options: the plan, the columns and the slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/check_options.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/memory/memory_plan.h"
#include "transforms/plan/plan.h"

namespace stoker {

// The compiled transforms; none if rows are copied as they are. Errors: those of Plan::Compile.
Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, bool defer_to_device);

// Whether batches get labels, all kNoLabel: they do if samples are images alone and batches have no
// other column.
inline bool AddsLabels(const SampleSource& source, const std::optional<Plan>& plan) {
  const bool pads = plan && plan->pads();
  return !pads && source.fields().size() == 1 && source.fields()[0].kind == Field::Kind::kImage;
}

// The index of the column of the images' sizes, (height, width); none if the plan does not pad,
// because batches do not have the column then.
inline std::optional<size_t> SizeColumn(const SampleSource& source,
                                        const std::optional<Plan>& plan) {
  if (!plan || !plan->pads()) return std::nullopt;
  return source.fields().size();
}

// The columns of a batch: those of the source's fields, with their numbers, and stoker's own.
// `plan`: none if rows are copied as they are.
std::vector<ColumnSpec> ColumnsOf(const SampleSource& source, const std::optional<Plan>& plan);

// How many of a batch's columns (Column or ColumnSpec) Python sees. They are the first ones: the
// columns of the source's fields, and that of the images' sizes.
template <typename Columns>
size_t PythonColumns(const SampleSource& source, const Columns& columns) {
  const size_t fields = source.fields().size();
  return fields < columns.size() && columns[fields].name == kSizeColumn ? fields + 1 : fields;
}

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory);

// How many rows a worker copies per task: enough small rows that the cost of a task does not
// matter.
uint32_t RunOf(const LoaderOptions& options);

}  // namespace stoker
