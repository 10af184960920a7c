// stoker._stoker.Loader and Cursor: thin handles on SharedLoader and Cursor.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "bindings/python/arrays.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "engine/pipeline/check_options.h"
#include "engine/pipeline/cursor.h"
#include "engine/pipeline/shared_loader.h"
#include "io/sources/source.h"
#include "transforms/plan.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// Python lets go of things with the GIL held; what goes may have to wait for samples in work.
template <typename T>
void LetGo(T& held) {
  const WithoutGil released;
  held.reset();
}

// Where an iteration goes on; none while it has no epoch. Never waits: a signal handler may ask
// while the iteration waits for a batch. Outlives the iteration.
class Place {
 public:
  std::optional<std::pair<uint64_t, uint64_t>> Get() const {
    const std::lock_guard lock(mutex_);
    return place_;
  }
  void Set(const std::optional<BatchName>& at) {
    const std::lock_guard lock(mutex_);
    if (at) place_.emplace(at->epoch, at->index);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::pair<uint64_t, uint64_t>> place_;
};

// One iteration. Threads that share it take turns, and each batch goes to one of them.
class CursorHandle {
 public:
  CursorHandle(std::shared_ptr<SharedLoader> shared, std::optional<uint64_t> epoch, bool repeat,
               size_t columns)
      : shared_(std::move(shared)), cursor_(shared_->Iterate(epoch, repeat)), columns_(columns) {
    place_->Set(cursor_->position());
  }
  ~CursorHandle() {
    LetGo(cursor_);
    LetGo(shared_);
  }

  // A tuple of arrays; none at the end.
  std::optional<py::tuple> Next() {
    if (const std::optional<std::string> warning = shared_->TakeWarning()) Warn(*warning);
    Result<Batch> batch = Batch();
    {
      const WithoutGil released;
      batch = Take();
    }
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
    if (!batch.ok() && batch.error().code == Code::kCancelled && Leaving()) {
      Raise({.code = Code::kCancelled,
             .cause = "the interpreter is ending",
             .advice = "In atexit handlers, iterate in those registered after `import stoker`"});
    }
    if (!batch.ok()) Raise(batch.error());
    if (!*batch) return std::nullopt;
    sample_ids_.assign(batch->sample_ids().begin(), batch->sample_ids().end());
    py::tuple arrays(columns_);
    for (size_t c = 0; c < columns_; ++c) arrays[c] = ArrayOf(*batch, c);
    return arrays;
  }

  Status Seek(uint64_t epoch, uint64_t index) {
    Status status;
    {
      const WithoutGil released;
      status = InTurn([&](const Interrupt&) { return cursor_->Seek({epoch, index}); });
    }
    if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
    return status;
  }

  const std::shared_ptr<Place>& place() const { return place_; }
  const std::vector<uint64_t>& sample_ids() const { return sample_ids_; }

 private:
  static void Warn(const std::string& text) {
    const py::object category = py::module_::import("stoker._errors").attr("MemoryWarning");
    // 2: the caller of the iterator's __next__.
    if (PyErr_WarnEx(category.ptr(), text.c_str(), 2) != 0) throw py::error_already_set();
  }

  Result<Batch> Take() {
    return InTurn([this](const Interrupt& interrupt) -> Result<Batch> {
      if (!cursor_->position()) {
        // Before the wait, so that a state saved meanwhile has the epoch.
        if (Status s = cursor_->Seek({shared_->epochs().Take(), 0}); !s.ok()) {
          return std::move(s).error();
        }
        place_->Set(cursor_->position());
      }
      return cursor_->Next(interrupt);
    });
  }

  // `use` has the cursor to itself. What it waits for may run signal handlers on this thread: those
  // can look at the place, and are refused here.
  template <typename Use>
  auto InTurn(const Use& use) -> decltype(use(Interrupt())) {
    // First: in a forked child another thread may have left the lock taken for ever.
    if (Status s = shared_->options().runtime->CheckProcess(); !s.ok()) return std::move(s).error();
    if (owner_ == std::this_thread::get_id()) {
      return Error{.code = Code::kFailedPrecondition,
                   .cause = "this thread is waiting for this iterator's next batch already",
                   .advice = "In a signal handler, use an iterator of its own"};
    }
    const Interrupt interrupt = OnSignals();
    while (!turn_.try_lock_for(kInterruptInterval)) {
      if (interrupt()) return Error{Code::kCancelled, "interrupted"};
    }
    const std::lock_guard turn(turn_, std::adopt_lock);
    owner_ = std::this_thread::get_id();
    auto done = use(interrupt);
    place_->Set(cursor_->position());
    owner_ = std::thread::id();
    return done;
  }

