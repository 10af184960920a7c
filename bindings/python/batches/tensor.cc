#include "bindings/python/batches/tensor.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "bindings/python/batches/arrays.h"
#include "bindings/python/errors.h"
#include "bindings/python/module.h"
#include "bindings/python/waiting.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

constexpr size_t kAlignment = 64;  // of copies, the same as of batches

std::string Repr(const py::object& value) { return py::repr(value).cast<std::string>(); }

// Returns the error for an argument of __dlpack__. It is not a TypeError: PyTorch takes a TypeError
// for a producer that does not know the argument, and calls again without it and the others.
py::buffer_error Refused(const char* name, const py::object& value, const char* rule) {
  return py::buffer_error(std::string(name) + " is " + Repr(value) + "; it must be " + rule);
}

// Returns the result of operator.index, also for NumPy's integers; nullopt if it is not an integer,
// or True or False, or has more than 64 bits.
std::optional<int64_t> IntegerOf(const py::object& value) {
  if (PyBool_Check(value.ptr()) != 0 || PyIndex_Check(value.ptr()) == 0) return std::nullopt;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) {
    py::error_already_set error;  // arrays of several elements have an __index__, too
    if (!error.matches(PyExc_TypeError)) throw error;
    return std::nullopt;
  }
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) return std::nullopt;
  return number;
}

constexpr int64_t kLegacyDefaultStream = 1, kNoSynchronization = -1;

// The value is a handle, not an address.
DeviceStream StreamAt(int64_t handle) {
  return {reinterpret_cast<void*>(static_cast<intptr_t>(handle))};
}

// Returns the stream that a number or a library's object represents: PyTorch's have `cuda_stream`,
// others have CUDA's protocol, `__cuda_stream__() -> (version, handle)`. There 0 is the legacy
// default stream; as a number, it could be either default stream.
DeviceStream StreamOf(const py::object& value) {
  std::optional<int64_t> handle = IntegerOf(value);
  if (!handle) {
    if (py::hasattr(value, "cuda_stream")) {
      handle = IntegerOf(value.attr("cuda_stream"));
    } else if (py::hasattr(value, "__cuda_stream__")) {
      const py::object pair = value.attr("__cuda_stream__")();
      if (py::isinstance<py::tuple>(pair) && py::len(pair) == 2) {
        handle = IntegerOf(pair.cast<py::tuple>()[1]);
      }
    }
    if (handle == 0) handle = kLegacyDefaultStream;
  }
  if (handle && *handle > 0) return StreamAt(*handle);
  throw py::value_error(
      "stream is " + Repr(value) +
      "; it must be a cudaStream_t as a number (1 is the legacy default stream, 2 "
      "the thread's), or an object with cuda_stream or __cuda_stream__");
}

// Returns two integers; the first may be a member of an enumeration.
std::pair<int64_t, int64_t> PairOf(const char* name, const py::object& value) {
  if (py::isinstance<py::tuple>(value) && py::len(value) == 2) {
    const auto both = value.cast<py::tuple>();
    const py::object first = both[0];
    const auto one = IntegerOf(py::hasattr(first, "value") ? first.attr("value") : first);
    const auto other = IntegerOf(both[1]);
    if (one && other) return {*one, *other};
  }
  throw Refused(name, value, "a tuple of two integers of 64 bits");
}

bool FlagOf(const char* name, const py::object& value) {
  if (value.is_none()) return false;
  if (!py::isinstance<py::bool_>(value)) throw Refused(name, value, "True, False or None");
  return value.cast<bool>();
}

// Returns the device for DLPack. The host device has CPU memory.
dlpack::Device DlpackDevice(const DeviceName& name) {
  if (name.kind == DeviceName::Kind::kHost) return {};
  return {dlpack::kCuda, name.ordinal};
}

dlpack::Contents Copied(dlpack::Contents contents, size_t bytes) {
  const size_t room = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::shared_ptr<void> memory(std::aligned_alloc(kAlignment, room), &std::free);
  if (memory == nullptr) throw std::bad_alloc();
  {
    const WithoutGil released;
    std::memcpy(memory.get(), contents.data, bytes);
  }
  contents.data = memory.get();
  contents.memory = std::move(memory);
  contents.flags = dlpack::kIsCopied;
  return contents;
}

// Implements np.asarray(tensor, dtype, copy=copy): delegates to NumPy with the tensor's array.
py::object AsArray(const Tensor& self, const py::object& dtype, std::optional<bool> copy) {
  py::object array = self.Array();
  const bool same = dtype.is_none() || py::dtype::from_args(dtype).equal(array.attr("dtype"));
  if (same) return copy.value_or(false) ? array.attr("copy")() : array;
  if (copy.has_value() && !*copy) {
    throw py::value_error("a tensor of " + std::string(NameOf(self.dtype())) +
                          " has no other type without a copy");
  }
  return array.attr("astype")(dtype);
}

