#include "bindings/python/waiting.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/registry.h"
#include "core/system/start_thread.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// State of the interpreter; there is one per process.
std::atomic<unsigned long> main_thread{0};
std::atomic<bool> shutting_down{false};
std::atomic<int> restoring{0};  // threads that are about to take the GIL back
std::atomic<int> calling{0};    // calls in progress
std::atomic<int> releasing{0};  // threads of BackgroundTask
thread_local int calls_here = 0;
thread_local const UserCall* call_here = nullptr;

// The calls in progress. Never destroyed, because threads may come late.
struct AllCalls {
  std::mutex mutex;  // taken and released with the GIL held
  std::vector<const UserCall*> calls;
};

AllCalls& TheCalls() {
  static auto* all = new AllCalls;
  return *all;
}

// References to drop once the GIL is available. Never destroyed: threads may come late.
struct PendingDecrefs {
  std::mutex mutex;
  std::vector<PyObject*> objects;
};

PendingDecrefs& ThePendingDecrefs() {
  static auto* pending = new PendingDecrefs;
  return *pending;
}

// Calls that BeginShutdown makes. Never destroyed, either.
struct ShutdownCalls {
  struct Call {
    std::weak_ptr<void> owner;
    std::function<void()> call;
  };
  std::mutex mutex;
  std::vector<Call> calls;
};

ShutdownCalls& TheShutdownCalls() {
  static auto* calls = new ShutdownCalls;
  return *calls;
}

void RunShutdownCalls() {
  std::vector<ShutdownCalls::Call> calls;
  {
    const std::lock_guard lock(TheShutdownCalls().mutex);
    calls.swap(TheShutdownCalls().calls);
  }
  for (const ShutdownCalls::Call& one : calls) {
    if (const std::shared_ptr<void> owner = one.owner.lock()) one.call();
  }
}

int ReleasePendingDecrefs(void*) {
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(ThePendingDecrefs().mutex);
    objects.swap(ThePendingDecrefs().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);
  return 0;
}

bool OnMainThread() {
  return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed);
}

bool Finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

bool MayRunHandlers() { return OnMainThread() && Py_IsInitialized() != 0 && !Finalizing(); }

// Whether Python is running the constructor of TensorFlow's exception for the wait that ended: an
// exception raised in it would be lost (pybind11 reports RuntimeError if a constructor raises
// another exception).
bool InTensorFlowsException() {
  py::object frame =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (int above = 0; above < 4 && frame && !frame.is_none(); ++above) {
    const py::object code = frame.attr("f_code");
    const auto file = code.attr("co_filename").cast<std::string>();
    if (code.attr("co_name").cast<std::string>() == "__init__" &&
        file.find("tensorflow") != std::string::npos) {
      return true;
    }
    frame = frame.attr("f_back");
  }
  return false;
}

