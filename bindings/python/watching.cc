#include "bindings/python/watching.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/time/stage_times.h"

namespace stoker::python {

namespace py = pybind11;

std::optional<std::pair<std::string, std::string>> LoaderSnapshots::Take() {
  const WithoutGil released;
  const std::shared_ptr<const Loader> loader = loader_.lock();
  if (loader == nullptr) return std::nullopt;
  recent_.Add(loader->Stats(), NowNanoseconds());
  return std::pair(recent_.panel(), recent_.line());
}

TraceHandle::TraceHandle(const Loader& loader, std::string path, uint64_t memory) {
  file_ = Value([&] {
    const WithoutGil released;
    return TraceFile::Start(loader.options().runtime, std::move(path), {.memory = memory});
  }());
}

TraceHandle::~TraceHandle() {
  const WithoutGil released;
  file_.reset();
}

std::tuple<uint64_t, uint64_t, uint64_t> TraceHandle::Stop() {
  const TraceSummary told = Value([&] {
    const WithoutGil released;
    return file_->Stop();
  }());
  return {told.events, told.dropped, told.bytes};
}

void AddWatching(py::module_& module) {
  py::class_<LoaderSnapshots>(module, "Looks").def("look", &LoaderSnapshots::Take);
  py::class_<TraceHandle>(module, "Trace").def("stop", &TraceHandle::Stop);
}

}  // namespace stoker::python
