// Iteration: where a CursorHandle gets batches from, and what Python sees of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/interrupt.h"
#include "core/result.h"
#include "engine/device/shared_device_loader.h"
#include "engine/loader/cursor.h"

namespace pybind11 {
class tuple;
}

namespace stoker::python {

// One thread at a time.
class Iteration {
 public:
  virtual ~Iteration() = default;

  // As Cursor's, and of what was delivered: what is on its way is not passed.
  virtual std::optional<BatchName> position() const = 0;

  // As Cursor's. Without the GIL.
  virtual Status Seek(BatchName batch) = 0;

  // What Next took; the batch is let go when Python lets go of it. Empty: the epoch has ended.
  class Taken {
   public:
    virtual ~Taken() = default;
    virtual std::vector<uint64_t> sample_ids() const = 0;
    virtual pybind11::tuple Columns() const = 0;  // with the GIL held
  };
  virtual Result<std::unique_ptr<Taken>> Next(const Interrupt& interrupt) = 0;  // without the GIL
};

// In the memory of the batch's slot: NumPy arrays, or Tensors.
enum class As : uint8_t { kArrays, kTensors };

// The first `columns` of each batch.
std::unique_ptr<Iteration> OnTheCpu(std::unique_ptr<Cursor> cursor, size_t columns, As as);

// On a device: Tensors.
std::unique_ptr<Iteration> OnADevice(std::unique_ptr<DeviceCursor> cursor, size_t columns);

}  // namespace stoker::python
