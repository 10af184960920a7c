// stoker._stoker.Compose: the Compose of C++.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/python/batches/arrays.h"
#include "bindings/python/decode.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "engine/arrays/compose.h"
#include "engine/production/producer_parts.h"
#include "transforms/plan/explain.h"
#include "transforms/plan/plan.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

using Pixels = py::array_t<uint8_t, py::array::c_style>;

// Returns (transform, where, how) of each transform. `source`: whose samples have the objects; null
// means none.
std::vector<std::tuple<std::string, std::string, std::string>> ExplainSpec(
    const std::string& spec, const SourceHandle* source) {
  std::vector<std::tuple<std::string, std::string, std::string>> all;
  TransformSpec parsed = Value(ParseTransformSpec(spec));
  if (parsed.transforms.empty()) return all;  // there is no plan of whole images
  if (source != nullptr) parsed.options.objects = PlannedObjects(*source->source);
  const Plan plan = Value(Plan::Compile(std::move(parsed.transforms), parsed.options));
  for (ExplainedTransform& one : Explain(plan)) {
    all.emplace_back(std::move(one.transform), std::move(one.where), std::move(one.how));
  }
  return all;
}

ComposeOptions OptionsOf(TransformSpec spec, uint64_t memory_budget) {
  const PlanOptions& plan = spec.options;
  return {.transforms = std::move(spec.transforms),
          .dtype = plan.dtype,
          .layout = plan.layout,
          .channels = plan.channels,
          .exif_orientation = plan.exif_orientation,
          .decode = plan.decode,
          .limits = plan.limits,
          .memory_budget = memory_budget};
}

class ComposeHandle {
 public:
  ComposeHandle(const std::string& spec, uint64_t memory_budget)
      : compose_(
            Value(Compose::Create(OptionsOf(Value(ParseTransformSpec(spec)), memory_budget)))) {}

  uint64_t memory_budget() const { return compose_->memory_budget(); }

  // Returns (array, (height, width) of the image in it), or (array, None) if it fills it.
  py::tuple OfBytes(const py::bytes& bytes, const DrawKey& key) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
    return Apply(std::span(reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(size)), key);
  }

  // Does the same for an array of height × width × 3.
  py::tuple OfPixels(const Pixels& image, const DrawKey& key) {
    ImageView view;
    view.size = {.width = static_cast<int>(image.shape(1)),
                 .height = static_cast<int>(image.shape(0))};
    view.plane[0] = image.data();
    view.stride[0] = image.strides(0);
    return Apply(view, key);
  }

 private:
  // Rows of a plan are in NumPy's own memory: `owndata`, and malloc gives the same pages to the
  // next array.
  template <typename Image>
  py::tuple Apply(const Image& image, const DrawKey& key) {
    const std::optional<ArrayShape> shape = compose_->shape();
    py::object array;
    void* into = nullptr;
    if (shape) {
      py::array row(NumPyType(shape->dtype), shape->sides);
      into = row.mutable_data();
      array = std::move(row);
    }
    Result<ComposedImage> result = [&] {
      const WithoutGil released;
      return compose_->Apply(image, key, into);
    }();
    ComposedImage made = Value(std::move(result));
    if (!shape) array = ToArray(std::move(made.array));
    if (!made.size) return py::make_tuple(array, py::none());
    return py::make_tuple(array, py::make_tuple(made.size->height, made.size->width));
  }

  const std::unique_ptr<Compose> compose_;
};

}  // namespace

void AddCompose(py::module_& module) {
  module.def("explain", &ExplainSpec, py::arg("spec"), py::arg("source") = py::none());
  py::class_<ComposeHandle>(module, "Compose")
      .def(py::init<const std::string&, uint64_t>(), py::arg("spec"), py::arg("memory_budget"))
      .def_property_readonly("memory_budget", &ComposeHandle::memory_budget)
      .def(
          "of_bytes",
          [](ComposeHandle& self, const py::bytes& bytes, uint64_t seed, uint64_t epoch,
             uint64_t position) {
            return self.OfBytes(bytes, {seed, epoch, position});
          },
          py::arg("bytes"), py::arg("seed"), py::arg("epoch"), py::arg("position"))
      .def(
          "of_pixels",
          [](ComposeHandle& self, const Pixels& image, uint64_t seed, uint64_t epoch,
             uint64_t position) {
            return self.OfPixels(image, {seed, epoch, position});
          },
          py::arg("image"), py::arg("seed"), py::arg("epoch"), py::arg("position"));
}

}  // namespace stoker::python
