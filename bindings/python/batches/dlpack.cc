#include "bindings/python/batches/dlpack.h"

#include <pybind11/pybind11.h>

#include <utility>

namespace stoker::python::dlpack {

namespace py = pybind11;

namespace {

// The specification's type codes.
enum : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

uint8_t CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return kBool;
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return kUInt;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return kInt;
    case DType::kBF16:
      return kBfloat;
    case DType::kF16:
    case DType::kF32:
    case DType::kF64:
      return kFloat;
    case DType::kString:
    case DType::kBytes:
      break;  // never exported
  }
  return kUInt;
}

template <typename M>
struct NameOfCapsule;
template <>
struct NameOfCapsule<Managed> {
  static constexpr const char* kName = "dltensor";
};
template <>
struct NameOfCapsule<ManagedVersioned> {
  static constexpr const char* kName = "dltensor_versioned";
};

// The object that the deleter deletes: the consumer's view and everything it points to.
template <typename M>
struct Export {
  M managed;
  std::vector<int64_t> strides;
  Contents contents;
};

// Must not use Python: it is called without the GIL, too.
template <typename M>
void Delete(M* managed) {
  delete static_cast<Export<M>*>(managed->context);
}

// The destructor of a capsule. The capsule has another name if a consumer has taken the tensor.
template <typename M>
void DeleteUnlessTaken(PyObject* capsule) {
  const char* const name = NameOfCapsule<M>::kName;
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* const managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

std::vector<int64_t> DenseStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

template <typename M>
py::object MakeCapsule(Contents&& contents) {
  auto made = std::make_unique<Export<M>>();
  made->contents = std::move(contents);
  Contents& kept = made->contents;
  made->strides = DenseStrides(kept.shape);
  M& managed = made->managed;
  managed.context = made.get();
  managed.deleter = &Delete<M>;
  managed.tensor = {
      .data = kept.data,
      .device = kept.device,
      .ndim = static_cast<int32_t>(kept.shape.size()),
      .dtype = {.code = CodeOf(kept.dtype), .bits = static_cast<uint8_t>(8 * SizeOf(kept.dtype))},
      .shape = kept.shape.data(),
      .strides = made->strides.data()};
  if constexpr (requires { managed.version; }) {
    managed.version = {.major = 1, .minor = 0};  // the first version with everything used here
    managed.flags = kept.flags;
  }
  PyObject* const capsule = PyCapsule_New(&managed, NameOfCapsule<M>::kName, &DeleteUnlessTaken<M>);
  if (capsule == nullptr) throw py::error_already_set();
  (void)made.release();  // owned by the capsule now
  return py::reinterpret_steal<py::object>(capsule);
}

}  // namespace

py::object Capsule(Contents contents, bool versioned) {
  return versioned ? MakeCapsule<ManagedVersioned>(std::move(contents))
                   : MakeCapsule<Managed>(std::move(contents));
}

}  // namespace stoker::python::dlpack
