#include "bindings/python/batches/columns.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/batches/arrays.h"
#include "bindings/python/waiting.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// Adds the items of a list of str, or of bytes. UnicodeEncodeError: a str that is not Unicode.
void AddStrings(const py::list& items, StringRows& rows) {
  rows.Reserve(items.size());
  for (const py::handle item : items) {
    if (PyBytes_Check(item.ptr())) {
      const auto size = static_cast<size_t>(PyBytes_GET_SIZE(item.ptr()));
      rows.Add({PyBytes_AS_STRING(item.ptr()), size});
      continue;
    }
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
    if (text == nullptr) throw py::error_already_set();
    rows.Add({text, static_cast<size_t>(size)});
  }
}

BoxFormat FormatOf(const std::string& name) {
  for (const BoxFormat format : {BoxFormat::kXywh, BoxFormat::kCxcywh}) {
    if (name == NameOf(format)) return format;
  }
  return BoxFormat::kXyxy;
}

Field::Kind KindOf(const std::string& name) {
  if (name == "boxes") return Field::Kind::kBoxes;
  return name == "keypoints" ? Field::Kind::kKeypoints : Field::Kind::kObject;
}

// Makes a column of objects. `parts`: kind, values, offsets, format of boxes, whether they are
// normalized, and pairs of keypoints (stoker/_object_columns.py). The offsets are int64, dense, and
// end with the number of values.
ArrayColumn ColumnOfObjects(std::string name, const py::tuple& parts) {
  const auto offsets = parts[2].cast<py::array_t<int64_t>>();
  ArrayColumn column = ColumnOf(std::move(name), parts[1].cast<py::array>());
  column.samples = static_cast<uint64_t>(offsets.size() - 1);
  column.row_stride = std::nullopt;
  column.offsets = offsets.data();
  column.kind = KindOf(parts[0].cast<std::string>());
  column.box_format = FormatOf(parts[3].cast<std::string>());
  column.normalized = parts[4].cast<bool>();
  column.flip_pairs = parts[5].cast<std::vector<uint16_t>>();
  return column;
}

}  // namespace

ArrayColumn ColumnOf(std::string name, const py::array& array) {
  ArrayColumn column;
  column.name = std::move(name);
  column.data = array.data();
  column.samples = static_cast<uint64_t>(array.shape(0));
  column.row_stride = array.strides(0);
  column.dtype = DTypeOf(array);
  column.row_shape.assign(array.shape() + 1, array.shape() + array.ndim());
  return column;
}

std::shared_ptr<void> OwnerOf(py::object arrays) {
  return {arrays.release().ptr(), [](void* held) { ReleaseLater(held); }};
}

std::vector<ArrayColumn> ColumnsOf(const py::dict& columns, Beside& beside) {
  std::vector<ArrayColumn> made;
  beside.arrays = OwnerOf(py::tuple(columns.attr("values")()));
  for (const auto& [key, values] : columns) {
    auto name = key.cast<std::string>();
    if (py::isinstance<py::array>(values)) {
      made.push_back(ColumnOf(std::move(name), values.cast<py::array>()));
    } else if (py::isinstance<py::tuple>(values)) {
      made.push_back(ColumnOfObjects(std::move(name), values.cast<py::tuple>()));
    } else {
      const auto items = values.cast<py::list>();
      AddStrings(items, beside.strings.emplace_back());
      const bool bytes = PyBytes_Check(items[0].ptr()) != 0;
      made.push_back(
          beside.strings.back().Column(std::move(name), bytes ? DType::kBytes : DType::kString));
    }
  }
  return made;
}

}  // namespace stoker::python
