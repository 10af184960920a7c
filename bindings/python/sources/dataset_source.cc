// The source of stoker.from_dataset, parquet and from_hf: a Python object gives the samples, called
// on threads; fields other than the images may be in memory.
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

#include "bindings/python/batches/arrays.h"
#include "bindings/python/batches/columns.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/hash/hash.h"
#include "core/result/try.h"
#include "io/memory/memory_columns.h"
#include "io/source/loaded_sample.h"
#include "io/source/source.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

struct DatasetParts {
  std::string name{};      // for messages
  std::string identity{};  // the fingerprint depends on it, besides the number, fields and columns
  uint64_t size = 0;
  std::vector<Field> loaded{};  // fields whose rows come with the images
  MemoryColumns columns{};      // fields in memory; they come last
  std::vector<std::string> classes{};
  int threads = 1;
};

// Returns the error that a call returned instead of a sample: a tuple (code, cause, file, offset,
// advice) of texts, with None where there is none.
Error ErrorOf(const py::tuple& told) {
  const auto [name, cause, file, offset, advice] =
      told.cast<std::tuple<std::string, std::string, std::optional<std::string>,
                           std::optional<uint64_t>, std::string>>();
  Error error{.code = Code::kUnavailable,
              .cause = cause,
              .file = file.value_or(""),
              .offset = offset,
              .advice = advice};
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kPermissionDenied,
                          Code::kDataLoss, Code::kFailedPrecondition, Code::kUnimplemented}) {
    if (name == CodeName(code)) error.code = code;
  }
  return error;
}

class DatasetSource final : public SampleSource {
 public:
  // `load`: a function of an id that returns (image, rows), or the argument of ErrorOf(). `image`:
  // a buffer, or the bytes of a path in a tuple of one. `rows`: bytes.
  DatasetSource(py::object load, DatasetParts parts)
      : load_(load.release().ptr(), [](void* held) { ReleaseLater(held); }),
        parts_(std::move(parts)) {
    fields_.push_back({.name = "image", .kind = Field::Kind::kImage});
    fields_.insert(fields_.end(), parts_.loaded.begin(), parts_.loaded.end());
    for (const ArrayColumn& column : parts_.columns.columns()) {
      fields_.push_back(FieldOf(column));
      fields_.back().is_label = column.name == "label";
    }
    const WithoutGil released;
    uint64_t hash = Hash64(parts_.identity, parts_.size + 1);
    for (const Field& field : fields_) hash = Hash64(field.name + DescribeRow(field), hash);
    for (const std::string& name : parts_.classes) hash = Hash64(name, hash);
    fingerprint_ = parts_.columns.Hash(/*all_numbers=*/true, hash);
  }

  uint64_t size() const override { return parts_.size; }
  std::span<const Field> fields() const override { return fields_; }
  int calls() const override { return parts_.threads; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  const std::vector<std::string>& classes() const override { return parts_.classes; }
  uint64_t Fingerprint() const override { return fingerprint_; }
  std::string Describe() const override { return "dataset(" + parts_.name + ")"; }

  uint64_t memory_bytes() const override {
    uint64_t bytes = sizeof(*this);
    for (const ArrayColumn& column : parts_.columns.columns()) {
      bytes += column.samples * column.row_bytes();
    }
    return bytes;
  }

  // Returns a name like "Mine[17]".
  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(parts_.name).append("[").append(std::to_string(file)).append("]");
  }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    parts_.columns.CopyRows(InMemory(field), ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return parts_.columns.View(InMemory(field), id);
  }

  Status Load(uint64_t id, LoadedSample& loaded) const override {
    KeepPythonThread();
    std::string path, rows;
    {
      const UserCall call(this, parts_.name + " with sample " + std::to_string(id));
      if (!call) return Error{Code::kCancelled, "the interpreter is shutting down"};
      TRY(Call(id, loaded, path, rows));
    }
    if (!path.empty()) {
      TRY(loaded.SetFile(path));
    }
    size_t begin = 0;
    for (size_t field = 1; field <= parts_.loaded.size(); ++field) {
      const size_t bytes = fields_[field].row_bytes();
      loaded.SetRow(field, {reinterpret_cast<const uint8_t*>(rows.data()) + begin, bytes});
      begin += bytes;
    }
    return {};
  }

 private:
  // Returns the index of a field's column.
  size_t InMemory(size_t field) const { return field - 1 - parts_.loaded.size(); }

  // Needs the GIL.
  Status Call(uint64_t id, LoadedSample& loaded, std::string& path, std::string& rows) const {
    try {
      const auto pair = py::handle(static_cast<PyObject*>(load_.get()))(id).cast<py::tuple>();
      if (pair.size() != 2) return ErrorOf(pair);
      rows = pair[1].cast<std::string>();
      if (py::isinstance<py::tuple>(pair[0])) {
        path = pair[0].cast<py::tuple>()[0].cast<std::string>();
        return {};
      }
      const py::buffer_info image = py::reinterpret_borrow<py::buffer>(pair[0]).request();
      const WithoutGil released;  // for the copy; `image` needs the GIL before and after it
      return loaded.SetBytes({static_cast<const uint8_t*>(image.ptr),
                              static_cast<size_t>(image.size * image.itemsize)});
    } catch (const std::exception& error) {
      return Error{.code = Code::kUnavailable, .cause = error.what()};
    }
  }

  const std::shared_ptr<void> load_;
  const DatasetParts parts_;
  std::vector<Field> fields_;
  uint64_t fingerprint_ = 0;
};

// `rows`: (name, array of one row) of each field that comes with the images. `columns`: the fields
// in memory, by name. If there is a "label", it comes first in either.
SourceHandle OpenDataset(py::object load, std::string name, std::string identity, uint64_t size,
                         const std::vector<std::pair<std::string, py::array>>& rows,
                         const py::dict& columns, std::vector<std::string> classes, int threads) {
  DatasetParts parts{.name = std::move(name),
                     .identity = std::move(identity),
                     .size = size,
                     .classes = std::move(classes),
                     .threads = threads};
  for (const auto& [row_name, row] : rows) {
    parts.loaded.push_back({.name = row_name,
                            .kind = Field::Kind::kLoaded,
                            .dtype = DTypeOf(row),
                            .row_shape = {row.shape(), row.shape() + row.ndim()},
                            .is_label = row_name == "label"});
  }
  const auto beside = std::make_shared<Beside>();
  std::vector<ArrayColumn> made = ColumnsOf(columns, *beside);
  for (const ArrayColumn& column : made) {
    if (column.samples != size) throw py::value_error("columns differ in length");
  }
  parts.columns = Value(MemoryColumns::Make(std::move(made), beside));
  return {.source = std::make_shared<const DatasetSource>(std::move(load), std::move(parts))};
}

}  // namespace

void AddDatasetSource(py::module_& module) {
  module.def("dataset", &OpenDataset, py::arg("load"), py::arg("name"), py::arg("identity"),
             py::arg("size"), py::arg("rows"), py::arg("columns"), py::arg("classes"),
             py::arg("threads"));
}

}  // namespace stoker::python
