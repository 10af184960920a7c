#include "bindings/python/waiting.h"

#include <pybind11/pybind11.h>

#include <atomic>

namespace stoker::python {

namespace {

// Python's; the process has one.
std::atomic<unsigned long> main_thread{0};

bool Finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

bool MayRunHandlers() {
  return PyThread_get_thread_ident() == main_thread.load(std::memory_order_relaxed) &&
         Py_IsInitialized() != 0 && !Finalizing();
}

}  // namespace

void NoteMainThread() {
  const auto main = pybind11::module_::import("threading").attr("main_thread")();
  main_thread = main.attr("ident").cast<unsigned long>();
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
