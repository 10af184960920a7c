#include "bindings/python/map_function.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "bindings/python/arrays.h"
#include "bindings/python/waiting.h"
#include "engine/loader/producer_parts.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

class PythonFunction final : public MapFunction {
 public:
  PythonFunction(py::object call, std::string name, std::string in_state, int threads,
                 std::shared_ptr<const SampleSource> source)
      : call_(call.release().ptr(), [](void* held) { ReleaseLater(held); }),
        name_(std::move(name)),
        in_state_(std::move(in_state)),
        threads_(threads),
        source_(std::move(source)) {}

  std::string Describe() const override { return name_; }
  std::string InState() const override { return in_state_; }
  int calls() const override { return threads_; }

  Status MapBatch(const Batch& batch) const override {
    KeepPythonThread();
    const UserCall call(this, name_ + " with " + TextOf(batch.name()));
    if (!call) return Error{Code::kCancelled, "the interpreter is shutting down"};
    try {
      return Call(batch);
    } catch (const std::exception& error) {
      return Error{.code = Code::kUnavailable, .cause = error.what()};
    }
  }

 private:
  Status Call(const Batch& batch) const {
    const py::object call = py::handle(static_cast<PyObject*>(call_.get()))();
    if (call.is_none()) return Error{Code::kCancelled, "the loader of the function has gone"};
    const std::span<const uint64_t> ids = batch.sample_ids();
    const py::object said =
        call(ColumnsOf(batch), batch.epoch(), batch.position(),
             py::array_t<uint64_t>(static_cast<py::ssize_t>(ids.size()), ids.data()));
    if (said.is_none()) return {};
    return Error{.code = Code::kUnavailable, .cause = said.cast<std::string>()};
  }

  py::tuple ColumnsOf(const Batch& batch) const {
    const size_t columns = PythonColumns(*source_, batch.columns());
    py::tuple all(columns);
    for (size_t c = 0; c < columns; ++c) {
      const bool text = IsString(batch.columns()[c].dtype);
      all[c] = text ? py::object(StringsOf(batch, c, *source_)) : ArrayOf(batch, c);
    }
    return all;
  }

  const std::shared_ptr<void> call_;
  const std::string name_;
  const std::string in_state_;
  const int threads_;
  const std::shared_ptr<const SampleSource> source_;
};

}  // namespace

std::shared_ptr<const MapFunction> MapFunctionOf(const py::object& map,
                                                 std::shared_ptr<const SampleSource> source) {
  if (map.is_none()) return nullptr;
  const auto parts = map.cast<py::tuple>();
  return std::make_shared<const PythonFunction>(parts[0], parts[1].cast<std::string>(),
                                                parts[2].cast<std::string>(), parts[3].cast<int>(),
                                                std::move(source));
}

}  // namespace stoker::python
