// stoker._stoker.Processor: the Processor of C++.
#include "engine/arrays/processor.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
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

namespace stoker::python {

namespace py = pybind11;

namespace {

using Memory = std::optional<py::array_t<uint8_t, py::array::c_style>>;

// For each image: its height and width as viewed, its rows, and the height and width of the grid of
// its first canvas.
py::array_t<int64_t> FiguresOf(const std::vector<ImagePlan>& images) {
  py::array_t<int64_t> figures({static_cast<py::ssize_t>(images.size()), py::ssize_t{5}});
  auto to = figures.mutable_unchecked<2>();
  for (py::ssize_t i = 0; i < to.shape(0); ++i) {
    const ImagePlan& image = images[static_cast<size_t>(i)];
    const ImageSize grid = image.Grid(image.canvases[0]);
    const std::array<int64_t, 5> all{image.image.height, image.image.width, image.rows, grid.height,
                                     grid.width};
    for (py::ssize_t k = 0; k < 5; ++k) to(i, k) = all[static_cast<size_t>(k)];
  }
  return figures;
}

class ProcessorHandle {
 public:
  // `path`: the file that has `config`, or "". `resampler`, `dtype`: indices into the names of
  // stoker/_processor.py.
  ProcessorHandle(const std::string& config, const std::string& path, const std::string& overrides,
                  int resampler, int dtype, bool exif_orientation, int64_t max_pixels,
                  int max_scans, bool accept_truncated, bool accept_16_bits,
                  uint64_t memory_budget) {
    const auto of = std::array{ResampledAs::kTorchvision, ResampledAs::kPillowExact}.at(
        static_cast<size_t>(resampler));
    const auto type = std::array{DType::kF32, DType::kBF16, DType::kF16, DType::kU8}.at(
        static_cast<size_t>(dtype));
    Result<ProcessorRecipe> recipe = ParseProcessorConfig(config, of, overrides);
    if (!recipe.ok()) {
      Error error = std::move(recipe).error();
      error.file = path;
      recipe = std::move(error);
    }
    processor_ = Value(
        Processor::Create({.recipe = Value(std::move(recipe)),
                           .dtype = type,
                           .exif_orientation = exif_orientation,
                           .limits = {max_pixels, max_scans, accept_truncated, accept_16_bits},
                           .memory_budget = memory_budget}));
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
    return py::make_tuple(Value(processor_->ShapeOf(images)).sides, FiguresOf(images));
  }

  // Returns the mean and the standard deviation of values 0…255.
  py::tuple Normalised() const {
    const Normalisation by = processor_->normalisation();
    return py::make_tuple(py::array_t<float>(3, by.mean.data()),
                          py::array_t<float>(3, by.deviation.data()));
  }

  // Returns the index of the family in the names of stoker/_processor.py.
  int family() const { return static_cast<int>(processor_->recipe().family); }

 private:
  static std::optional<std::span<uint8_t>> SpanOf(const Memory& out) {
    if (!out) return {};
    py::array_t<uint8_t, py::array::c_style> memory = *out;
    return std::span(memory.mutable_data(), static_cast<size_t>(memory.size()));
  }

  static py::tuple ToTuple(ProcessedImages&& made, const Memory& out) {
    py::array_t<int64_t> figures = FiguresOf(made.images);
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
      .def(py::init<const std::string&, const std::string&, const std::string&, int, int, bool,
                    int64_t, int, bool, bool, uint64_t>(),
           py::arg("config"), py::arg("path"), py::arg("overrides"), py::arg("resampler"),
           py::arg("dtype"), py::arg("exif_orientation"), py::arg("max_pixels"),
           py::arg("max_scans"), py::arg("accept_truncated"), py::arg("accept_16_bits"),
           py::arg("memory_budget"))
      .def("one", &ProcessorHandle::One, py::arg("image"), py::arg("is_path"), py::arg("out"))
      .def("all", &ProcessorHandle::All, py::arg("images"), py::arg("out"), py::arg("runtime"))
      .def("plan", &ProcessorHandle::Plan, py::arg("height"), py::arg("width"))
      .def_property_readonly("normalised", &ProcessorHandle::Normalised)
      .def_property_readonly("family", &ProcessorHandle::family);
}

}  // namespace stoker::python
