#include "bindings/python/map_function.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python/batches/arrays.h"
#include "bindings/python/waiting.h"
#include "engine/production/producer_parts.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

class PythonFunction final : public MapFunction {
 public:
  PythonFunction(py::object call, std::string name, std::string in_state, int threads,
                 std::vector<ColumnSpec> added, std::shared_ptr<const SampleSource> source)
      : call_(call.release().ptr(), [](void* held) { ReleaseLater(held); }),
        name_(std::move(name)),
        in_state_(std::move(in_state)),
        threads_(threads),
        added_(std::move(added)),
        source_(std::move(source)) {}

  std::string Describe() const override { return name_; }
  std::string InState() const override { return in_state_; }
  int calls() const override { return threads_; }
  std::vector<ColumnSpec> columns() const override { return added_; }

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
    const py::tuple columns = ColumnsOf(batch);
    const py::object said =
        call(GivenOf(batch, columns), columns, batch.epoch(), batch.position(),
             py::array_t<uint64_t>(static_cast<py::ssize_t>(ids.size()), ids.data()));
    if (said.is_none()) return {};
    return Error{.code = Code::kUnavailable, .cause = said.cast<std::string>()};
  }

  py::tuple ColumnsOf(const Batch& batch) const {
    const size_t columns = PythonColumns(*source_, added_, batch.columns());
    py::tuple all(columns);
    for (size_t c = 0; c < columns; ++c) {
      const bool text = IsString(batch.columns()[c].dtype);
      all[c] = text ? py::object(StringsOf(batch, c, *source_)) : ArrayOf(batch, c);
    }
    return all;
  }

  // Returns the function's argument for each column.
  py::tuple GivenOf(const Batch& batch, const py::tuple& columns) const {
    if (added_.empty()) return columns;
    const auto all = batch.columns();
    const auto replaced = all.subspan(columns.size());  // strings, in any order
    py::tuple given(columns.size());
    for (size_t c = 0; c < columns.size(); ++c) {
      const bool is_added =
          std::ranges::find(added_, all[c].name, &ColumnSpec::name) != added_.end();
      const Column* const strings = FindColumn(replaced, all[c].name);
      given[c] = !is_added ? py::object(columns[c])
                 : strings != nullptr
                     ? py::object(ListOf(strings->as<std::string_view>(), strings->dtype))
                     : py::object(py::none());
    }
    return given;
  }

  const std::shared_ptr<void> call_;
  const std::string name_;
  const std::string in_state_;
  const int threads_;
  const std::vector<ColumnSpec> added_;
  const std::shared_ptr<const SampleSource> source_;
};

std::vector<ColumnSpec> ColumnsFrom(const py::list& added) {
  std::vector<ColumnSpec> columns;
  for (const py::handle column : added) {
    const auto parts = column.cast<py::tuple>();
    columns.push_back({parts[0].cast<std::string>(), DTypeOf(parts[1].cast<py::array>()),
                       parts[2].cast<std::vector<int64_t>>()});
  }
  return columns;
}

}  // namespace

std::shared_ptr<const MapFunction> MapFunctionOf(const py::object& map,
                                                 std::shared_ptr<const SampleSource> source) {
  if (map.is_none()) return nullptr;
  const auto parts = map.cast<py::tuple>();
  return std::make_shared<const PythonFunction>(parts[0], parts[1].cast<std::string>(),
                                                parts[2].cast<std::string>(), parts[3].cast<int>(),
                                                ColumnsFrom(parts[4]), std::move(source));
}

}  // namespace stoker::python