// Implements jax.numpy.asarray(tensor).
py::object AsJaxArray(const py::object& self) {
  return py::module_::import("stoker._jax").attr("array_of")(self);
}

// Implements memoryview(tensor): the buffer of its array.
int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const auto& tensor = py::handle(self).cast<const Tensor&>();
    if (tensor.dtype() == DType::kBF16) {
      PyErr_SetString(PyExc_BufferError, "buffers have no bfloat16");
      return -1;
    }
    return PyObject_GetBuffer(tensor.Array().ptr(), view, flags);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

std::string ReprOf(const Tensor& self) {
  const py::object shape = py::tuple(py::cast(self.shape()));
  return "<stoker.Tensor " + Repr(shape) + " " + NameOf(self.dtype()) + " on " + self.device() +
         ">";
}

constexpr const char* kRecordStreamDoc =
    R"(Says that the batch is used on this CUDA stream, as PyTorch's Tensor.record_stream does.

    images.record_stream(torch.cuda.current_stream())

When all tensors of the batch have been released, its memory is reused after the work that these streams
have been given by then: those named here, on any of the batch's tensors, and those that a library passed to
__dlpack__. Without a name it is reused after all work of the device, on any stream, because a library may
work on other streams than it passes. So name every stream that uses the batch, or make a named stream wait
for it; and do not name any if JAX uses the batch, whose streams nobody knows.

The streams must exist until the batch is released. (One that is being captured into a graph then, until a
batch is requested after the capture.) The stream does not wait for the batch: __dlpack__ does that.

Args:
    stream: a torch.cuda.Stream, an object with __cuda_stream__, or a cudaStream_t as a number: 1 is the
        legacy default stream. 2, the thread's default stream, cannot be waited for on other threads: the
        memory is then reused after all work of the device.

Raises:
    ValueError: not a stream, or the tensor is not on a GPU.
    FailedPreconditionError: this is a forked process.

Any thread.)";

constexpr const char* kTensorDoc =
    R"(A column of a batch of `Loader.to_device`, in the memory that it was made in, or copied to.

    for images, labels in loader.to_device("cuda:0"):
        images = torch.from_dlpack(images)  # or jax.dlpack.from_dlpack, cupy.from_dlpack: no copy

It computes nothing: whoever takes it by DLPack does, and shares its memory, which stays for as long as
the tensor or anything that was made of it is kept, also after the loader has gone. On the CPU it is also a
buffer (`memoryview`) and an array (`np.asarray`). Any thread.)";

}  // namespace

std::shared_ptr<const DeviceBatch> ForTensors(DeviceBatch batch) {
  return {new DeviceBatch(std::move(batch)), [](const DeviceBatch* held) {
            if (!HasGil()) return delete held;
            const WithoutGil released;
            delete held;
          }};
}

Tensor::Tensor(const Batch& batch, size_t column)
    : Tensor(batch.columns()[column], "cpu", {}, batch.Owner(column)) {}

Tensor Tensor::OffsetsOf(const Batch& batch, size_t column) {
  Column offsets{.name = {}, .dtype = DType::kI64, .shape = {batch.rows() + 1}};
  offsets.data = batch.columns()[column].offsets;
  return Tensor(offsets, "cpu", {}, batch.Owner(column));
}

Tensor::Tensor(std::shared_ptr<const DeviceBatch> batch, size_t column)
    : Tensor(batch->columns()[column], batch->device()->name().ToString(),
             DlpackDevice(batch->device()->name()), std::const_pointer_cast<DeviceBatch>(batch)) {
  batch_ = std::move(batch);
}

Tensor::Tensor(const Column& column, std::string device, dlpack::Device dlpack_device,
               std::shared_ptr<void> memory)
    : device_(std::move(device)),
      dlpack_device_(dlpack_device),
      dtype_(column.dtype),
      shape_(column.shape),
      data_(column.data),
      memory_(std::move(memory)) {}

uint64_t Tensor::bytes() const {
  uint64_t bytes = SizeOf(dtype_);
  for (const int64_t side : shape_) bytes *= static_cast<uint64_t>(side);
  return bytes;
}

dlpack::Contents Tensor::Contents() const {
  return {
      .data = data_, .device = dlpack_device_, .dtype = dtype_, .shape = shape_, .memory = memory_};
}

