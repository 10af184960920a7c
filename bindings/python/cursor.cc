#include "bindings/python/cursor.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <string>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/try.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

void Warn(const std::string& text) {
  const py::object category = py::module_::import("stoker._errors").attr("MemoryWarning");
  // 2: the caller of the iterator's __next__.
  if (PyErr_WarnEx(category.ptr(), text.c_str(), 2) != 0) throw py::error_already_set();
}

// This thread has the turn while this lives.
class HasTurn {
 public:
  explicit HasTurn(std::atomic<std::thread::id>& owner) : owner_(owner) {
    owner_ = std::this_thread::get_id();
  }
  ~HasTurn() { owner_ = std::thread::id(); }
  HasTurn(const HasTurn&) = delete;
  HasTurn& operator=(const HasTurn&) = delete;

 private:
  std::atomic<std::thread::id>& owner_;
};

}  // namespace

std::optional<std::pair<uint64_t, uint64_t>> Place::Get() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

void Place::Set(const std::optional<BatchName>& at) {
  const std::lock_guard lock(mutex_);
  if (at) place_.emplace(at->epoch, at->index);
}

CursorHandle::CursorHandle(std::shared_ptr<SharedLoader> shared,
                           std::unique_ptr<Iteration> iteration,
                           std::shared_ptr<const Closed> closed)
    : shared_(std::move(shared)), closed_(std::move(closed)), iteration_(std::move(iteration)) {
  place_->Set(iteration_->position());
}

CursorHandle::~CursorHandle() {
  LetGo(iteration_);
  LetGo(shared_);
}

std::optional<py::tuple> CursorHandle::Next() {
  if (const std::optional<std::string> warning = shared_->TakeWarning()) Warn(*warning);
  Result<Taken> taken = Taken();
  {
    const WithoutGil released;
    taken = Take();
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  if (!taken.ok() && taken.error().code == Code::kCancelled && Leaving()) {
    Raise({.code = Code::kCancelled,
           .cause = "the interpreter is ending",
           .advice = "In atexit handlers, iterate in those registered after `import stoker`"});
  }
  if (!taken.ok()) Raise(taken.error());
  if (*taken == nullptr) return std::nullopt;
  sample_ids_ = (*taken)->sample_ids();
  return (*taken)->Columns();
}

void CursorHandle::Seek(uint64_t epoch, uint64_t index) {
  Status status;
  {
    const WithoutGil released;
    status = InTurn([&](const Interrupt&) { return iteration_->Seek({epoch, index}); });
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  Check(status);
}

Result<CursorHandle::Taken> CursorHandle::Take() {
  return InTurn([this](const Interrupt& interrupt) -> Result<Taken> {
    const Error was_closed{Code::kCancelled, "the loader was closed"};
    if (closed()) return was_closed;
    if (!iteration_->position()) {
      // Before the wait, so that a state saved meanwhile has the epoch.
      if (Status s = iteration_->Seek({shared_->epochs().Take(), 0}); !s.ok()) {
        return std::move(s).error();
      }
      place_->Set(iteration_->position());
    }
    Result<Taken> taken = iteration_->Next(interrupt);
    if (!taken.ok() && taken.error().code == Code::kCancelled && closed()) return was_closed;
    return taken;
  });
}

template <typename Use>
auto CursorHandle::InTurn(const Use& use) -> decltype(use(Interrupt())) {
  // First: in a forked child another thread may have left the lock taken for ever.
  TRY(shared_->options().runtime->CheckProcess());
  if (owner_ == std::this_thread::get_id()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this thread is waiting for this iterator's next batch already",
                 .advice = "In a signal handler, use an iterator of its own"};
  }
  const Interrupt interrupt = [this, signals = OnSignals()] { return closed() || signals(); };
  while (!turn_.try_lock_for(kInterruptInterval)) {
    if (interrupt()) return Error{Code::kCancelled, "interrupted"};
  }
  const std::lock_guard turn(turn_, std::adopt_lock);
  const HasTurn owner(owner_);
  auto done = use(interrupt);
  place_->Set(iteration_->position());
  return done;
}

void AddCursor(py::module_& module) {
  py::class_<Place, std::shared_ptr<Place>>(module, "Place").def("get", &Place::Get);
  py::class_<CursorHandle>(module, "Cursor")
      .def("next", &CursorHandle::Next)
      .def("seek", &CursorHandle::Seek, py::arg("epoch"), py::arg("index"))
      .def_property_readonly("place", &CursorHandle::place)
      .def_property_readonly("sample_ids", &CursorHandle::sample_ids);
}

}  // namespace stoker::python