// Whether Ctrl-C has its default handler, which raises KeyboardInterrupt.
bool CtrlCRaises() {
  // The module `signal` is not used: its functions are Python code, which would run handlers.
  const py::module_ signals = py::module_::import("_signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

// The Python state of a thread, while the thread lives.
class ThreadsPython {
 public:
  ThreadsPython() {
    if (const WithGil gil; gil) {
      (void)PyGILState_Ensure();
      kept_ = true;
    }
  }
  ~ThreadsPython() {
    const WithGil gil;
    if (gil && kept_) PyGILState_Release(PyGILState_LOCKED);
  }
  ThreadsPython(const ThreadsPython&) = delete;
  ThreadsPython& operator=(const ThreadsPython&) = delete;

 private:
  bool kept_ = false;
};

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
}

// Returns false after `most`, or when `interrupt` ended the wait.
bool WaitForCalls(std::chrono::milliseconds most, const Interrupt& interrupt) {
  const auto deadline = std::chrono::steady_clock::now() + most;
  auto next = std::chrono::steady_clock::now() + kInterruptInterval;
  while (restoring != 0 || calling != 0 || releasing != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    if (now < next) continue;
    if (interrupt()) return false;
    next = now + kInterruptInterval;
  }
  return true;
}

// Called in a destructor: an exception must not leave it.
void WarnOfRelease(const std::vector<uintptr_t>& calls_of) {
  constexpr char kWaits[] = "releasing a loader";
  const py::error_scope kept;
  try {
    py::module_::import("stoker._user_code").attr("warn_of_calls")(kWaits, calls_of);
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable(kWaits);
  }
}

int InterruptNow(void* unused);

// Schedules InterruptNow on the main thread, between two instructions.
void InterruptLater() {
  if (Py_AddPendingCall(&InterruptNow, nullptr) != 0)
    PyErr_SetInterrupt();  // too many pending calls
}

int InterruptNow(void*) {
  if (InTensorFlowsException()) {
    InterruptLater();
    return 0;
  }
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  return -1;
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  restoring.fetch_add(1);  // before reading `shutting_down`: BeginShutdown uses the opposite order
  if (shutting_down.load() && !OnMainThread() && !InCall()) {
    restoring.fetch_sub(1);
    while (true) pause();
  }
  PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
  restoring.fetch_sub(1);
}

WithGil::WithGil() {
  restoring.fetch_add(1);  // before reading `shutting_down`, as above
  if (!shutting_down.load()) {
    calling.fetch_add(1);
    ++calls_here;
    state_ = PyGILState_Ensure();
    held_ = true;
  }
  restoring.fetch_sub(1);
}

WithGil::~WithGil() {
  if (!held_) return;
  PyGILState_Release(static_cast<PyGILState_STATE>(state_));
  --calls_here;
  calling.fetch_sub(1);
}

void KeepPythonThread() { thread_local const ThreadsPython kept; }

bool InCall() { return calls_here != 0; }

bool InCallOf(const std::vector<uintptr_t>& any) {
  for (const UserCall* call = call_here; call != nullptr; call = call->outer_) {
    if (std::ranges::find(any, call->of_) != any.end()) return true;
  }
  return false;
}

UserCall::UserCall(const void* of, std::string what)
    : of_(reinterpret_cast<uintptr_t>(of)),
      what_(std::move(what)),
      thread_(PyThread_get_thread_ident()),
      begun_(std::chrono::steady_clock::now()),
      outer_(call_here) {
  if (!gil_) return;
  call_here = this;
  const std::lock_guard lock(TheCalls().mutex);
  TheCalls().calls.push_back(this);
}

UserCall::~UserCall() {
  if (!gil_) return;
  call_here = outer_;
  const std::lock_guard lock(TheCalls().mutex);
  std::erase(TheCalls().calls, this);
}

std::vector<CallNow> CallsInProgress() {
  std::vector<CallNow> calls;
  const std::lock_guard lock(TheCalls().mutex);
  const auto now = std::chrono::steady_clock::now();
  for (const UserCall* call : TheCalls().calls) {
    const std::chrono::duration<double> so_far = now - call->begun_;
    calls.emplace_back(call->of_, call->thread_, so_far.count(), call->what_);
  }
  return calls;
}

Status CheckNoCall(const char* what) {
  if (!InCall()) return {};
  return Error{.code = Code::kFailedPrecondition,
               .cause = std::string("a loader cannot be ") + what +
                        " from inside a Map function or a dataset's __getitem__: it would wait "
                        "for that call",
               .advice = "Do it on the thread that takes the batches"};
}

struct BackgroundTask::State {
  std::function<void()> work;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;

  void Run() {
    std::exchange(work, nullptr)();
    const std::lock_guard lock(mutex);
    done = true;
    ended.notify_all();
  }
};

BackgroundTask::BackgroundTask(std::function<void()> work) : state_(std::make_shared<State>()) {
  state_->work = std::move(work);
  releasing.fetch_add(1);
  Result<std::thread> thread =
      StartThread("a thread that ends a loader", [state = state_]() mutable {
        state->Run();
        state.reset();
        releasing.fetch_sub(1);
      });
  if (thread.ok()) {
    thread->detach();
    return;
  }
  releasing.fetch_sub(1);
  if (InCall()) {
    (void)new std::shared_ptr<State>(state_);  // the work's objects must not be released here
    return;
  }
  const WithoutGil released;
  state_->Run();
}

bool BackgroundTask::Wait(double seconds) const {
  const bool ended = [&] {
    const WithoutGil released;
    return WaitFor(Milliseconds(seconds), OnSignals());
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  return ended;
}

bool BackgroundTask::WaitFor(std::chrono::milliseconds most, const Interrupt& interrupt) const {
  const auto deadline = std::chrono::steady_clock::now() + most;
  std::unique_lock lock(state_->mutex);
  while (true) {
    const auto next = std::chrono::steady_clock::now() + kInterruptInterval;
    if (state_->ended.wait_until(lock, std::min(next, deadline), [&] { return state_->done; })) {
      return true;
    }
    if (std::chrono::steady_clock::now() >= deadline) return false;
    lock.unlock();
    const bool interrupted = interrupt && interrupt();
    lock.lock();
    if (interrupted) return false;
  }
}

void ReleaseWith(const std::vector<uintptr_t>& calls_of, std::function<void()> release) {
  if (calls_of.empty() && !InCall()) {
    const WithoutGil released;
    release();
    return;
  }
  const BackgroundTask task(std::move(release));
  if (InCall()) return;
  {
    const WithoutGil released;
    if (task.WaitFor(std::chrono::seconds(10), {})) return;
  }
  WarnOfRelease(calls_of);
}

bool BeginShutdown(double seconds) {
  main_thread = PyThread_get_thread_ident();  // may differ from the thread at import
  if (!shutting_down.exchange(true)) {
    const BackgroundTask stopping([] {
      Registry::Get().StopAll();
      RunShutdownCalls();
    });
  }
  const bool ended = [&] {
    const WithoutGil released;  // lets threads that are taking the GIL have it
    return WaitForCalls(Milliseconds(seconds), OnSignals());
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();  // a signal handler's
  return ended;
}

bool ShuttingDown() { return shutting_down; }

void OnShutdown(std::weak_ptr<void> owner, std::function<void()> call) {
  ShutdownCalls& all = TheShutdownCalls();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.calls, [](const ShutdownCalls::Call& one) { return one.owner.expired(); });
  all.calls.push_back({std::move(owner), std::move(call)});
}

bool HasGil() { return Py_IsInitialized() != 0 && !Finalizing() && PyGILState_Check() != 0; }

void ReleaseLater(void* object) {
  if (shutting_down || Py_IsInitialized() == 0 || Finalizing()) return;
  {
    const std::lock_guard lock(ThePendingDecrefs().mutex);
    ThePendingDecrefs().objects.push_back(static_cast<PyObject*>(object));
  }
  if (PyGILState_Check() != 0) {
    ReleasePendingDecrefs(nullptr);
  } else {
    Py_AddPendingCall(&ReleasePendingDecrefs,
                      nullptr);  // where 32 wait already, one of the next takes all
  }
}

void NoteMainThread(unsigned long thread) { main_thread = thread; }

void AfterFork() {
  NoteMainThread(PyThread_get_thread_ident());
  restoring = releasing = 0;  // those threads belong to the parent
  calling = calls_here;
  std::erase_if(TheCalls().calls,
                [](const UserCall* call) { return call->thread_ != PyThread_get_thread_ident(); });
}

Interrupt OnSignals() {
  return [] {
    if (!MayRunHandlers()) return false;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool raised = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return raised;
  };
}

int AskedByPlugin(void*) {
  if (!MayRunHandlers()) return 0;
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool interrupted =
      PyErr_Occurred() == nullptr && CtrlCRaises() && PyOS_InterruptOccurred() != 0;
  if (interrupted) InterruptLater();
  PyGILState_Release(state);
  return interrupted ? 1 : 0;
}

}  // namespace stoker::python
