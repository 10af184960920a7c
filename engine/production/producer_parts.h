// Makes the parts of a producer from its loader's options: the plan, the columns and the slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "engine/map/map_caller.h"
#include "engine/memory/memory_manager.h"
#include "engine/memory/memory_plan.h"
#include "engine/metrics/stats.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "engine/production/batches/bad_sample_log.h"
#include "engine/production/batches/map_threads.h"
#include "engine/production/check_options.h"
#include "engine/production/mixer.h"
#include "engine/production/producer_options.h"
#include "engine/production/samples/sample_cache.h"
#include "transforms/plan/plan.h"

namespace stoker {

class ReadService;

// Columns that Python does not see: the labels of AddsLabels, and the places of crops and the
// operations that a plan leaves to a device. A function that adds columns rules out such columns,
// because it needs images on the host.
inline constexpr const char* kAddedLabelColumn = "label";
inline constexpr const char* kCropColumn = "crop";
inline constexpr const char* kWorkColumn = "work";

// The fields of objects, as a plan has them.
std::vector<ObjectField> PlannedObjects(const SampleSource& source);

// The compiled transforms, or views; nullopt if rows are copied unchanged, or made by a processor.
// Errors: those of Plan::Compile.
Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, const ProducerOptions& own);

// The number of the first fields that the plan, or a processor, makes the columns of: the encoded
// ones, or the images in memory; 0 if rows are copied unchanged.
inline size_t PlannedFields(const SampleSource& source, const std::optional<Plan>& plan) {
  return plan ? std::max<size_t>(source.encoded_fields(), 1) : source.encoded_fields();
}

// Whether batches get a column of labels, all kNoLabel: they do if samples are images alone and
// batches have no other column. `map` may be null.
bool AddsLabels(const LoaderOptions& options, const std::optional<Plan>& plan,
                const MapCaller* map);

// The index of the column of the images' sizes, (height, width); nullopt if the plan does not pad,
// because batches then lack the column.
inline std::optional<size_t> SizeColumn(const SampleSource& source,
                                        const std::optional<Plan>& plan) {
  if (!plan || !plan->pads()) return std::nullopt;
  return source.fields().size();
}

// The index of the column of geometry, which the one of original sizes follows; nullopt if batches
// lack them.
inline std::optional<size_t> GeometryColumn(const SampleSource& source,
                                            const std::optional<Plan>& plan) {
  if (!plan || !plan->options().geometry) return std::nullopt;
  return source.fields().size() + (plan->pads() ? 1 : 0);
}

// The columns of a batch: those of the source's fields, with their numbers, stoker's own, those
// that `map` adds, and the strings that it replaces. `plan`: null if rows are copied unchanged, or
// made by the options' processor. `map` may be null. InvalidArgument: it adds a column with the
// name of another one.
Result<std::vector<ColumnSpec>> ColumnsOf(const LoaderOptions& options,
                                          const std::optional<Plan>& plan, const MapCaller* map);

// The index of the column of a source's field. It is the field's own, unless a function replaces
// its strings.
size_t ColumnOfField(const SampleSource& source, size_t field, std::span<const ColumnSpec> columns);

// The number of columns of strings that a function replaces if it adds these columns.
size_t ReplacedStrings(const SampleSource& source, std::span<const ColumnSpec> added);

// The number of a batch's columns (Column or ColumnSpec) that Python sees. They come first: the
// columns of the source's fields, then those of the images' sizes and geometry or of further views,
// and those that the program's function adds (`added`).
template <typename Columns>
size_t PythonColumns(const SampleSource& source, std::span<const ColumnSpec> added,
                     const Columns& columns) {
  if (!added.empty()) return columns.size() - ReplacedStrings(source, added);
  size_t count = source.fields().size();
  const auto is_python = [](const std::string& name) {
    return name != kAddedLabelColumn && name != kCropColumn && name != kWorkColumn;
  };
  while (count < columns.size() && is_python(columns[count].name)) ++count;
  return count;
}

// Refuses strings next to the images that a batch on a device would have.
Status CheckHasNoStrings(const SampleSource& source, std::span<const ColumnSpec> columns);

// The loader's share of the memory budget, and the slots of its batches in production.
struct ReservedMemory {
  std::unique_ptr<MemoryLease> lease;
  std::shared_ptr<SlotPool> slots;
};
Result<ReservedMemory> ReserveMemory(const LoaderOptions& options, const ProducerOptions& own,
                                     const std::vector<ColumnSpec>& columns,
                                     const std::optional<Plan>& plan);

// The parts of a producer, whose options have been checked.
struct ProducerParts {
  LoaderOptions options;  // with a Runtime
  Sampler sampler;
  std::optional<Plan> plan;
  std::optional<Mixer> mixer;
  std::optional<MapCaller> map;
  std::shared_ptr<BadSampleLog> bad;
  std::shared_ptr<SampleCache> cache;
  ReservedMemory memory;
};
// Errors: those of Producer::Open.
Result<ProducerParts> PartsOf(LoaderOptions options, std::optional<ProducerOptions> own);

// InvalidArgument if there is no such batch. `call`: the name of the calling function, for the
// message.
Status CheckPosition(const char* call, BatchName batch, const Sampler& order);

// The error of taking a batch when the limit of `options` on lent batches is reached.
Error TooManyLent(const LoaderOptions& options, const SlotPool& slots);

// These add the statistics of the slots, of the Runtime with the threads that read `source`, and of
// the program's function. `maps`: the threads that call it with whole batches, or null if it is
// called with rows.
void AddSlots(const SlotPool& slots, LoaderStats& stats);
void AddRuntime(Runtime& runtime, const SampleSource& source, const ReadService& reads,
                LoaderStats& stats);
void AddFunction(const MapCaller& map, const MapThreads* maps, LoaderStats& stats);

// Returns whether images are cropped at random, so that a crop index would save decoding.
bool CropsAtRandom(const LoaderOptions& options);

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory);

// How many rows a worker copies per task: its share of a batch, but at least 64 KiB, because a task
// costs as much as copying tens of kilobytes (on one core the system switches to the worker's
// thread and back), and at most 2 MiB. `maps_rows`: 64 KiB, because a function is called with the
// rows, which must still be in a cache.
uint32_t RunOf(const LoaderOptions& options, bool maps_rows, int workers);

}  // namespace stoker
