// Implements the table of stoker_c.h with Loader and the registry.
#include "bindings/c/stoker_c.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "bindings/c/c_calls.h"
#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "core/result/try.h"
#include "core/time/trace.h"
#include "engine/loader/loader.h"
#include "io/source/source.h"

using stoker::Batch;
using stoker::BatchName;
using stoker::Code;
using stoker::Column;
using stoker::DeviceBatch;
using stoker::DType;
using stoker::EpochCounter;
using stoker::Error;
using stoker::Iterator;
using stoker::Loader;
using stoker::Registry;
using stoker::Result;
using stoker::Status;
using stoker::c::DTypeOf;
using stoker::c::Fill;
using stoker::c::InterruptOf;
using stoker::c::NoMemory;
using stoker::c::Run;

struct stoker_dataset {
  std::shared_ptr<Loader> loader;
  std::string warning;
  std::string source_warning;
  std::atomic<bool> told_source_warning{false};
};
struct stoker_batch {
  Batch batch;  // empty if the batch is on a device
  bool pins = false;
  DeviceBatch on_device;

  std::span<const Column> columns() const {
    return on_device ? on_device.columns() : batch.columns();
  }
  std::span<const uint64_t> sample_ids() const {
    return on_device ? on_device.sample_ids() : batch.sample_ids();
  }
  BatchName name() const { return on_device ? on_device.name() : batch.name(); }
  std::shared_ptr<void> Owner(size_t column) const {
    if (!on_device) return batch.Owner(column);
    return std::const_pointer_cast<stoker::RingEntry>(on_device.Owner());
  }
};
struct stoker_cursor {
  std::shared_ptr<Loader> loader;
  std::unique_ptr<Iterator> cursor;
  bool pins = false;                   // its loader pins slots
  std::unique_ptr<stoker_batch> kept;  // fetched by an interrupted call
};
struct stoker_owner {
  std::shared_ptr<void> memory;
};