  std::shared_ptr<SharedLoader> shared_;
  std::timed_mutex turn_;
  std::atomic<std::thread::id> owner_;  // has the turn
  const std::shared_ptr<Place> place_ = std::make_shared<Place>();
  std::unique_ptr<Cursor> cursor_;
  const size_t columns_;
  std::vector<uint64_t> sample_ids_;  // of the last batch
};

class LoaderHandle {
 public:
  LoaderHandle(const std::string& key, const std::string& spec, const SourceHandle& source,
               const RuntimeHandle& runtime)
      : columns_(source.labels ? 2 : 1) {
    LoaderOptions options = Value(ParseLoaderSpec(spec, source.source));
    options.runtime = runtime.runtime;
    Result<std::shared_ptr<SharedLoader>> opened = [&] {
      const WithoutGil released;
      return Registry::Get().FindOrOpen(key, [&](std::shared_ptr<EpochCounter> epochs) {
        return SharedLoader::Open(std::move(options), std::move(epochs));
      });
    }();
    shared_ = Value(std::move(opened));
  }
  ~LoaderHandle() { LetGo(shared_); }

  std::unique_ptr<CursorHandle> Iterate(std::optional<uint64_t> epoch, bool repeat) const {
    return std::make_unique<CursorHandle>(shared_, epoch, repeat, columns_);
  }

  void Stop() const {
    const WithoutGil released;
    shared_->Stop();
  }

  // (dtype, shape of a row) of each array of a batch.
  std::vector<std::pair<std::string, std::vector<int64_t>>> Elements() const {
    std::vector<std::pair<std::string, std::vector<int64_t>>> elements;
    for (const ColumnSpec& column : std::span(shared_->columns()).first(columns_)) {
      elements.emplace_back(NameOf(column.dtype), column.row_shape);
    }
    return elements;
  }

  py::dict Stats() const;
  SharedLoader& shared() const { return *shared_; }

 private:
  const size_t columns_;
  std::shared_ptr<SharedLoader> shared_;
};

py::dict LoaderHandle::Stats() const {
  const LoaderStats stats = shared_->Stats();
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  py::dict all;
  all["samples"] = stats.samples;
  all["batches"] = stats.batches;
  all["bytes_read"] = stats.bytes_read;
  all["wait_seconds"] = seconds(stats.wait_ns);
  all["decode_seconds"] = seconds(stats.stages.decode_ns);
  all["resize_seconds"] = seconds(stats.stages.resize_ns);
  all["augment_seconds"] = seconds(stats.stages.augment_ns);
  all["mix_seconds"] = seconds(stats.stages.mix_ns);
  all["read_cpu_seconds"] = seconds(stats.read_cpu_ns);
  all["indexed"] = stats.decoded.indexed;
  all["index_stale"] = stats.decoded.stale;
  all["index_contradicted"] = stats.decoded.contradicted;
  all["depth"] = stats.depth;
  all["lent_batches"] = stats.lent_batches;
  all["lent_bytes"] = stats.lent_bytes;
  all["batch_bytes"] = stats.slot_bytes;
  all["memory_used"] = stats.memory_used;
  all["memory_peak"] = stats.memory_peak;
  all["memory_budget"] = stats.memory_budget;
  all["threads"] = stats.threads;
  all["threads_seen"] = stats.threads_seen;
  all["executor"] = stats.executor;
  all["reader"] = stats.reader;
  all["reader_reason"] = stats.reader_reason;
  all["plan"] = stats.plan;
  return all;
}

}  // namespace

void AddLoader(py::module_& module) {
  py::class_<Place, std::shared_ptr<Place>>(module, "Place").def("get", &Place::Get);
  py::class_<CursorHandle>(module, "Cursor")
      .def("next", &CursorHandle::Next)
      .def(
          "seek",
          [](CursorHandle& self, uint64_t epoch, uint64_t index) {
            Check(self.Seek(epoch, index));
          },
          py::arg("epoch"), py::arg("index"))
      .def_property_readonly("place", &CursorHandle::place)
      .def_property_readonly("sample_ids", &CursorHandle::sample_ids);
  py::class_<LoaderHandle>(module, "Loader")
      .def(py::init<const std::string&, const std::string&, const SourceHandle&,
                    const RuntimeHandle&>(),
           py::arg("key"), py::arg("spec"), py::arg("source"), py::arg("runtime"))
      .def("iterate", &LoaderHandle::Iterate, py::arg("epoch"), py::arg("repeat"))
      .def("stop", &LoaderHandle::Stop)
      .def("stats", &LoaderHandle::Stats)
      .def_property_readonly("elements", &LoaderHandle::Elements)
      .def_property_readonly(
          "batches_per_epoch",
          [](const LoaderHandle& self) { return self.shared().batches_per_epoch(); })
      .def_property_readonly("last_rows",
                             [](const LoaderHandle& self) { return self.shared().last_rows(); })

      .def_property(
          "next_epoch", [](const LoaderHandle& self) { return self.shared().epochs().next(); },
          [](const LoaderHandle& self, uint64_t epoch) { self.shared().epochs().set_next(epoch); });
}

}  // namespace stoker::python
