#include "bindings/python/errors.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "core/result/secrets.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

// Returns a message as str. Messages may quote file names, which are bytes: they are decoded as
// Python decodes file names.
py::object Decoded(const std::string& text) {
  PyObject* decoded =
      PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(decoded);
}

}  // namespace

void Raise(const Error& raised) {
  const Error error = WithoutSecrets(raised);
  const py::object file = error.file.empty() ? py::none() : Decoded(error.file);
  const py::object made = py::module_::import("stoker._errors")
                              .attr("from_native")(CodeName(error.code), Decoded(error.cause), file,
                                                   error.offset, Decoded(error.Advice()));
  PyErr_SetObject(py::type::of(made).ptr(), made.ptr());
  throw py::error_already_set();
}

}  // namespace stoker::python
