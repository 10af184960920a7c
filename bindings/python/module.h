// The parts of stoker._stoker, and the handles that they pass to each other. What users see is
// Python (stoker/): it checks arguments, and hands options over as a loader spec.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "engine/pipeline/runtime.h"
#include "io/sources/source.h"

namespace stoker::python {

struct SourceHandle {
  std::shared_ptr<const SampleSource> source;
  bool labels = true;         // batches have a second array
  pybind11::object arrays{};  // that the source points into; none for files
};

struct RuntimeHandle {
  std::shared_ptr<Runtime> runtime;  // null: the default one
};

void AddLoader(pybind11::module_& module);
void AddCompose(pybind11::module_& module);

}  // namespace stoker::python
