// stoker._stoker.draw_sheet: draws a contact sheet of NumPy's arrays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "bindings/sheet/sheet.h"
#include "bindings/sheet/sheet_png.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;
using Values = py::array_t<uint16_t, py::array::c_style>;

Result<std::vector<uint8_t>> DrawPng(const SheetRows& rows, int64_t columns) {
  Result<WholeImage> sheet = DrawSheet(rows, columns);
  if (!sheet.ok()) return std::move(sheet).error();
  return EncodeSheet(*sheet);
}

// The objects of the rows, and the arrays that they are views of: a cast copies an array of another
// type or order.
struct HeldObjects {
  using Floats = py::array_t<float, py::array::c_style>;
  using Integers = py::array_t<int64_t, py::array::c_style>;

  Integers offsets;
  std::optional<Floats> boxes;
  BoxFormat format;
  std::optional<Floats> points;
  std::optional<Integers> labels;

  // Precondition: the GIL is held. The result is valid as long as this object.
  SheetObjects View() const {
    return {.offsets = {offsets.data(), static_cast<size_t>(offsets.size())},
            .boxes = boxes ? boxes->data() : nullptr,
            .format = format,
            .points = points ? points->data() : nullptr,
            .points_each = points ? points->shape(1) : 0,
            .labels = labels ? labels->data() : nullptr};
  }
};

// `objects`: int64 offsets (rows + 1,), float32 boxes (objects, 4), their format, float32 points
// (objects, points, 3) and int64 labels (objects,); the arrays but the first may be None.
HeldObjects HoldObjects(const py::tuple& objects) {
  const auto format = objects[2].cast<std::string>();
  return {.offsets = objects[0].cast<HeldObjects::Integers>(),
          .boxes = objects[1].cast<std::optional<HeldObjects::Floats>>(),
          .format = format == NameOf(BoxFormat::kXywh)     ? BoxFormat::kXywh
                    : format == NameOf(BoxFormat::kCxcywh) ? BoxFormat::kCxcywh
                                                           : BoxFormat::kXyxy,
          .points = objects[3].cast<std::optional<HeldObjects::Floats>>(),
          .labels = objects[4].cast<std::optional<HeldObjects::Integers>>()};
}

// `images`: (rows, height, width, 3); `masks`: (rows, height, width), of the same rows. Their
// shapes, and those of `objects` (HoldObjects), were checked by stoker/_show.py. Sides that do not
// fit into an int are refused as too large a sheet.
py::bytes DrawSheetOf(const Bytes& images, const std::optional<Values>& masks, int64_t columns,
                      const std::optional<py::tuple>& objects) {
  const auto side = [&](py::ssize_t axis) {
    return static_cast<int>(std::min<py::ssize_t>(images.shape(axis), INT32_MAX / 2));
  };
  const std::optional<HeldObjects> held =
      objects ? std::optional(HoldObjects(*objects)) : std::nullopt;
  const SheetRows rows{.count = images.shape(0),
                       .size = {side(2), side(1)},
                       .images = images.data(),
                       .masks_of_16_bits = masks ? masks->data() : nullptr,
                       .objects = held ? held->View() : SheetObjects{}};
  Result<std::vector<uint8_t>> png = [&] {
    const WithoutGil released;
    return DrawPng(rows, columns);
  }();
  const std::vector<uint8_t> file = Value(std::move(png));
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

}  // namespace

void AddShow(py::module_& module) {
  module.def("draw_sheet", &DrawSheetOf, py::arg("images"), py::arg("masks"), py::arg("columns"),
             py::arg("objects") = py::none());
}

}  // namespace stoker::python