namespace {

bool Pins(const Loader& loader) { return loader.options().pinned_for != nullptr; }

stoker_batch* Hand(Batch batch, bool pins) {
  return batch ? new stoker_batch{std::move(batch), pins, {}} : nullptr;
}
stoker_batch* Hand(DeviceBatch batch) {
  return batch ? new stoker_batch{{}, false, std::move(batch)} : nullptr;
}

// ---- the table's functions ----

int32_t ErrorCode(const stoker_error* error) { return error->code; }
const char* ErrorMessage(const stoker_error* error) {
  return error->fixed != nullptr ? error->fixed : error->message.c_str();
}
void ErrorFree(stoker_error* error) {
  if (error != NoMemory()) delete error;
}

uint64_t EpochTake(const char* key) {
  const std::shared_ptr<EpochCounter> epochs = Registry::Get().Epochs(key);
  const EpochCounter::Taken taken = epochs->Take();
  epochs->Use(taken);
  return taken.place.epoch;
}
uint64_t EpochNext(const char* key) { return Registry::Get().Epochs(key)->next(); }
void EpochSetNext(const char* key, uint64_t epoch) { Registry::Get().Epochs(key)->set_next(epoch); }

int32_t EpochRestored(const char* key) {
  return Registry::Get().Epochs(key)->restored().has_value() ? 1 : 0;
}

// Returns the warnings about a source when it is opened.
std::string WarningOf(const stoker::SampleSource& source) {
  std::string warning = source.Warning();
  const std::string skipped = source.Skipped().Warning();
  if (!warning.empty() && !skipped.empty()) warning += "; and ";
  return warning + skipped;
}

stoker_error* DatasetOpen(const char* key, const char* spec, stoker_dataset** dataset) {
  return Run([&]() -> Status {
    bool opened = false;
    auto open = [&](std::shared_ptr<EpochCounter> epochs) -> Result<std::shared_ptr<Loader>> {
      ASSIGN_OR_RETURN(stoker::LoaderOptions options, stoker::ParseLoaderSpec(spec));
      opened = true;
      return Loader::Open(std::move(options), std::move(epochs));
    };
    ASSIGN_OR_RETURN(std::shared_ptr<Loader> loader, Registry::Get().FindOrOpen(key, open));
    // Only the handle that opened the source reports its warnings.
    std::string warning = opened ? WarningOf(*loader->options().source) : std::string();
    *dataset = new stoker_dataset{std::move(loader), {}, std::move(warning), {}};
    return {};
  });
}

void DatasetFree(stoker_dataset* dataset) { delete dataset; }

stoker_error* DatasetInfo(stoker_dataset* dataset, stoker_dataset_info* info) {
  return Run([&]() -> Status {
    const Loader& loader = *dataset->loader;
    Fill(info, {.struct_size = 0,
                .batches_per_epoch = loader.batches_per_epoch(),
                .cores = loader.options().runtime->options().threads,
                .depth = loader.depth()});
    return {};
  });
}

stoker_error* DatasetStats(stoker_dataset* dataset, stoker_stats* out) {
  return Run([&]() -> Status {
    const stoker::LoaderStats stats = dataset->loader->Stats();
    Fill(out, {.struct_size = 0,
               .samples = stats.samples,
               .batches = stats.batches,
               .bytes_read = stats.bytes_read,
               .wait_ns = stats.wait_ns,
               .lent_batches = static_cast<uint64_t>(stats.lent_batches),
               .lent_bytes = stats.lent_bytes,
               .memory_used = stats.memory_used});
    return {};
  });
}

BatchName NameOf(const stoker_batch_name& name) { return {name.epoch, name.index, name.start}; }

stoker_batch_name NameOf(BatchName batch, const Loader& loader) {
  return {.struct_size = 0,
          .epoch = batch.epoch,
          .index = batch.index,
          .start = batch.start,
          .end = loader.batches_from(batch.start),
          .last_rows = loader.last_rows_from(batch.start)};
}

stoker_error* DatasetBatchAt(stoker_dataset* dataset, const stoker_batch_name* name,
                             const stoker_interrupt* interrupt, stoker_batch** batch) {
  return Run([&]() -> Status {
    ASSIGN_OR_RETURN(Batch made, dataset->loader->BatchAt(NameOf(*name), InterruptOf(interrupt)));
    *batch = Hand(std::move(made), Pins(*dataset->loader));
    return {};
  });
}

stoker_error* DatasetState(stoker_dataset* dataset, const stoker_batch_name* next, char* state,
                           uint64_t capacity, uint64_t* size) {
  return Run([&]() -> Status {
    const std::string text = dataset->loader->StateAt(NameOf(*next));
    *size = text.size() + 1;
    if (*size <= capacity) std::memcpy(state, text.c_str(), *size);
    return {};
  });
}

stoker_error* DatasetPlace(stoker_dataset* dataset, const char* state, int32_t same_ranks,
                           stoker_batch_name* next) {
  return Run([&]() -> Status {
    ASSIGN_OR_RETURN(const BatchName found, dataset->loader->PlaceOf(state, same_ranks != 0));
    Fill(next, NameOf(found, *dataset->loader));
    return {};
  });
}

const char* DatasetWarning(stoker_dataset* dataset) {
  std::optional<std::string> warning = dataset->loader->TakeWarning();
  if (!warning) warning = dataset->loader->TakeCacheWarning();
  if (!warning) {
    const bool tell =
        !dataset->source_warning.empty() && !dataset->told_source_warning.exchange(true);
    return tell ? dataset->source_warning.c_str() : nullptr;
  }
  dataset->warning = *std::move(warning);  // once per loader
  return dataset->warning.c_str();
}

// A trace listener that calls a plugin's functions.
class PluginTrace final : public stoker::TraceListener {
 public:
  explicit PluginTrace(const stoker_trace& trace) : begin_(trace.begin), end_(trace.end) {}

  int64_t Begin(const char* name) override { return begin_(name); }
  void End(int64_t span) override { end_(span); }
  bool Calls(const stoker_trace& trace) const { return begin_ == trace.begin && end_ == trace.end; }

