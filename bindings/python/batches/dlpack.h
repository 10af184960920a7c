// DLPack: the protocol by which array libraries share memory without a copy.
//
// The structs are the ABI of DLPack 1 and of the version before it, as in dlpack.h of
// github.com/dmlc/dlpack; the names of capsules and the rules for deleters are in its Python
// specification (dmlc.github.io/dlpack/latest/python_spec.html). They must not change.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch/dtype.h"

namespace pybind11 {
class object;
}

namespace stoker::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2 };

struct Device {
  DeviceType type = kCpu;
  int32_t id = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

struct ElementType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;
};

struct TensorView {
  void* data = nullptr;
  Device device;
  int32_t ndim = 0;
  ElementType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements
  uint64_t byte_offset = 0;
};

// The content of a capsule named "dltensor".
struct Managed {
  TensorView tensor;
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
};

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
};

// The content of a capsule named "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedVersioned*) = nullptr;
  uint64_t flags = 0;
  TensorView tensor;
};

inline constexpr uint64_t kIsCopied = 2;  // a flag: the memory is not shared

static_assert(sizeof(TensorView) == 48 && sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

// A dense tensor in C order. `memory` keeps its data valid.
struct Contents {
  void* data = nullptr;
  Device device;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::shared_ptr<void> memory;
  uint64_t flags = 0;
};

// A capsule that shares the memory. A consumer that takes the tensor renames the capsule and calls
// the deleter when done, on any thread, with or without the GIL, as late as the interpreter's end;
// a capsule that no consumer took calls it itself. With the GIL held.
pybind11::object Capsule(Contents contents, bool versioned);

}  // namespace stoker::python::dlpack
