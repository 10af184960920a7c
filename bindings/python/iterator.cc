#include "bindings/python/iterator.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/arrays.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/tensor.h"
#include "bindings/python/waiting.h"
#include "core/try.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

void Warn(const char* kind, const std::string& text) {
  const py::object category = py::module_::import("stoker._errors").attr(kind);
  // Stack level 2 is the caller of the iterator's __next__.
  if (PyErr_WarnEx(category.ptr(), text.c_str(), 2) != 0) throw py::error_already_set();
}

std::vector<int64_t> SignedIds(std::span<const uint64_t> ids) { return {ids.begin(), ids.end()}; }

py::list PathsOf(const SampleSource& source, std::span<const uint64_t> ids) {
  py::list paths(ids.size());
  std::string path;
  for (size_t i = 0; i < ids.size(); ++i) {
    source.PathOf(source.RangeOf(ids[i]).file, path);
    PyObject* const text =
        PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
    if (text == nullptr) throw py::error_already_set();
    PyList_SET_ITEM(paths.ptr(), static_cast<Py_ssize_t>(i), text);
  }
  return paths;
}

// Refuses to wait for a batch inside a call of the loader's own code: that batch would wait for the
// call.
Status CheckNotInOwnCall(const LoaderOptions& options) {
  if (!InCall() || !InCallOf(CallsOf(options))) return {};
  return Error{.code = Code::kFailedPrecondition,
               .cause =
                   "a loader cannot be iterated in a call that it makes: the batch would wait "
                   "for the call",
               .advice = "Iterate another loader there, or this one where its batches are used"};
}

// Marks this thread as the owner during its lifetime.
class OwnerScope {
 public:
  explicit OwnerScope(std::atomic<std::thread::id>& owner) : owner_(owner) {
    owner_ = std::this_thread::get_id();
  }
  ~OwnerScope() { owner_ = std::thread::id(); }
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;

 private:
  std::atomic<std::thread::id>& owner_;
};

}  // namespace

std::vector<uintptr_t> CallsOf(const LoaderOptions& options) {
  std::vector<const SampleSource*> called;
  options.source->AddCalled(called);
  std::vector<uintptr_t> of;
  for (const SampleSource* source : called) of.push_back(reinterpret_cast<uintptr_t>(source));
  const MapFunction* const map = options.map.get();
  if (map != nullptr && map->calls() != 0) of.push_back(reinterpret_cast<uintptr_t>(map));
  return of;
}

std::optional<BatchName> Position::Get() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

void Position::Set(const std::optional<BatchName>& at) {
  const std::lock_guard lock(mutex_);
  if (at) position_ = at;
}

IteratorHandle::IteratorHandle(std::shared_ptr<Loader> loader, std::unique_ptr<Iterator> iterator,
                               size_t columns, As as, std::shared_ptr<const Closed> closed)
    : loader_(std::move(loader)),
      columns_(columns),
      as_(as),
      closed_(std::move(closed)),
      iterator_(std::move(iterator)) {
  position_->Set(iterator_->position());
}

IteratorHandle::~IteratorHandle() { Release(CallsOf(loader_->options()), iterator_, loader_); }

