// stoker.Tensor: a column of a batch, in host or device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/python/batches/dlpack.h"
#include "core/batch/batch.h"
#include "core/batch/dtype.h"
#include "gpu/staging/device_batch.h"

namespace pybind11 {
class object;
}

namespace stoker::python {

// Keeps its own memory alive, and nothing else of the batch. Releasing it needs no GIL and may
// happen on any thread, as late as the interpreter's end. All methods are called with the GIL held
// and throw Python exceptions.
class Tensor {
 public:
  // A column of a batch on the CPU.
  Tensor(const Batch& batch, size_t column);

  // The offsets of a ragged column of a batch on the CPU, (rows + 1,) int64.
  static Tensor OffsetsOf(const Batch& batch, size_t column);

  // A column of a batch on a device; all tensors of the batch share it.
  Tensor(std::shared_ptr<const DeviceBatch> batch, size_t column);

  const std::vector<int64_t>& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  const std::string& device() const { return device_; }
  uint64_t bytes() const;
  dlpack::Device dlpack_device() const { return dlpack_device_; }

  // The array API standard's __dlpack__ (data-apis.org/array-api), 2023.12 and later. BufferError
  // for unsupported requests.
  pybind11::object Dlpack(const pybind11::object& stream, const pybind11::object& max_version,
                          const pybind11::object& dl_device, const pybind11::object& copy) const;

  // Declares that the batch is used on this stream (DeviceBatch::RecordStream). ValueError if it is
  // not a stream, or the tensor is in host memory.
  void RecordStream(const pybind11::object& stream) const;

  // A NumPy array that shares the memory, after waiting for its values. TypeError for device
  // memory.
  pybind11::object Array() const;

 private:
  Tensor(const Column& column, std::string device, dlpack::Device dlpack_device,
         std::shared_ptr<void> memory);
  dlpack::Contents Contents() const;
  void Synchronize(const pybind11::object& stream) const;
  void GiveTo(std::optional<DeviceStream> stream) const;

  std::string device_;
  dlpack::Device dlpack_device_;
  DType dtype_;
  std::vector<int64_t> shape_;
  void* data_;
  std::shared_ptr<void> memory_;
  std::shared_ptr<const DeviceBatch> batch_;  // null on the CPU
};

// A batch that tensors share. The last of them releases the GIL if it holds it, because freeing
// device memory waits for its users.
std::shared_ptr<const DeviceBatch> ForTensors(DeviceBatch batch);

}  // namespace stoker::python