 private:
  int64_t (*const begin_)(const char*);
  void (*const end_)(int64_t);
};

void DatasetSetTrace(stoker_dataset* dataset, const stoker_trace* trace) {
  stoker::Trace& runtime = dataset->loader->options().runtime->trace();
  static constexpr char kWho = 0;  // its address identifies all plugins
  const auto now = std::static_pointer_cast<PluginTrace>(runtime.listener(&kWho));
  if (trace != nullptr && now != nullptr && now->Calls(*trace)) return;
  (void)runtime.Listen(&kWho, trace == nullptr ? nullptr : std::make_shared<PluginTrace>(*trace));
}

stoker_error* CursorOpen(stoker_dataset* dataset, int64_t epoch, int32_t repeat,
                         stoker_cursor** cursor) {
  return Run([&]() -> Status {
    std::optional<uint64_t> wanted;
    if (epoch >= 0) wanted = static_cast<uint64_t>(epoch);
    *cursor = new stoker_cursor{
        dataset->loader, dataset->loader->Iterate(wanted, repeat != 0), Pins(*dataset->loader), {}};
    return {};
  });
}

void CursorFree(stoker_cursor* cursor) { delete cursor; }

Result<stoker_batch*> Fetch(const stoker_cursor& cursor, const stoker::Interrupt& interrupt) {
  if (cursor.loader->options().to_device) {
    ASSIGN_OR_RETURN(DeviceBatch next, cursor.cursor->FetchOnDevice(interrupt));
    return Hand(std::move(next));
  }
  ASSIGN_OR_RETURN(Batch next, cursor.cursor->Fetch(interrupt));
  return Hand(std::move(next), cursor.pins);
}

// `interrupt` is asked once more when the batch is there: the caller may lose what it is given
// after a signal.
Result<stoker_batch*> Next(stoker_cursor& cursor, const stoker::Interrupt& interrupt) {
  if (cursor.kept == nullptr || !cursor.cursor->Resume()) {
    cursor.kept.reset();  // first: it counts as lent
    ASSIGN_OR_RETURN(stoker_batch * next, Fetch(cursor, interrupt));
    cursor.kept.reset(next);
  }
  if (interrupt && interrupt()) {
    cursor.cursor->Postpone();
    return Error{Code::kCancelled, "the wait was interrupted"};
  }
  cursor.cursor->Accept();
  return cursor.kept.release();
}

stoker_error* CursorNext(stoker_cursor* cursor, const stoker_interrupt* interrupt,
                         stoker_batch** batch, int32_t* passed) {
  return Run([&]() -> Status {
    const uint64_t before = cursor->cursor->passed();
    const Result<stoker_batch*> next = Next(*cursor, InterruptOf(interrupt));
    *passed = cursor->cursor->passed() != before ? 1 : 0;
    if (!next.ok()) return next.error();
    *batch = *next;
    return {};
  });
}

void CursorTakeBack(stoker_cursor* cursor) { cursor->cursor->TakeBack(); }

stoker_error* CursorPlace(stoker_cursor* cursor, stoker_batch_name* next) {
  return Run([&]() -> Status {
    const std::optional<BatchName> place = cursor->cursor->position();
    if (!place) {
      return Error{Code::kFailedPrecondition,
                   "an iteration has no place before its first batch, nor with appended ones"};
    }
    Fill(next, NameOf(*place, *cursor->loader));
    return {};
  });
}

stoker_error* CursorSeek(stoker_cursor* cursor, const stoker_batch_name* next) {
  return Run([&]() -> Status {
    TRY(cursor->cursor->Seek(NameOf(*next)));
    cursor->kept.reset();
    return {};
  });
}

stoker_error* CursorAppend(stoker_cursor* cursor, const stoker_batch_name* name) {
  return Run([&] { return cursor->cursor->Append(NameOf(*name)); });
}

stoker_error* BatchInfo(const stoker_batch* batch, stoker_batch_info* info) {
  return Run([&]() -> Status {
    const BatchName name = batch->name();
    Fill(info, {.struct_size = 0,
                .epoch = name.epoch,
                .index = name.index,
                .columns = static_cast<int32_t>(batch->columns().size()),
                .sample_ids = batch->sample_ids().data(),
                .start = name.start,
                .rows = static_cast<int64_t>(batch->sample_ids().size())});
    return {};
  });
}

stoker_error* BatchColumn(const stoker_batch* batch, int32_t index, stoker_column* out) {
  return Run([&]() -> Status {
    const auto columns = batch->columns();
    if (index < 0 || static_cast<size_t>(index) >= columns.size()) {
      return Error{Code::kInvalidArgument, "column " + std::to_string(index) + " of a batch of " +
                                               std::to_string(columns.size())};
    }
    const Column& column = columns[static_cast<size_t>(index)];
    if (column.shape.size() > STOKER_MAX_DIMS) {
      return Error{Code::kUnimplemented, "a column of " + std::to_string(column.shape.size()) +
                                             " dimensions; at most " +
                                             std::to_string(STOKER_MAX_DIMS) + " are possible"};
    }
    stoker_column filled{};
    filled.name = column.name.c_str();
    filled.dtype = DTypeOf(column.dtype);
    filled.ndim = static_cast<int32_t>(column.shape.size());
    std::copy(column.shape.begin(), column.shape.end(), filled.dims);
    filled.bytes = column.bytes();
    filled.data = column.data;
    filled.offsets = column.offsets;
    if (batch->pins) filled.pinned = batch->batch.pinned(static_cast<size_t>(index)) ? 1 : -1;
    Fill(out, filled);
    return {};
  });
}

stoker_owner* BatchOwner(const stoker_batch* batch, int32_t column) {
  if (column < 0 || static_cast<size_t>(column) >= batch->columns().size()) return nullptr;
  try {
    return new stoker_owner{batch->Owner(static_cast<size_t>(column))};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

stoker_error* BatchString(const stoker_batch* batch, int32_t column, uint64_t i, const char** bytes,
                          uint64_t* size) {
  return Run([&]() -> Status {
    const auto columns = batch->columns();
    const bool there = column >= 0 && static_cast<size_t>(column) < columns.size();
    if (!there || !stoker::IsString(columns[static_cast<size_t>(column)].dtype)) {
      return Error{Code::kInvalidArgument,
                   "column " + std::to_string(column) + " is not one of strings"};
    }
    const auto strings = columns[static_cast<size_t>(column)].as<std::string_view>();
    if (i >= strings.size()) {
      return Error{Code::kInvalidArgument, "string " + std::to_string(i) + " of a column of " +
                                               std::to_string(strings.size())};
    }
    *bytes = strings[i].data();
    *size = strings[i].size();
    return {};
  });
}

stoker_error* DatasetPath(stoker_dataset* dataset, uint64_t sample, char* path) {
  return Run([&]() -> Status {
    const stoker::SampleSource& source = *dataset->loader->options().source;
    if (sample >= source.size()) {
      return Error{Code::kInvalidArgument,
                   "sample " + std::to_string(sample) + " of " + std::to_string(source.size())};
    }
    if (source.in_memory()) {
      return Error{Code::kFailedPrecondition, "samples in memory have no paths"};
    }
    std::string found;
    source.PathOf(source.RangeOf(sample).file, found);
    if (found.size() >= STOKER_MAX_PATH) {
      return Error{.code = Code::kFailedPrecondition,
                   .cause = "the path is longer than a system call accepts",
                   .file = found};
    }
    std::memcpy(path, found.c_str(), found.size() + 1);
    return {};
  });
}

stoker_error* BatchWaitOn(const stoker_batch* batch, void* stream) {
  return Run([&]() -> Status {
    const DeviceBatch& on_device = batch->on_device;
    if (!on_device) return Error{Code::kFailedPrecondition, "the batch is in the host's memory"};
    return stream == nullptr ? on_device.Wait() : on_device.WaitOn({stream});
  });
}

void BatchFree(stoker_batch* batch) { delete batch; }
void OwnerFree(stoker_owner* owner) { delete owner; }

constexpr stoker_api kApi = {
    .struct_size = sizeof(stoker_api),
    .abi_version = STOKER_ABI_VERSION,
    .version = STOKER_VERSION,
    .error_code = ErrorCode,
    .error_message = ErrorMessage,
    .error_free = ErrorFree,
    .epoch_take = EpochTake,
    .epoch_next = EpochNext,
    .epoch_set_next = EpochSetNext,
    .dataset_open = DatasetOpen,
    .dataset_free = DatasetFree,
    .dataset_info = DatasetInfo,
    .dataset_stats = DatasetStats,
    .dataset_batch_at = DatasetBatchAt,
    .dataset_warning = DatasetWarning,
    .dataset_state = DatasetState,
    .dataset_place = DatasetPlace,
    .dataset_set_trace = DatasetSetTrace,
    .cursor_open = CursorOpen,
    .cursor_free = CursorFree,
    .cursor_next = CursorNext,
    .cursor_place = CursorPlace,
    .cursor_seek = CursorSeek,
    .cursor_append = CursorAppend,
    .batch_info = BatchInfo,
    .batch_column = BatchColumn,
    .batch_owner = BatchOwner,
    .batch_free = BatchFree,
    .owner_free = OwnerFree,
    .dataset_path = DatasetPath,
    .batch_string = BatchString,
    .batch_wait_on = BatchWaitOn,
    .cursor_take_back = CursorTakeBack,
    .epoch_restored = EpochRestored,
    .processor_open = stoker::c::ProcessorOpen,
    .processor_free = stoker::c::ProcessorFree,
    .processor_plan = stoker::c::ProcessorPlan,
    .processor_shape = stoker::c::ProcessorShape,
    .processor_run = stoker::c::ProcessorRun,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const stoker_api* stoker_get_api(
    uint32_t abi_version) {
  return abi_version == STOKER_ABI_VERSION ? &kApi : nullptr;
}
