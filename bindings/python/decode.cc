// stoker._stoker.Decoders: a DecoderPool that takes Python's images as inputs.
#include "bindings/python/decode.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/python/batches/arrays.h"
#include "bindings/python/errors.h"
#include "bindings/python/held_input.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/system/machine.h"
#include "engine/runtime/runtime.h"

namespace stoker::python {

namespace py = pybind11;

py::object ToArray(Result<DecodedArray>&& decoded) {
  DecodedArray array = Value(std::move(decoded));
  const void* const data = array.memory.get();
  return ArrayOver(array.shape.dtype, array.shape.sides, data, std::move(array.memory));
}

namespace {

using Region = std::array<int, 4>;  // top, left, height, width

// The transforms of `spec`: one Resize, or none.
// `mode`: an index into the modes of stoker/_decode.py.
ArrayRequest ParseRequest(const std::string& spec, int mode) {
  const TransformSpec parsed = Value(ParseTransformSpec(spec));
  ArrayRequest request;
  request.exif_orientation = parsed.options.exif_orientation;
  request.dtype = parsed.options.dtype;
  request.layout = parsed.options.layout;
  request.channels =
      std::array{Channels::kRgb, Channels::kGray, Channels::kRgba, Channels::kUnchanged}.at(
          static_cast<size_t>(mode));
  if (!parsed.transforms.empty()) request.resize = std::get<Resize>(parsed.transforms.front());
  return request;
}

class DecodersHandle {
 public:
  DecodersHandle(const DecodeLimits& limits, std::shared_ptr<MemoryBudget> memory)
      : pool_(limits, std::move(memory)) {}

  py::object One(const py::object& image, bool is_path, const ArrayRequest& request,
                 const std::optional<Region>& region) {
    const HeldInput held(image, is_path);
    Result<DecodedArray> array = [&] {
      const WithoutGil released;
      if (!region) return pool_.Decode(held.input(), request);
      return pool_.Decode(held.input(), In(request, *region));
    }();
    return ToArray(std::move(array));
  }

  py::list All(const GivenImages& images, const ArrayRequest& request,
               const std::optional<Region>& region, const RuntimeHandle& runtime) {
    const HeldInputs held(images);
    const ArrayRequest of_part = region ? In(request, *region) : request;
    auto arrays = runtime_.Run<std::vector<DecodedArray>>(runtime, [&](Runtime& used) {
      return pool_.DecodeAll(held.inputs(), of_part, used, OnSignals());
    });
    py::list all;
    for (DecodedArray& array : Value(std::move(arrays))) all.append(ToArray(std::move(array)));
    return all;
  }

 private:
  static ArrayRequest In(ArrayRequest request, const Region& region) {
    request.region = Rect{region[1], region[0], region[3], region[2]};
    return request;
  }

  DecoderPool pool_;
  KeptRuntime runtime_;
};

}  // namespace

void AddDecode(py::module_& module) {
  py::class_<ArrayRequest>(module, "ArrayRequest")
      .def(py::init(&ParseRequest), py::arg("spec"), py::arg("mode"));
  py::class_<MemoryBudget, std::shared_ptr<MemoryBudget>>(module, "DecodeMemory").def(py::init([] {
    return std::make_shared<MemoryBudget>(DefaultMemory());
  }));
  py::class_<DecodersHandle>(module, "Decoders")
      .def(py::init([](int64_t max_pixels, int max_scans, bool accept_truncated,
                       bool accept_16_bits, std::shared_ptr<MemoryBudget> memory) {
             return std::make_unique<DecodersHandle>(
                 DecodeLimits{max_pixels, max_scans, accept_truncated, accept_16_bits},
                 std::move(memory));
           }),
           py::arg("max_pixels"), py::arg("max_scans"), py::arg("accept_truncated"),
           py::arg("accept_16_bits"), py::arg("memory"))
      .def("one", &DecodersHandle::One, py::arg("image"), py::arg("is_path"), py::arg("request"),
           py::arg("region"))
      .def("all", &DecodersHandle::All, py::arg("images"), py::arg("request"), py::arg("region"),
           py::arg("runtime"));
}

}  // namespace stoker::python
