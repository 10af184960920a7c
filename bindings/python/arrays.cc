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

py::object ArrayOver(DType dtype, const std::vector<int64_t>& shape, const void* data,
                     std::shared_ptr<void> owner) {
  using Owner = std::shared_ptr<void>;
  auto kept = std::make_unique<Owner>(std::move(owner));
  const py::capsule base(kept.get(), [](void* held) { delete static_cast<Owner*>(held); });
  (void)kept.release();  // owned by the capsule now
  return py::array(NumPyType(dtype), shape, {}, data, base);
}

py::object ArrayOf(const Batch& batch, size_t column) {
  const Column& from = batch.columns()[column];
  return ArrayOver(from.dtype, from.shape, from.data, batch.Owner(column));
}

}  // namespace stoker::python
