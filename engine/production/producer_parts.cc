#include "engine/production/producer_parts.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/result/try.h"
#include "engine/arrays/processor.h"
#include "engine/order/patch_counts.h"
#include "engine/order/token_column.h"
#include "engine/production/settings_controller.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/read_service.h"
#include "engine/runtime/runtime.h"
#include "gpu/backend/device_pinning.h"
#include "transforms/processor/figures.h"

namespace stoker {

namespace {

Piece::Kind KindOfPiece(const Field& field) {
  if (field.kind != Field::Kind::kMask) return Piece::Kind::kImage;
  return field.dtype == DType::kU16 ? Piece::Kind::kMask16 : Piece::Kind::kMask;
}

// Returns the encoded images as a plan sees them. An image in memory is one piece, too.
std::vector<Piece> PiecesOf(const SampleSource& source) {
  std::vector<Piece> pieces;
  for (const Field& field : source.fields().first(source.encoded_fields())) {
    pieces.insert(pieces.end(), field.images(), {.kind = KindOfPiece(field), .fill = field.fill});
  }
  if (pieces.empty()) pieces.emplace_back();
  return pieces;
}

ObjectField::Kind KindOf(const Field& field) {
  if (field.kind == Field::Kind::kBoxes) return ObjectField::Kind::kBoxes;
  if (field.kind == Field::Kind::kKeypoints) return ObjectField::Kind::kKeypoints;
  return ObjectField::Kind::kValue;
}

}  // namespace

std::vector<ObjectField> PlannedObjects(const SampleSource& source) {
  std::vector<ObjectField> objects;
  for (const Field& field : source.fields()) {
    if (!field.is_of_objects()) continue;
    objects.push_back({.kind = KindOf(field),
                       .bytes = field.row_bytes(),
                       .format = field.box_format,
                       .normalized = field.normalized,
                       .flip_pairs = field.flip_pairs});
  }
  return objects;
}

Result<std::optional<Plan>> PlanOf(const LoaderOptions& options, const ProducerOptions& own) {
  if (CopiesRows(options) || options.processor != nullptr) return std::optional<Plan>();
  const PlanOptions planned{
      .dtype = options.dtype,
      .layout = options.layout,
      .channels = options.channels,
      .exif_orientation = options.exif_orientation,
      .decode = options.decode,
      .read_later = true,
      .defer_to_device = own.defer_to_device,
      .decode_on_device = own.crops.bytes != 0,
      .limits = options.limits,
      .geometry = options.geometry,
      .pieces = PiecesOf(*options.source),
      .objects = PlannedObjects(*options.source),
      .max_objects = options.source->max_objects(),
      .draws_shapes = std::ranges::any_of(options.source->fields(), &Field::is_drawn)};
  ASSIGN_OR_RETURN(std::optional<Plan> plan, options.views.empty()
                                                 ? Plan::Compile(options.transforms, planned)
                                                 : Plan::CompileViews(options.views, planned));
  return plan;
}

namespace {

// Returns whether a column that a function adds replaces this one.
bool Replaces(const ColumnSpec& added, const Field& field) {
  return !field.is_encoded() && IsString(field.dtype) && field.name == added.name;
}

ColumnSpec PixelColumn(const LoaderOptions& options) {
  const ProcessorRecipe& recipe = options.processor->recipe();
  const std::optional<ImagePlan> fixed = FixedPlan(recipe);
  const bool pads = PadsRows(options);
  const ImageSize patch = fixed ? fixed->patch : recipe.patch;
  ColumnSpec column{
      "pixel_values", options.processor->options().dtype, {3, patch.height, patch.width}};
  if (recipe.flat()) column.row_shape = {static_cast<int64_t>(RowValues(recipe, patch))};
  if (recipe.padded_rows != 0 && !pads) {
    column.row_shape.insert(column.row_shape.begin(), recipe.padded_rows);
  }
  if (fixed && !pads && !options.source->varies()) return column;
  const PatchCounts* const counts = options.patch_counts.get();
  const uint32_t longest =
      counts == nullptr ? options.buckets.longest() : std::max(counts->most, 1u);
  const uint64_t most = options.token_batches == nullptr
                            ? uint64_t{options.batch_size} * counts->most
                            : options.token_batches->MostOf(
                                  counts == nullptr ? std::span<const uint32_t>() : counts->places);
  column.room = std::max<uint64_t>(most, 1);
  if (pads) {
    column.row_shape.insert(column.row_shape.begin(), longest);
  } else {
    column.max_objects = longest;
  }
  return column;
}

// Adds the columns of a function, and puts the strings that it replaces after them.
Status AddMapped(const SampleSource& source, const MapCaller& map,
                 std::vector<ColumnSpec>& columns) {
  std::vector<ColumnSpec> replaced;
  const size_t others = columns.size();
  for (size_t i = 0; i < map.columns().size(); ++i) {
    const ColumnSpec& added = map.columns()[i];
    const auto earlier = map.columns().first(i);
    const bool twice = std::ranges::find(earlier, added.name, &ColumnSpec::name) != earlier.end();
    const auto end = columns.begin() + static_cast<ptrdiff_t>(others);
    const auto found = std::find_if(
        columns.begin(), end, [&](const ColumnSpec& column) { return column.name == added.name; });
    if (found == end && !twice) {
      columns.push_back(added);
      continue;
    }
    const auto place = static_cast<size_t>(found - columns.begin());
    const auto fields = source.fields();
    if (twice || place == 0 || place >= fields.size() || !Replaces(added, fields[place])) {
      return Error{
          .code = Code::kInvalidArgument,
          .cause = map.name() + " adds a column '" + added.name +
                   "', and batches have one with this name already",
          .advice = "Rename it: a column of numbers takes the place of one of strings only"};
    }
    replaced.push_back(std::exchange(*found, added));
  }
  columns.insert(columns.end(), replaced.begin(), replaced.end());
  return {};
}

}  // namespace

bool AddsLabels(const LoaderOptions& options, const std::optional<Plan>& plan,
                const MapCaller* map) {
  const std::span<const Field> fields = options.source->fields();
  const bool has_more = (plan && (plan->pads() || plan->views() > 1 || plan->options().geometry)) ||
                        (options.processor != nullptr && !FiguresOf(options).empty()) ||
                        (map != nullptr && !map->columns().empty());
  return !has_more && fields.size() == 1 && fields[0].kind == Field::Kind::kImage;
}

size_t ReplacedStrings(const SampleSource& source, std::span<const ColumnSpec> added) {
  size_t count = 0;
  for (const ColumnSpec& column : added) {
    count += static_cast<size_t>(std::ranges::count_if(
        source.fields(), [&](const Field& field) { return Replaces(column, field); }));
  }
  return count;
}

size_t ColumnOfField(const SampleSource& source, size_t field,
                     std::span<const ColumnSpec> columns) {
  const Field& of = source.fields()[field];
  const bool is_replaced = IsString(of.dtype) && !IsString(columns[field].dtype);
  if (!is_replaced) return field;
  size_t last = columns.size() - 1;
  while (columns[last].name != of.name) --last;
  return last;
}

Result<std::vector<ColumnSpec>> ColumnsOf(const LoaderOptions& options,
                                          const std::optional<Plan>& plan, const MapCaller* map) {
  const SampleSource& source = *options.source;
  std::vector<ColumnSpec> columns;
  for (const Field& field : source.fields()) {
    const bool owns_strings = field.kind == Field::Kind::kLoaded && IsString(field.dtype);
    const uint32_t of_sample = field.is_of_objects() ? std::max(source.max_objects(), 1u) : 0;
    const uint32_t most = of_sample * (plan ? plan->times_objects() : 1);
    columns.push_back({field.name, field.dtype, field.row_shape, owns_strings, most});
    if (plan && field.is_drawn()) {
      columns.back().row_shape = {plan->output_size().height, plan->output_size().width};
      if (plan->pads_batches()) columns.back().height_at = 0;
    }
  }
  if (options.processor != nullptr) {
    columns[0] = PixelColumn(options);
    std::vector<ColumnSpec> figures = FiguresOf(options);
    if (columns[0].is_padded()) {
      figures[0].row_shape = {columns[0].row_shape[0]};
      figures[0].room = columns[0].room;
    }
    for (ColumnSpec& column : figures) {
      if (source.varies()) column.max_objects = static_cast<uint32_t>(source.pieces());
      columns.push_back(std::move(column));
    }
  }
  if (AddsLabels(options, plan, map)) columns.push_back({kAddedLabelColumn, DType::kI64, {}});
  for (size_t i = 0, piece = 0; plan && i < PlannedFields(source, plan); ++i) {
    const Field& field = source.fields()[i];
    const Plan& of_piece = plan->piece(piece);
    columns[i].dtype = of_piece.dtype();
    columns[i].row_shape = of_piece.row_shape();
    if (field.count != 0) columns[i].row_shape.insert(columns[i].row_shape.begin(), field.count);
    if (of_piece.pads_batches()) {  // CheckLargest refuses clips
      columns[i].height_at = !of_piece.mask() && of_piece.layout() == Layout::kNchw ? 1 : 0;
      columns[i].staged_bytes = of_piece.staged_bytes();
    }
    piece += field.images();
  }
  if (SizeColumn(source, plan)) columns.push_back({kSizeColumn, DType::kI32, {2}});
  if (GeometryColumn(source, plan)) {
    columns.push_back({kGeometryColumn, DType::kF32, {2, 3}});
    columns.push_back({kOriginalSizeColumn, DType::kI32, {2}});
  }
  for (size_t i = 1; plan && i < plan->views(); ++i) {
    const Plan& view = plan->view(i);
    columns.push_back({ViewColumn(source, i), view.dtype(), view.row_shape()});
  }
  if (plan && plan->options().decode_on_device) columns.push_back({kCropColumn, DType::kU64, {}});
  if (plan && plan->work_bytes() != 0) {
    columns.push_back({kWorkColumn, DType::kU8, {static_cast<int64_t>(plan->work_bytes())}});
  }
  if (map != nullptr) TRY(AddMapped(source, *map, columns));
  return columns;
}

SlotPool::Options SlotOptionsOf(const LoaderOptions& options, const ProducerOptions& own,
                                std::vector<ColumnSpec> columns, const MemoryPlan& memory) {
  SlotPool::Options slots;
  slots.columns = std::move(columns);
  slots.batch_size = MostRows(options);
  slots.working_slots = memory.depth;
  slots.lent_slots = own.lent_batches;
  slots.lent = own.lent;
  slots.one_slab = own.one_slab;
  slots.crops = own.crops;
  if (own.pinned_for == nullptr) return slots;
  slots.pinning = std::make_shared<DevicePinning>(own.pinned_for);
  slots.working_slots = memory.max_depth;  // pinned at the start, never during production
  slots.pinned_lent_slots =
      own.lent_batches != 0 ? std::min(own.lent_batches, 64) : SlotPool::kSpareSlots;
  return slots;
}

namespace {

// Adds to an error about memory that most of a batch is room for objects.
Error WithRoomForObjects(Error error, const LoaderOptions& options,
                         const std::vector<ColumnSpec>& columns) {
  uint64_t all = 0, of_objects = 0;
  uint32_t room = 0;
  for (const ColumnSpec& column : columns) {
    all += column.row_bytes();
    if (!column.is_ragged() || column.room != 0) continue;
    room = std::max(room, column.max_objects);
    of_objects += column.row_bytes();
  }
  if (error.code != Code::kResourceExhausted || of_objects <= all / 2) return error;
  const uint32_t times = room / std::max(options.source->max_objects(), 1u);
  error.cause += "; each row has room for " + std::to_string(room) + " objects, " +
                 (times > 1 ? std::to_string(times) + " times " : "") + "the most of any sample";
  return error;
}

// Without a batch_size there is none to lower, but one would limit the rows.
Error WithMostRows(Error error, const LoaderOptions& options) {
  if (options.token_batches == nullptr || options.batch_size != 0) return error;
  if (std::erase_if(error.changes, [](const OptionChange& change) {
        return std::string_view(change.option) == "batch_size";
      }) != 0) {
    // Samples without images cost nothing, so batch_tokens does not limit their number.
    if (options.processor != nullptr && options.tokens.empty() && !options.source->varies()) {
      error.changes.push_back({OptionChange::How::kLower, "batch_tokens"});
      return error;
    }
    error.cause += "; one batch has " + std::to_string(MostRows(options)) + " rows";
    error.advice = "Give batch_size, the most rows of a batch";
  }
  return error;
}

}  // namespace

Result<ReservedMemory> ReserveMemory(const LoaderOptions& options, const ProducerOptions& own,
                                     const std::vector<ColumnSpec>& columns,
                                     const std::optional<Plan>& plan) {
  Runtime& runtime = *options.runtime;
  const RuntimeOptions& runtime_options = runtime.options();
  auto leased = runtime.memory().Lease(
      {.slot_bytes = SlotPool::SlotBytes(columns, MostRows(options), own.one_slab, own.crops),
       .has_crops = own.crops.bytes != 0,
       .depth = options.depth,
       .pieces = static_cast<uint32_t>(std::max<size_t>(options.source->pieces(), 1)) *
                 (plan ? plan->parts() : 1),
       .threads = runtime_options.threads,
       .requests = static_cast<uint32_t>(
           RowsAhead(MaxReads(options, runtime_options), runtime_options.threads)),
       .first_depth = kFirstDepth,
       .max_depth = MaxDepth(options, own, runtime_options),
       .workspace_bytes = kWorkspaceBytes + (plan ? plan->extra_bytes() : 0) +
                          (own.cache != nullptr ? kPackerBytes : 0),
       .at_once = own.pinned_for != nullptr},
      options.weight);
  if (!leased.ok()) {
    return WithMostRows(WithRoomForObjects(std::move(leased).error(), options, columns), options);
  }
  std::unique_ptr<MemoryLease> lease = *std::move(leased);
  ASSIGN_OR_RETURN(
      std::shared_ptr<SlotPool> slots,
      SlotPool::Make(SlotOptionsOf(options, own, columns, lease->plan()), lease->TakeBatches()));
  return ReservedMemory{std::move(lease), std::move(slots)};
}

// The host's batch, which owns the strings, no longer exists when the device's batch is taken.
Status CheckHasNoStrings(const SampleSource& source, std::span<const ColumnSpec> columns) {
  for (const ColumnSpec& column : columns.first(source.fields().size())) {
    if (!column.owns_strings) continue;
    return Error{.code = Code::kUnimplemented,
                 .cause = "column '" + column.name + "' of " + source.Describe() +
                          " has strings that are read with the images, which batches on a device "
                          "do not have",
                 .advice =
                     "Leave the column out, let a function of yours replace it by numbers, or "
                     "take batches on the host"};
  }
  return {};
}

Result<ProducerParts> PartsOf(LoaderOptions options, std::optional<ProducerOptions> own) {
  TRY(CheckOptions(options));
  if (!own) {
    ASSIGN_OR_RETURN(own, ProducerOptionsOf(options));
  }
  if (own->bad == nullptr) {
    ASSIGN_OR_RETURN(own->bad,
                     BadSampleLog::Open(options.bad_samples_file, options.max_bad_fraction));
  }
  if (options.runtime == nullptr) {
    ASSIGN_OR_RETURN(options.runtime, Runtime::Default());
  }
  Runtime& runtime = *options.runtime;  // owns the reader threads and the workers
  TRY(runtime.CheckProcess());
  const SampleSource& source = *options.source;
  const bool counts_patches = options.processor != nullptr && options.buckets.empty() &&
                              (!PlacesAreImages(options) || source.varies() ||
                               (options.batch_tokens != 0 && options.tokens.empty()));
  if (counts_patches && options.patch_counts == nullptr) {
    ASSIGN_OR_RETURN(options.patch_counts,
                     PatchCountsOf(options, runtime.memory().budget().limit()));
  }
  if (options.batch_tokens != 0 && options.token_batches == nullptr) {
    ASSIGN_OR_RETURN(options.token_batches,
                     TokenBatchesOf(options, runtime.memory().budget().limit()));
  }
  ASSIGN_OR_RETURN(Sampler sampler, Sampler::Make(SamplerOptionsOf(options)));
  ASSIGN_OR_RETURN(std::optional<Plan> plan, PlanOf(options, *own));
  std::optional<MapCaller> map;
  if (options.map != nullptr) {
    ASSIGN_OR_RETURN(map, MapCaller::Of(*options.map));
  }
  ASSIGN_OR_RETURN(std::vector<ColumnSpec> columns,
                   ColumnsOf(options, plan, map ? &*map : nullptr));
  if (columns[0].room != 0 && options.patch_counts != nullptr) {
    TRY(CheckRoomForUnknown(options, columns[0].room * columns[0].object_bytes()));
  }
  if (options.to_device) TRY(CheckHasNoStrings(source, columns));
  std::optional<Mixer> mixer;
  if (options.mix) {
    ASSIGN_OR_RETURN(mixer, Mixer::Make(options, own->defer_to_device, columns));
  }
  ASSIGN_OR_RETURN(ReservedMemory memory, ReserveMemory(options, *own, columns, plan));
  return ProducerParts{std::move(options),    std::move(sampler), std::move(plan),
                       std::move(mixer),      std::move(map),     std::move(own->bad),
                       std::move(own->cache), std::move(memory)};
}

Status CheckPosition(const char* call, BatchName batch, const Sampler& order) {
  if (batch.epoch > kMaxEpochs) {
    return Error{Code::kInvalidArgument, std::string(call) + " epoch " +
                                             std::to_string(batch.epoch) + "; at most " +
                                             std::to_string(kMaxEpochs) + " is possible"};
  }
  if (batch.index >= order.batches_from(batch.start)) {
    return Error{Code::kInvalidArgument,
                 std::string(call) + " batch " + std::to_string(batch.index) +
                     " of an epoch that has " + std::to_string(order.batches_from(batch.start))};
  }
  return {};
}

Error TooManyLent(const LoaderOptions& options, const SlotPool& slots) {
  const std::string held = std::to_string(slots.account().batches()) + " batches";
  if (!options.to_device) {
    return {.code = Code::kResourceExhausted,
            .cause = "the caller holds " + held + " already, as many as lent_batches allows",
            .advice = "Release batches before taking more, or raise lent_batches"};
  }
  return {.code = Code::kResourceExhausted,
          .cause = held +
                   " are held on the host, by the map function and on their way to the "
                   "device; lent_batches allows the function " +
                   std::to_string(options.lent_batches),
          .advice = "Keep copies of a few values in it, or raise lent_batches"};
}

void AddSlots(const SlotPool& slots, LoaderStats& stats) {
  stats.lent_batches = slots.account().batches();
  stats.lent_bytes = slots.account().bytes();
  stats.slot_bytes = slots.slot_bytes();
  stats.pinned_bytes = slots.pinned_bytes();
  stats.pinning_ns = slots.pinning_ns();
}

void AddFunction(const MapCaller& map, const MapThreads* maps, LoaderStats& stats) {
  stats.map = map.name();
  stats.map_threads = map.calls();
  stats.plan += (maps == nullptr ? "; rows: " : "; then batches: ") + stats.map;
  if (maps == nullptr) return;
  stats.map_calls = maps->calls();
  stats.stages.map_ns += maps->called_ns();
}

void AddRuntime(Runtime& runtime, const SampleSource& source, const ReadService& reads,
                LoaderStats& stats) {
  stats.workers_given = runtime.fixed().workers != 0;
  stats.reads_given = runtime.fixed().reads != 0 || source.calls() != 0;
  stats.read_cpu_ns = reads.read_cpu_ns();
  stats.memory_used = runtime.budget().used();
  stats.memory_peak = runtime.budget().peak();
  stats.memory_budget = runtime.budget().limit();
  stats.threads = runtime.executor().concurrency();
  stats.threads_seen = runtime.executor().threads_seen();
  stats.executor = runtime.executor().name();
  stats.executor_reason = runtime.executor_reason();
  stats.may_have_crop_index = source.may_have_crop_index();
  stats.reader = runtime.reader().kind == ReaderKind::kUring ? "uring" : "pread";
  stats.reader_reason = runtime.reader().reason;
  if (source.calls() != 0) {
    stats.reader = "calls";
    stats.reader_reason = "the source is called";
  } else if (&reads != &runtime.reads()) {
    stats.reader = "objects";
    stats.reader_reason = "the samples are in remote objects";
  }
  if (!source.in_memory()) return;
  stats.reads = 0;
  stats.reader = "none";
  stats.reader_reason = "the samples are in memory";
}

bool CropsAtRandom(const LoaderOptions& options) {
  const auto is_random_crop = [](const Transform& transform) {
    return std::holds_alternative<RandomResizedCrop>(transform) ||
           std::holds_alternative<RandomCrop>(transform);
  };
  return std::ranges::any_of(options.transforms, is_random_crop) ||
         std::ranges::any_of(options.views, [&](const auto& view) {
           return std::ranges::any_of(view, is_random_crop);
         });
}

uint32_t RunOf(const LoaderOptions& options, bool maps_rows, int workers) {
  constexpr size_t kLeastBytes = 64 << 10, kMostBytes = 2 << 20;
  if (!CopiesRows(options)) return 1;
  size_t bytes = 0;
  for (const Field& field : options.source->fields()) bytes += field.row_bytes();
  const auto batch = static_cast<size_t>(MostRows(options));
  const size_t least = std::clamp<size_t>(kLeastBytes / bytes, 1, batch);
  const size_t most = maps_rows ? least : std::clamp(kMostBytes / bytes, least, batch);
  return static_cast<uint32_t>(std::clamp(batch / static_cast<size_t>(workers), least, most));
}

}  // namespace stoker
