#include "bindings/python/iterator.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/batches/arrays.h"
#include "bindings/python/batches/tensor.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/result/try.h"

namespace stoker::python {

namespace py = pybind11;

// How a batch is made for the program.
struct Form {
  py::object type;     // class of named tuples; None means batches are their only column
  bool ids = false;    // appends to the columns the rows' sample ids, an array of int64
  bool paths = false;  // appends a list of the rows' files
  // Called with the batch made so far and its name, and returns the batch; or None.
  py::object convert;
};

namespace {

// The base of an iterator in Python. Its __next__ runs none of Python's bytecode after a batch was
// delivered, where a signal handler could raise before the program has it.
class Batches {
 public:
  // `iteration`: an IteratorHandle.
  Batches(py::object iteration, Form form);
  py::object Next() const { return Next(form_); }

 private:
  friend class LaterBatches;
  template <typename T>
  friend struct Collected;
  py::object Next(const Form& form) const;
  std::array<py::object*, 3> held() { return {&iteration_, &form_.type, &form_.convert}; }

  py::object iteration_;
  Form form_;
};

// The same, over the Batches that `begin` returns when the first batch is requested, each converted
// by `convert`. `end`, unless it is None, is called at the end of the epoch.
class LaterBatches {
 public:
  LaterBatches(py::object begin, py::object convert, py::object end);
  py::object Next();
  py::object begun() const {  // or None
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  template <typename T>
  friend struct Collected;
  std::array<py::object*, 4> held() { return {&begin_, &convert_, &end_, &begun_}; }

  py::object begin_, convert_, end_, begun_;
  mutable std::mutex mutex_;  // of begun_; taken and released with the GIL held
};

// Lets Python's garbage collector find cycles through the objects that a T holds.
template <typename T>
struct Collected {
  // Null while it is being made.
  static T* Of(PyObject* self) {
    auto* const instance = reinterpret_cast<py::detail::instance*>(self);
    const bool made = instance->simple_layout && instance->simple_holder_constructed;
    return made ? static_cast<T*>(instance->simple_value_holder[0]) : nullptr;
  }
  static int Traverse(PyObject* self, visitproc visit, void* arg) {
    if (const int stop = visit(reinterpret_cast<PyObject*>(Py_TYPE(self)), arg)) return stop;
    T* const of = Of(self);
    if (of == nullptr) return 0;
    for (const py::object* object : of->held()) {
      if (!*object) continue;
      if (const int stop = visit(object->ptr(), arg)) return stop;
    }
    return 0;
  }
  static int Clear(PyObject* self) {
    T* const of = Of(self);
    if (of == nullptr) return 0;
    for (py::object* object : of->held()) *object = py::none();
    return 0;
  }
  static py::custom_type_setup Setup() {
    return py::custom_type_setup([](PyHeapTypeObject* type) {
      type->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
      type->ht_type.tp_traverse = Traverse;
      type->ht_type.tp_clear = Clear;
    });
  }
};

void Warn(const char* kind, const std::string& text) {
  const py::object category = py::module_::import("stoker._errors").attr(kind);
  // Stack level 1 is the caller of the iterator's __next__, which is not a Python function.
  if (PyErr_WarnEx(category.ptr(), text.c_str(), 1) != 0) throw py::error_already_set();
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

// Returns a column of a batch on the CPU.
py::object TensorOf(const Batch& batch, size_t column) {
  py::object values = py::cast(Tensor(batch, column));
  if (batch.columns()[column].offsets == nullptr) return values;
  return RaggedOf(values, py::cast(Tensor::OffsetsOf(batch, column)));
}

// Returns a named tuple of `columns`. Class.__new__ is called, and not the class or its _make,
// because those are Python functions.
py::object MakeNamedTuple(const py::object& type, const py::tuple& columns) {
  const py::tuple arguments = py::make_tuple(columns);
  auto* const of = reinterpret_cast<PyTypeObject*>(type.ptr());
  PyObject* const made = PyTuple_Type.tp_new(of, arguments.ptr(), nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void ThrowPending() {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
}

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

py::tuple TupleOf(const BatchName& batch) {
  return py::make_tuple(batch.epoch, batch.index, batch.start);
}

class IteratorHandle::Turn {
 public:
  explicit Turn(IteratorHandle& of) : of_(of) {}
  ~Turn() {
    if (!mine_) return;
    of_.owner_ = std::thread::id();
    of_.in_use_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Waits for it, without the GIL.
  Status Begin();

 private:
  IteratorHandle& of_;
  bool mine_ = false;
};

Status IteratorHandle::Turn::Begin() {
  // This check must come first: in a forked child the lock may have been held by another thread and
  // never be released.
  TRY(of_.loader_->options().runtime->CheckProcess());
  if (of_.owner_ == std::this_thread::get_id()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this thread is already waiting for this iterator's next batch",
                 .advice = "Use a separate iterator in signal handlers"};
  }
  const Interrupt interrupt = of_.OnSignalsOrClosed();
  while (!of_.in_use_.try_lock_for(kInterruptInterval)) {
    // At the interpreter's end the thread that has its turn may never come back.
    if (interrupt() || ShuttingDown()) return Error{Code::kCancelled, "interrupted"};
  }
  of_.owner_ = std::this_thread::get_id();
  mine_ = true;
  return {};
}

IteratorHandle::IteratorHandle(std::shared_ptr<Loader> loader, std::unique_ptr<Iterator> iterator,
                               size_t columns, As as, bool counts,
                               std::shared_ptr<const Closed> closed)
    : loader_(std::move(loader)),
      columns_(columns),
      as_(as),
      closed_(std::move(closed)),
      iterator_(std::move(iterator)) {
  if (const auto pinned = iterator_->position()) position_->Set(*pinned);
  iterator_->ReportTo(position_, counts);
}

IteratorHandle::~IteratorHandle() {
  fetched_.reset();
  Release(CallsOf(loader_->options()), iterator_, loader_);
}

Interrupt IteratorHandle::OnSignalsOrClosed() const {
  return [this, signals = OnSignals()] { return closed() || signals(); };
}

py::object IteratorHandle::Next(const Form& form) {
  Check(CheckNotInOwnCall(loader_->options()));
  if (const auto warning = loader_->TakeWarning()) Warn("MemoryWarning", *warning);
  if (const auto warning = loader_->TakeCacheWarning()) Warn("CacheWarning", *warning);
  Turn turn(*this);
  const Status fetched = [&]() -> Status {
    const WithoutGil released;
    TRY(turn.Begin());
    return Fetch();
  }();
  ThrowPending();
  if (!fetched.ok() && fetched.error().code == Code::kCancelled && ShuttingDown()) {
    Raise({.code = Code::kCancelled,
           .cause = "the interpreter is shutting down",
           .advice = "To iterate in an atexit handler, register it after `import stoker`"});
  }
  Check(fetched);
  py::object made;
  try {
    if (!fetched_->end()) made = MakeObject(form);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  } catch (...) {
    iterator_->Postpone();
    throw;
  }
  Deliver();
  if (!made) throw py::stop_iteration();
  return made;
}

Status IteratorHandle::Fetch() {
  const Error was_closed{Code::kCancelled, "the loader was closed"};
  if (closed()) return was_closed;
  if (fetched_ && iterator_->Resume()) return {};
  fetched_.reset();
  Status status = FetchNext();
  if (!status.ok() && status.error().code == Code::kCancelled && closed()) return was_closed;
  return status;
}

Status IteratorHandle::FetchNext() {
  const Interrupt interrupt = OnSignalsOrClosed();
  Fetched next;
  if (loader_->options().to_device) {
    ASSIGN_OR_RETURN(SplitBatch batch, iterator_->FetchOnDevices(interrupt));
    for (DeviceBatch& part : batch.parts) next.parts.push_back(ForTensors(std::move(part)));
  } else {
    ASSIGN_OR_RETURN(next.host, iterator_->Fetch(interrupt));
  }
  fetched_ = std::move(next);
  return {};
}

void IteratorHandle::Deliver() {
  const Fetched delivered = *std::exchange(fetched_, std::nullopt);
  iterator_->Accept();
  if (delivered.end()) return;
  const std::lock_guard lock(sample_ids_mutex_);
  sample_ids_.clear();
  const auto add_ids = [this](std::span<const uint64_t> ids) {
    sample_ids_.insert(sample_ids_.end(), ids.begin(), ids.end());
  };
  if (delivered.host) add_ids(delivered.host.sample_ids());
  for (const auto& part : delivered.parts) add_ids(part->sample_ids());
}

py::object IteratorHandle::MakeObject(const Form& form) const {
  py::object made;
  if (as_ != As::kParts) {
    made = MadeOf(fetched_->host ? nullptr : fetched_->parts[0], form);
  } else {
    py::tuple all(fetched_->parts.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = MadeOf(fetched_->parts[i], form);
    made = std::move(all);
  }
  if (form.convert.is_none()) return made;
  const BatchName name = fetched_->host ? fetched_->host.name() : fetched_->parts[0]->name();
  return form.convert(made, TupleOf(name));
}

py::object IteratorHandle::MadeOf(const std::shared_ptr<const DeviceBatch>& device,
                                  const Form& form) const {
  const Batch& host = fetched_->host;
  const std::span<const uint64_t> ids =
      device != nullptr ? device->sample_ids() : host.sample_ids();
  py::tuple all(columns_ + (form.ids ? 1 : 0) + (form.paths ? 1 : 0));
  const SampleSource& source = *loader_->options().source;
  for (size_t c = 0; c < columns_; ++c) {
    if (IsString(loader_->columns()[c].dtype)) {
      all[c] = device != nullptr ? StringsOf(source, c, ids) : StringsOf(host, c, source);
    } else if (device != nullptr) {
      all[c] = py::cast(Tensor(device, c));
    } else {
      all[c] = as_ == As::kArrays ? ArrayOf(host, c) : TensorOf(host, c);
    }
  }
  if (form.ids) all[columns_] = py::array_t<int64_t>(ids.size(), SignedIds(ids).data());
  if (form.paths) all[all.size() - 1] = PathsOf(source, ids);
  return form.type.is_none() ? py::object(all[0]) : MakeNamedTuple(form.type, all);
}

BatchName IteratorHandle::Begin() {
  Turn turn(*this);
  const Status begun = [&] {
    const WithoutGil released;
    return turn.Begin();
  }();
  ThrowPending();
  Check(begun);
  return iterator_->Begin();
}

void IteratorHandle::Seek(BatchName batch) {
  Check(CheckNoCall("moved"));
  Turn turn(*this);
  const Status status = [&]() -> Status {
    const WithoutGil released;
    TRY(turn.Begin());
    fetched_.reset();
    return iterator_->Seek(batch);
  }();
  ThrowPending();
  Check(status);
  position_->Set(batch);
}

namespace {

Batches::Batches(py::object iteration, Form form)
    : iteration_(std::move(iteration)), form_(std::move(form)) {}

py::object Batches::Next(const Form& form) const {
  return iteration_.cast<IteratorHandle&>().Next(form);
}

LaterBatches::LaterBatches(py::object begin, py::object convert, py::object end)
    : begin_(std::move(begin)),
      convert_(std::move(convert)),
      end_(std::move(end)),
      begun_(py::none()) {}

py::object LaterBatches::Next() {
  py::object begun = this->begun();
  if (begun.is_none()) {
    const py::object made = begin_();
    const std::lock_guard lock(mutex_);
    if (begun_.is_none()) begun_ = made;  // otherwise another thread has begun meanwhile
    begun = begun_;
  }
  const auto& batches = begun.cast<const Batches&>();
  Form form = batches.form_;
  form.convert = convert_;
  try {
    return batches.Next(form);
  } catch (const py::stop_iteration&) {
    if (!end_.is_none()) end_();
    throw;
  }
}

}  // namespace

void AddIterator(py::module_& module) {
  py::class_<Position, std::shared_ptr<Position>>(module, "Position")
      .def("get", [](const Position& self) {
        const std::optional<BatchName> at = self.Get();
        return at ? py::object(TupleOf(*at)) : py::none();
      });
  py::class_<IteratorHandle>(module, "Iterator")
      .def("begin", [](IteratorHandle& self) { return TupleOf(self.Begin()); })
      .def("seek",
           [](IteratorHandle& self, uint64_t epoch, uint64_t batch, uint64_t start) {
             self.Seek({epoch, batch, start});
           })
      .def_property_readonly("position", &IteratorHandle::position)
      .def_property_readonly("sample_ids", &IteratorHandle::sample_ids);
  const auto self = [](const py::object& batches) { return batches; };
  py::class_<Batches>(module, "Batches", Collected<Batches>::Setup())
      .def(py::init([](py::object iteration, py::object type, bool ids, bool paths) {
             return Batches(std::move(iteration), {std::move(type), ids, paths, py::none()});
           }),
           py::arg("iteration"), py::arg("type"), py::arg("ids"), py::arg("paths"))
      .def("__iter__", self)
      .def("__next__", [](const Batches& batches) { return batches.Next(); });
  py::class_<LaterBatches>(module, "LaterBatches", Collected<LaterBatches>::Setup())
      .def(py::init<py::object, py::object, py::object>(), py::arg("begin"), py::arg("convert"),
           py::arg("end") = py::none())
      .def("__iter__", self)
      .def("__next__", &LaterBatches::Next)
      .def_property_readonly("begun", &LaterBatches::begun);
}

}  // namespace stoker::python
