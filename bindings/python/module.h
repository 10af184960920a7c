// The parts of stoker._stoker, and the handles that they share. The Python package (stoker/) is the
// user's interface: it checks arguments, and passes options as a loader spec.
#pragma once

#include <memory>
#include <utility>

#include "engine/runtime/runtime.h"
#include "io/source/source.h"

namespace pybind11 {
class module_;
}

namespace stoker::python {

struct SourceHandle {
  std::shared_ptr<const SampleSource> source;
};

struct RuntimeHandle {
  RuntimeHandle() = default;
  explicit RuntimeHandle(std::shared_ptr<Runtime> opened) : runtime(std::move(opened)) {}
  RuntimeHandle(RuntimeHandle&&) = default;
  ~RuntimeHandle();  // without the GIL: its threads may wait for a disk

  std::shared_ptr<Runtime> runtime;  // null: the default one
};

void AddSources(pybind11::module_& module);
void AddDatasetSource(pybind11::module_& module);
void AddDerivedSources(pybind11::module_& module);
void AddLoader(pybind11::module_& module);
void AddCompose(pybind11::module_& module);
void AddDecode(pybind11::module_& module);
void AddProcessor(pybind11::module_& module);
void AddShow(pybind11::module_& module);
void AddTensor(pybind11::module_& module);
void AddIterator(pybind11::module_& module);
void AddDeviceLoader(pybind11::module_& module);
void AddWatching(pybind11::module_& module);

}  // namespace stoker::python