py::object Tensor::Dlpack(const py::object& stream, const py::object& max_version,
                          const py::object& dl_device, const py::object& copy) const {
  const bool copies = FlagOf("copy", copy);
  const bool versioned = !max_version.is_none() && PairOf("max_version", max_version).first >= 1;
  const std::pair<int64_t, int64_t> own(dlpack_device_.type, dlpack_device_.id);
  if (!dl_device.is_none() && PairOf("dl_device", dl_device) != own) {
    throw py::buffer_error("the tensor is on " + device_ + "; stoker does not move it to " +
                           Repr(dl_device));
  }
  if (copies && batch_ != nullptr) {
    throw py::buffer_error("the tensor is on " + device_ + ", where stoker makes no copies");
  }
  Synchronize(stream);
  return dlpack::Capsule(copies ? Copied(Contents(), bytes()) : Contents(), versioned);
}

// From here on the consumer may use the memory on that stream. It releases the memory when its last
// use has been issued, on unknown streams: the standard says neither that the consumer works on the
// stream that it passes (JAX never does: PjRtDevice::GetStreamForExternalReadyEvents), nor that the
// stream exists for as long as the memory is used. RecordStream says both.
void Tensor::Synchronize(const py::object& stream) const {
  if (dlpack_device_.type == dlpack::kCpu) {
    if (!stream.is_none()) throw Refused("stream", stream, "None on the CPU");
    if (batch_ != nullptr) GiveTo(std::nullopt);
    return;
  }
  // "None: producer must assume the legacy default stream" (array API). JAX's clients that have no
  // stream to pass, and TensorFlow, pass none and use other streams, so the host waits.
  if (stream.is_none()) return GiveTo(std::nullopt);
  const std::optional<int64_t> value = IntegerOf(stream);
  if (!value || *value < kNoSynchronization || *value == 0) {
    throw Refused(
        "stream", stream,
        "None, -1, 1, 2 or a cudaStream_t as a number (0 could be either default stream)");
  }
  if (*value == kNoSynchronization) {
    const WithoutGil released;  // another thread may hold the batch's lock in a call of CUDA
    return batch_->MarkUntracked();
  }
  GiveTo(StreamAt(*value));
}

void Tensor::RecordStream(const py::object& stream) const {
  if (dlpack_device_.type == dlpack::kCpu) {
    throw py::value_error("the tensor is on " + device_ + ", where there are no CUDA streams");
  }
  const DeviceStream used_on = StreamOf(stream);
  Status status;
  {
    const WithoutGil released;
    status = batch_->RecordStream(used_on);
  }
  Check(status);
}

void Tensor::GiveTo(std::optional<DeviceStream> stream) const {
  Status status;
  {
    const WithoutGil released;
    status = batch_->GiveTo(stream);
  }
  Check(status);
}

py::object Tensor::Array() const {
  if (dlpack_device_.type != dlpack::kCpu) {
    throw py::type_error(
        "the tensor is on " + device_ +
        ", where NumPy has no arrays; take it by from_dlpack of a library that has");
  }
  if (batch_ != nullptr) GiveTo(std::nullopt);
  return ArrayOver(dtype_, shape_, data_, memory_);
}

void AddTensor(py::module_& module) {
  py::class_<Tensor>(module, "Tensor", py::custom_type_setup([](PyHeapTypeObject* type) {
                       type->as_buffer.bf_getbuffer = &GetBuffer;
                       type->ht_type.tp_as_buffer = &type->as_buffer;
                     }),
                     kTensorDoc)
      .def_property_readonly(
          "shape", [](const Tensor& self) { return py::tuple(py::cast(self.shape())); },
          "Rows first; C order, no gaps.")
      .def_property_readonly(
          "dtype", [](const Tensor& self) { return NumPyType(self.dtype()); },
          "The elements' type, a numpy.dtype, which is equal to its name: \"float32\". That of "
          "bfloat16 needs ml_dtypes.")
      .def_property_readonly("device", &Tensor::device, "\"cpu\", \"cuda:0\", … or \"host\".")
      .def_property_readonly(
          "ndim", [](const Tensor& self) { return self.shape().size(); }, "len(shape)")
      .def_property_readonly("nbytes", &Tensor::bytes, "Bytes of all elements.")
      .def("__dlpack__", &Tensor::Dlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none())
      .def("record_stream", &Tensor::RecordStream, py::arg("stream"), kRecordStreamDoc)
      .def("__dlpack_device__",
           [](const Tensor& self) {
             const dlpack::Device device = self.dlpack_device();
             return std::pair(static_cast<int32_t>(device.type), device.id);
           })
      .def("__jax_array__", &AsJaxArray)
      .def("__array__", &AsArray, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def("__repr__", &ReprOf)
      .attr("__module__") = "stoker";
}

}  // namespace stoker::python
