// stoker._stoker.Compose: a Plan with workspaces for the threads that apply it; or without
// transforms, a DecoderPool.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/python/arrays.h"
#include "bindings/python/decode.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/buffer.h"
#include "core/machine.h"
#include "core/try.h"
#include "transforms/plan/explain.h"
#include "transforms/plan/plan.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

using Pixels = py::array_t<uint8_t, py::array::c_style>;

// Returns none if there are no transforms: images keep their sizes then, while a plan's rows have
// one size.
std::optional<Plan> Compile(TransformSpec spec) {
  if (spec.transforms.empty()) return std::nullopt;
  return Value(Plan::Compile(std::move(spec.transforms), spec.options));
}

// Returns (transform, where, how) of each transform.
std::vector<std::tuple<std::string, std::string, std::string>> ExplainSpec(
    const std::string& spec) {
  std::vector<std::tuple<std::string, std::string, std::string>> all;
  const std::optional<Plan> plan = Compile(Value(ParseTransformSpec(spec)));
  if (!plan) return all;
  for (ExplainedTransform& one : Explain(*plan)) {
    all.emplace_back(std::move(one.transform), std::move(one.where), std::move(one.how));
  }
  return all;
}

class ComposeHandle {
 public:
  // `memory_budget`: bytes for all threads together; 0: a Runtime's default.
  ComposeHandle(const std::string& spec, uint64_t memory_budget)
      : ComposeHandle(Value(ParseTransformSpec(spec)),
                      memory_budget != 0 ? memory_budget : DefaultMemory()) {}

  uint64_t memory_budget() const { return budget_->limit(); }

  // Returns (array, (height, width) of the image in it), or (array, None) if it fills it.
  py::tuple OfBytes(const py::bytes& bytes, const DrawKey& key) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
    if (!plan_) {
      return Decode(EncodedInput{{reinterpret_cast<uint8_t*>(data), static_cast<size_t>(size)}});
    }
    return Apply([&](Scratch& scratch, void* row, int32_t* in_row, StageTimes& times) -> Status {
      const auto length = static_cast<size_t>(size);
      TRY(scratch.bytes.Grow(length));
      std::memcpy(scratch.bytes.data(), data, length);
      return plan_->Apply({scratch.bytes.data(), length}, key, *scratch.workspace, row, times,
                          /*crop_index=*/{}, /*work=*/nullptr, in_row);
    });
  }

  // Does the same for an array of height × width × 3.
  py::tuple OfPixels(const Pixels& image, const DrawKey& key) {
    ImageView view;
    view.size = {.width = static_cast<int>(image.shape(1)),
                 .height = static_cast<int>(image.shape(0))};
    view.plane[0] = image.data();
    view.stride[0] = image.strides(0);
    if (!plan_) return Decode(view);
    return Apply([&](Scratch& scratch, void* row, int32_t* in_row, StageTimes& times) -> Status {
      return plan_->Apply(view, key, *scratch.workspace, row, times, /*work=*/nullptr, in_row);
    });
  }

 private:
  ComposeHandle(TransformSpec spec, uint64_t memory_budget)
      : budget_(std::make_unique<MemoryBudget>(memory_budget)),
        request_(RequestOf(spec.options)),
        pool_(spec.options.limits, memory_budget),
        plan_(Compile(std::move(spec))) {}

  // Decodes the whole image.
  template <typename Image>
  py::tuple Decode(const Image& image) {
    Result<DecodedArray> array = [&] {
      const WithoutGil released;
      return pool_.Decode(image, request_);
    }();
    return py::make_tuple(ToArray(std::move(array)), py::none());
  }

  using WorkspacePtr = std::unique_ptr<Workspace, void (*)(Workspace*)>;
  struct Scratch {
    WorkspacePtr workspace;
    GrowingBuffer bytes;
  };

  // Calls `write` without the GIL.
  template <typename Write>
  py::tuple Apply(const Write& write) {
    py::array row(NumPyType(plan_->dtype()), plan_->row_shape());
    void* data = row.mutable_data();
    std::array<int32_t, 2> size{};
    Status status;
    {
      const WithoutGil released;
      Scratch scratch = TakeScratch();
      StageTimes times;
      status = write(scratch, data, plan_->pads() ? size.data() : nullptr, times);
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(scratch));
    }
    Check(status);
    if (!plan_->pads()) return py::make_tuple(row, py::none());
    return py::make_tuple(row, py::make_tuple(size[0], size[1]));
  }

  Scratch TakeScratch() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Scratch scratch = std::move(idle_.back());
        idle_.pop_back();
        return scratch;
      }
    }
    return {plan_->MakeWorkspace(*budget_), GrowingBuffer(*budget_)};
  }

  std::unique_ptr<MemoryBudget> budget_;
  ArrayRequest request_;
  DecoderPool pool_;
  std::optional<Plan> plan_;
  std::mutex mutex_;
  std::vector<Scratch> idle_;
};

}  // namespace

void AddCompose(py::module_& module) {
  module.def("explain", &ExplainSpec, py::arg("spec"));
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
