#include "bindings/python/waiting.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bindings/c/registry.h"

namespace stoker::python {

namespace {

// Of the interpreter, which the process has one of.
std::atomic<unsigned long> main_thread{0};
std::atomic<bool> leaving{false};
std::atomic<int> restoring{0};  // threads that take the GIL back now

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

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  restoring.fetch_add(1);  // before `leaving` is looked at: Leave looks the other way round
  if (leaving.load() && !OnMainThread()) {
    restoring.fetch_sub(1);
    while (true) pause();
  }
  PyEval_RestoreThread(static_cast<PyThreadState*>(state_));
  restoring.fetch_sub(1);
}

void Leave() {
  const WithoutGil released;  // so that those who are at it can have it
  leaving = true;
  Registry::Get().StopAll();
  while (restoring != 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void NoteMainThread() {
  main_thread = PyThread_get_thread_ident();
  restoring = 0;  // those threads are the parent's
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
  int raised = 0;
  if (PyErr_Occurred() == nullptr && PyErr_CheckSignals() != 0) {
    PyErr_Clear();
    PyErr_SetInterrupt();
    raised = 1;
  }
  PyGILState_Release(state);
  return raised;
}

}  // namespace stoker::python