std::optional<py::tuple> IteratorHandle::Next(bool with_ids, bool with_paths) {
  Check(CheckNotInOwnCall(loader_->options()));
  if (const auto warning = loader_->TakeWarning()) Warn("MemoryWarning", *warning);
  if (const auto warning = loader_->TakeCacheWarning()) Warn("CacheWarning", *warning);
  Result<Taken> taken = Taken();
  {
    const WithoutGil released;
    taken = Take();
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  if (!taken.ok() && taken.error().code == Code::kCancelled && ShuttingDown()) {
    Raise({.code = Code::kCancelled,
           .cause = "the interpreter is shutting down",
           .advice = "To iterate in an atexit handler, register it after `import stoker`"});
  }
  if (!taken.ok()) Raise(taken.error());
  const auto& [host, parts] = *taken;
  if (!host && parts.empty()) return std::nullopt;
  sample_ids_.clear();
  const auto add_ids = [this](std::span<const uint64_t> ids) {
    sample_ids_.insert(sample_ids_.end(), ids.begin(), ids.end());
  };
  if (host) add_ids(host.sample_ids());
  for (const auto& part : parts) add_ids(part->sample_ids());
  if (as_ != As::kParts) {
    return Columns(host, host ? nullptr : parts[0], with_ids, with_paths);
  }
  py::tuple all(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    all[i] = Columns(host, parts[i], with_ids, with_paths);
  }
  return all;
}

py::tuple IteratorHandle::Columns(const Batch& host,
                                  const std::shared_ptr<const DeviceBatch>& device, bool with_ids,
                                  bool with_paths) const {
  const std::span<const uint64_t> ids =
      device != nullptr ? device->sample_ids() : host.sample_ids();
  py::tuple all(columns_ + (with_ids ? 1 : 0) + (with_paths ? 1 : 0));
  const SampleSource& source = *loader_->options().source;
  for (size_t c = 0; c < columns_; ++c) {
    if (IsString(loader_->columns()[c].dtype)) {
      all[c] = device != nullptr ? StringsOf(source, c, ids) : StringsOf(host, c, source);
    } else if (device != nullptr) {
      all[c] = py::cast(Tensor(device, c));
    } else {
      all[c] = as_ == As::kArrays ? ArrayOf(host, c) : py::cast(Tensor(host, c));
    }
  }
  if (with_ids) all[columns_] = py::array_t<int64_t>(ids.size(), SignedIds(ids).data());
  if (with_paths) all[all.size() - 1] = PathsOf(source, ids);
  return all;
}

void IteratorHandle::Seek(BatchName batch) {
  Check(CheckNoCall("moved"));
  Status status;
  {
    const WithoutGil released;
    status = WithExclusiveUse([&](const Interrupt&) { return iterator_->Seek(batch); });
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  Check(status);
}

Result<IteratorHandle::Taken> IteratorHandle::Take() {
  return WithExclusiveUse([this](const Interrupt& interrupt) -> Result<Taken> {
    const Error was_closed{Code::kCancelled, "the loader was closed"};
    if (closed()) return was_closed;
    if (!iterator_->position()) {
      // This comes before waiting, so that a state saved meanwhile contains the epoch.
      TRY(iterator_->Seek({loader_->epochs().Take(), 0}));
      position_->Set(iterator_->position());
    }
    Result<Taken> taken = TakeNext(interrupt);
    if (!taken.ok() && taken.error().code == Code::kCancelled && closed()) return was_closed;
    return taken;
  });
}

Result<IteratorHandle::Taken> IteratorHandle::TakeNext(const Interrupt& interrupt) {
  Taken taken;
  if (loader_->options().to_device) {
    ASSIGN_OR_RETURN(SplitBatch batch, iterator_->NextOnDevices(interrupt));
    for (DeviceBatch& part : batch.parts) taken.parts.push_back(ForTensors(std::move(part)));
  } else {
    ASSIGN_OR_RETURN(taken.host, iterator_->Next(interrupt));
  }
  return taken;
}

template <typename Use>
auto IteratorHandle::WithExclusiveUse(const Use& use) -> decltype(use(Interrupt())) {
  // This check must come first: in a forked child the lock may have been held by another thread and
  // never be released.
  TRY(loader_->options().runtime->CheckProcess());
  if (owner_ == std::this_thread::get_id()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this thread is already waiting for this iterator's next batch",
                 .advice = "Use a separate iterator in signal handlers"};
  }
  const Interrupt interrupt = [this, signals = OnSignals()] { return closed() || signals(); };
  while (!in_use_.try_lock_for(kInterruptInterval)) {
    if (interrupt()) return Error{Code::kCancelled, "interrupted"};
  }
  const std::lock_guard turn(in_use_, std::adopt_lock);
  const OwnerScope owner(owner_);
  auto done = use(interrupt);
  position_->Set(iterator_->position());
  return done;
}

void AddIterator(py::module_& module) {
  py::class_<Position, std::shared_ptr<Position>>(module, "Position")
      .def("get", [](const Position& self) {
        const std::optional<BatchName> at = self.Get();
        return at ? py::object(py::make_tuple(at->epoch, at->index, at->start)) : py::none();
      });
  py::class_<IteratorHandle>(module, "Iterator")
      .def("next", &IteratorHandle::Next, py::arg("ids") = false, py::arg("paths") = false)
      .def("seek",
           [](IteratorHandle& self, uint64_t epoch, uint64_t batch, uint64_t start) {
             self.Seek({epoch, batch, start});
           })
      .def_property_readonly("position", &IteratorHandle::position)
      .def_property_readonly("sample_ids", &IteratorHandle::sample_ids);
}

}  // namespace stoker::python
