#include "bindings/python/arrays.h"

#include <pybind11/numpy.h>

#include <memory>
#include <utility>

namespace stoker::python {

namespace py = pybind11;

py::dtype NumPyType(DType dtype) {
  if (dtype == DType::kBF16) {
    return py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16"));
  }
  return py::dtype(NameOf(dtype));
}

py::object ArrayOf(const Batch& batch, size_t column) {
  using Owner = std::shared_ptr<void>;
  const Column& from = batch.columns()[column];
  auto owner = std::make_unique<Owner>(batch.Owner(column));
  const py::capsule base(owner.get(), [](void* held) { delete static_cast<Owner*>(held); });
  (void)owner.release();  // the capsule's now
  return py::array(NumPyType(from.dtype), from.shape, {}, from.data, base);
}

}  // namespace stoker::python
