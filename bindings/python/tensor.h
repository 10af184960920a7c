// stoker.Tensor: a column of a batch, where it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/python/dlpack.h"
#include "core/batch.h"
#include "core/dtype.h"
#include "gpu/device_batch.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// Keeps the memory that it lies in, and nothing else of the batch. Letting it go needs no GIL, may
// happen on any thread, and as late as the interpreter's end. All methods: with the GIL held; what
// they throw is Python's.
class Tensor {
 public:
  // Of a batch on the CPU.
  Tensor(const Batch& batch, size_t column);

  // Of a batch on a device. It is the same for all tensors of the batch.
  Tensor(std::shared_ptr<const DeviceBatch> batch, size_t column);

  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  const std::string& device() const { return device_; }
  uint64_t bytes() const;
  dlpack::Device dlpack_device() const { return dlpack_device_; }

  // The array API standard's __dlpack__ (data-apis.org/array-api), 2023.12 and later. BufferError
  // for all that it does not give.
  pybind11::object Dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object& dl_device, const pybind11::object& copy) const;

  // A NumPy array over the same memory, which is the host's and has its values. TypeError where it
  // is a device's.
  pybind11::object Array() const;

 private:
  Tensor(const Column& column, std::string device, dlpack::Device dlpack_device,
         std::shared_ptr<void> memory);
  dlpack::Contents Contents() const;
  void Synchronize(const pybind11::object& stream) const;
  void WaitOnHost() const;

  std::string device_;
  dlpack::Device dlpack_device_;
  DType dtype_;
  std::vector<int64_t> shape_;
  void* data_;
  std::shared_ptr<void> memory_;
  std::shared_ptr<const DeviceBatch> batch_;  // null on the CPU
};

// A batch for tensors to share. The last of them lets go of the GIL where it has it: freeing device
// memory waits for what uses it.
std::shared_ptr<const DeviceBatch> ForTensors(DeviceBatch batch);

}  // namespace stoker::python
