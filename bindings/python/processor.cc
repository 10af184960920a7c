// stoker._stoker.Processor: the Processor of C++.
#include "engine/arrays/processor.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/processor_config.h"
#include "bindings/python/batches/arrays.h"
#include "bindings/python/decode.h"
#include "bindings/python/errors.h"
#include "bindings/python/held_input.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "transforms/processor/figures.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

using Memory = std::optional<py::array_t<uint8_t, py::array::c_style>>;

// Returns the arrays of figures, by name: a row for each image.
py::dict FiguresOf(const ProcessorRecipe& recipe, const std::vector<ImagePlan>& images) {
  py::dict figures;
  const std::vector<ColumnSpec> columns = FigureColumns(recipe, recipe.padded_rows != 0);
  for (size_t c = 0; c < columns.size(); ++c) {
    std::vector<py::ssize_t> shape(columns[c].row_shape.begin(), columns[c].row_shape.end());
    shape.insert(shape.begin(), static_cast<py::ssize_t>(images.size()));
    py::array rows(NumPyType(columns[c].dtype), shape);
    auto* to = static_cast<uint8_t*>(rows.mutable_data());
    for (const ImagePlan& image : images) {
      WriteFigures(recipe, image, columns[c].name, {to, columns[c].row_bytes()});
      to += columns[c].row_bytes();
    }
    figures[columns[c].name.c_str()] = std::move(rows);
  }
  return figures;
}

class ProcessorHandle {
 public:
  // `spec`: of docs/loader-spec.md. `path`: the file that has its configuration, or "".
  ProcessorHandle(const std::string& spec, const std::string& path, uint64_t memory_budget) {
    Result<ProcessorOptions> options = ParseProcessorOptions(spec);
    if (!options.ok()) {
      Error error = std::move(options).error();
      error.file = path;
      options = std::move(error);
    }
    ProcessorOptions given = Value(std::move(options));
    given.memory_budget = memory_budget;
    processor_ = Value(Processor::Create(std::move(given)));
  }

  // Returns (array, figures of the images).
  py::tuple One(const py::object& image, bool is_path, const Memory& out) {
    const HeldInput held(image, is_path);
    const std::optional<std::span<uint8_t>> into = SpanOf(out);
    Result<ProcessedImages> made = [&] {
      const WithoutGil released;
      return processor_->Process(held.input(), into);
    }();
    return ToTuple(Value(std::move(made)), out);
  }

  py::tuple All(const GivenImages& images, const Memory& out, const RuntimeHandle& runtime) {
    const HeldInputs held(images);
    const std::optional<std::span<uint8_t>> into = SpanOf(out);
    auto made = runtime_.Run<ProcessedImages>(runtime, [&](Runtime& used) {
      return processor_->ProcessAll(held.inputs(), used, OnSignals(), into);
    });
    return ToTuple(Value(std::move(made)), out);
  }

  // Returns (shape of the array, figures) of one image.
  py::tuple Plan(int height, int width) const {
    const std::vector<ImagePlan> images{Value(processor_->Plan({width, height}))};
    return py::make_tuple(Value(processor_->ShapeOf(images)).sides,
                          FiguresOf(processor_->recipe(), images));
  }

  // Returns the mean and the standard deviation of values 0…255.
  py::tuple Normalised() const {
    const Normalisation by = processor_->normalisation();
    return py::make_tuple(py::array_t<float>(3, by.mean.data()),
                          py::array_t<float>(3, by.deviation.data()));
  }

 private:
  static std::optional<std::span<uint8_t>> SpanOf(const Memory& out) {
    if (!out) return {};
    py::array_t<uint8_t, py::array::c_style> memory = *out;
    return std::span(memory.mutable_data(), static_cast<size_t>(memory.size()));
  }

  py::tuple ToTuple(ProcessedImages&& made, const Memory& out) const {
    py::dict figures = FiguresOf(processor_->recipe(), made.images);
    if (!out) return py::make_tuple(ToArray(std::move(made.array)), std::move(figures));
    const ArrayShape& shape = made.array.shape;
    return py::make_tuple(
        py::array(NumPyType(shape.dtype), shape.sides, {}, made.array.memory.get(), *out),
        std::move(figures));
  }

  std::unique_ptr<Processor> processor_;
  KeptRuntime runtime_;
};

}  // namespace

void AddProcessor(py::module_& module) {
  py::class_<ProcessorHandle>(module, "Processor")
      .def(py::init<const std::string&, const std::string&, uint64_t>(), py::arg("spec"),
           py::arg("path"), py::arg("memory_budget"))
      .def("one", &ProcessorHandle::One, py::arg("image"), py::arg("is_path"), py::arg("out"))
      .def("all", &ProcessorHandle::All, py::arg("images"), py::arg("out"), py::arg("runtime"))
      .def("plan", &ProcessorHandle::Plan, py::arg("height"), py::arg("width"))
      .def_property_readonly("normalised", &ProcessorHandle::Normalised);
}

}  // namespace stoker::python
