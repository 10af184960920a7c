// The source of stoker.from_dataset: samples that a Python object gives, called on threads.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/arrays.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"
#include "core/hash.h"
#include "core/try.h"
#include "io/sources/loaded_sample.h"
#include "io/sources/source.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

class DatasetSource final : public SampleSource {
 public:
  // `load`: a function of an id that returns (image, rows), or bytes that say what went wrong.
  // `image`: a buffer; or the bytes of a path in a tuple of one. `rows`: bytes.
  DatasetSource(py::object load, std::string name, uint64_t size, std::vector<Field> fields,
                std::vector<std::string> classes, int threads)
      : load_(load.release().ptr(), [](void* held) { ReleaseLater(held); }),
        name_(std::move(name)),
        size_(size),
        fields_(std::move(fields)),
        classes_(std::move(classes)),
        threads_(threads) {}

  uint64_t size() const override { return size_; }
  std::span<const Field> fields() const override { return fields_; }
  int calls() const override { return threads_; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return sizeof(*this); }
  std::string Describe() const override { return "dataset(" + name_ + ")"; }

  // "Mine[17]"
  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(name_).append("[").append(std::to_string(file)).append("]");
  }

  uint64_t Fingerprint() const override {
    uint64_t hash = Hash64(name_, size_ + 1);
    for (const Field& field : fields_) hash = Hash64(field.name + DescribeRow(field), hash);
    return hash;
  }

  Status Load(uint64_t id, LoadedSample& loaded) const override {
    KeepPythonThread();
    std::string path, rows;
    {
      const WithGil gil;
      if (!gil) return Error{Code::kCancelled, "the interpreter is shutting down"};
      TRY(Call(id, loaded, path, rows));
    }
    if (!path.empty()) {
      TRY(loaded.SetFile(path));
    }
    size_t begin = 0;
    for (size_t field = 1; field < fields_.size(); ++field) {
      const size_t bytes = fields_[field].row_bytes();
      loaded.SetRow(field, {reinterpret_cast<const uint8_t*>(rows.data()) + begin, bytes});
      begin += bytes;
    }
    return {};
  }

 private:
  // With the GIL held.
  Status Call(uint64_t id, LoadedSample& loaded, std::string& path, std::string& rows) const {
    try {
      const auto made = py::handle(static_cast<PyObject*>(load_.get()))(id);
      if (py::isinstance<py::bytes>(made)) {
        return Error{.code = Code::kUnavailable, .cause = made.cast<std::string>()};
      }
      const auto pair = made.cast<py::tuple>();
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
  const std::string name_;
  const uint64_t size_;
  const std::vector<Field> fields_;
  const std::vector<std::string> classes_;
  const int threads_;
};

// `rows`: (name, array of one row) of each field beside the image.
SourceHandle OpenDataset(py::object load, std::string name, uint64_t size,
                         const std::vector<std::pair<std::string, py::array>>& rows,
                         std::vector<std::string> classes, int threads) {
  std::vector<Field> fields{{.name = "image", .kind = Field::Kind::kImage}};
  for (const auto& [row_name, row] : rows) {
    fields.push_back({.name = row_name,
                      .kind = Field::Kind::kLoaded,
                      .dtype = DTypeOf(row),
                      .row_shape = {row.shape(), row.shape() + row.ndim()},
                      .is_label = row_name == "label"});
  }
  return {.source = std::make_shared<const DatasetSource>(std::move(load), std::move(name), size,
                                                          std::move(fields), std::move(classes),
                                                          threads)};
}

}  // namespace

void AddDatasetSource(py::module_& module) {
  module.def("dataset", &OpenDataset, py::arg("load"), py::arg("name"), py::arg("size"),
             py::arg("rows"), py::arg("classes"), py::arg("threads"));
}

}  // namespace stoker::python
