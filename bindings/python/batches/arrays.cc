#include "bindings/python/batches/arrays.h"

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace stoker::python {

namespace py = pybind11;

py::dtype NumPyType(DType dtype) {
  if (dtype == DType::kBF16) {
    return py::dtype::from_args(py::module_::import("ml_dtypes").attr("bfloat16"));
  }
  return py::dtype(NameOf(dtype));
}

DType DTypeOf(const py::array& array) {
  const auto name = py::str(array.dtype().attr("name")).cast<std::string>();
  auto dtype = DType::kBool;
  while (dtype < DType::kF64 && name != NameOf(dtype)) {
    dtype = static_cast<DType>(static_cast<int>(dtype) + 1);
  }
  return dtype;
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
  const std::shared_ptr<void> owner = batch.Owner(column);
  py::object values = ArrayOver(from.dtype, from.shape, from.data, owner);
  if (from.offsets == nullptr) return values;
  return RaggedOf(values, ArrayOver(DType::kI64, {batch.rows() + 1}, from.offsets, owner));
}

py::object RaggedOf(const py::object& values, const py::object& offsets) {
  return py::module_::import("stoker._ragged").attr("Ragged")(values, offsets);
}

py::list StringsOf(const SampleSource& source, size_t field, std::span<const uint64_t> sample_ids) {
  std::vector<std::string_view> strings(sample_ids.size());
  source.FixedRows(field, sample_ids, strings.data());
  return ListOf(strings, source.fields()[field].dtype);
}

py::list StringsOf(const Batch& batch, size_t column, const SampleSource& source) {
  const Field& field = source.fields()[column];
  if (field.kind != Field::Kind::kLoaded) return StringsOf(source, column, batch.sample_ids());
  return ListOf(batch.columns()[column].as<std::string_view>(), field.dtype);
}

py::list ListOf(std::span<const std::string_view> strings, DType dtype) {
  const bool text = dtype == DType::kString;
  py::list list(strings.size());
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto size = static_cast<Py_ssize_t>(strings[i].size());
    PyObject* const made = text ? PyUnicode_DecodeUTF8(strings[i].data(), size, "surrogateescape")
                                : PyBytes_FromStringAndSize(strings[i].data(), size);
    if (made == nullptr) throw py::error_already_set();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), made);
  }
  return list;
}

}  // namespace stoker::python
