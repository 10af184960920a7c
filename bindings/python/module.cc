// stoker._stoker: the extension module that stoker/*.py uses. Not for other users.
#include "bindings/python/module.h"

#include <pybind11/stl.h>

#include <array>
#include <string>
#include <utility>

#include "bindings/c/described.h"
#include "bindings/c/stoker_c.h"
#include "bindings/python/errors.h"
#include "bindings/python/waiting.h"
#include "engine/runtime/executor.h"

namespace stoker::python {

namespace py = pybind11;

RuntimeHandle::~RuntimeHandle() {
  if (runtime != nullptr) Release({}, runtime);
}

namespace {

// `reader`, `executor`: indices into the lists of names in stoker/_runtime.py.
RuntimeHandle OpenRuntime(int threads, uint64_t memory_budget, int reader, int executor,
                          uint32_t reads_in_flight, double stall_seconds, double read_timeout) {
  RuntimeOptions options;
  options.stall_seconds = stall_seconds;
  options.read_timeout = read_timeout;
  options.threads = threads;
  options.memory_budget = memory_budget;
  options.reads_in_flight = reads_in_flight;
  options.reader = std::array{ReaderKind::kAuto, ReaderKind::kUring, ReaderKind::kPread}.at(reader);
  options.executor = std::array{ExecutorKind::kTbb, ExecutorKind::kThreads}.at(executor);
  Result<std::shared_ptr<Runtime>> runtime = [&] {
    const WithoutGil released;
    return Runtime::Create(options);
  }();
  return RuntimeHandle(Value(std::move(runtime)));
}

py::dict Describe(const RuntimeHandle& self) {
  const RuntimeOptions& options = self.runtime->options();
  py::dict all;
  all["threads"] = options.threads;
  all["memory_budget"] = options.memory_budget;
  all["reader"] = self.runtime->reader().kind == ReaderKind::kUring ? "uring" : "pread";
  all["reads_in_flight"] = options.reads_in_flight;
  all["executor"] = self.runtime->executor().name();
  all["stall_seconds"] = options.stall_seconds;
  all["read_timeout"] = options.read_timeout;
  return all;
}

}  // namespace

// Free-threaded CPython keeps the GIL off: state that threads share has a lock, or never changes.
PYBIND11_MODULE(_stoker, module, py::mod_gil_not_used()) {
  NoteMainThread(
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>());
  module.attr("__version__") = STOKER_VERSION;
  py::class_<RuntimeHandle>(module, "Runtime")
      .def(py::init([] { return RuntimeHandle(); }))
      .def(py::init(&OpenRuntime), py::arg("threads"), py::arg("memory_budget"), py::arg("reader"),
           py::arg("executor"), py::arg("reads_in_flight"), py::arg("stall_seconds"),
           py::arg("read_timeout"))
      .def("describe", &Describe);
  module.def("described", &DescribedAsJson);
  module.def("after_fork", &AfterFork);
  module.def("leave", &BeginShutdown, py::arg("seconds"));
  module.def("calls_in_progress", &CallsInProgress);
  py::class_<BackgroundTask>(module, "BackgroundTask")
      .def("wait", &BackgroundTask::Wait, py::arg("seconds"));
  AddSources(module);
  AddDatasetSource(module);
  AddDerivedSources(module);
  AddTensor(module);
  AddIterator(module);
  AddWatching(module);
  AddLoader(module);
  AddDeviceLoader(module);
  AddCompose(module);
  AddDecode(module);
  AddProcessor(module);
  AddShow(module);
  // For plugins in this process: the address of the table of C functions, and of a function that
  // lets Ctrl-C end their waits.
  module.def("api_address",
             [] { return reinterpret_cast<uintptr_t>(stoker_get_api(STOKER_ABI_VERSION)); });
  module.def("interrupt_address", [] { return reinterpret_cast<uintptr_t>(&AskedByPlugin); });
}

}  // namespace stoker::python
