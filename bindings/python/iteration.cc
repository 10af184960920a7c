#include "bindings/python/iteration.h"

#include <pybind11/pybind11.h>

#include <utility>

#include "bindings/python/arrays.h"
#include "bindings/python/tensor.h"
#include "core/try.h"

namespace stoker::python {

namespace py = pybind11;

namespace {

class TakenFromSlot : public Iteration::Taken {
 public:
  TakenFromSlot(Batch batch, size_t columns, As as)
      : batch_(std::move(batch)), columns_(columns), as_(as) {}

  std::vector<uint64_t> sample_ids() const override {
    return {batch_.sample_ids().begin(), batch_.sample_ids().end()};
  }

  py::tuple Columns() const override {
    py::tuple all(columns_);
    for (size_t c = 0; c < columns_; ++c) {
      all[c] = as_ == As::kArrays ? ArrayOf(batch_, c) : py::cast(Tensor(batch_, c));
    }
    return all;
  }

 private:
  Batch batch_;
  const size_t columns_;
  const As as_;
};

class CpuIteration : public Iteration {
 public:
  CpuIteration(std::unique_ptr<Cursor> cursor, size_t columns, As as)
      : cursor_(std::move(cursor)), columns_(columns), as_(as) {}

  std::optional<BatchName> position() const override { return cursor_->position(); }
  Status Seek(BatchName batch) override { return cursor_->Seek(batch); }

  Result<std::unique_ptr<Taken>> Next(const Interrupt& interrupt) override {
    ASSIGN_OR_RETURN(Batch batch, cursor_->Next(interrupt));
    std::unique_ptr<Taken> taken;
    if batch
      taken = std::make_unique<TakenFromSlot>(std::move(batch), columns_, as_);
    return taken;
  }

 private:
  const std::unique_ptr<Cursor> cursor_;
  const size_t columns_;
  const As as_;
};

class TakenFromRing : public Iteration::Taken {
 public:
  TakenFromRing(DeviceBatch batch, size_t columns)
      : batch_(ForTensors(std::move(batch))), columns_(columns) {}

  std::vector<uint64_t> sample_ids() const override {
    return {batch_->sample_ids().begin(), batch_->sample_ids().end()};
  }

  py::tuple Columns() const override {
    py::tuple all(columns_);
    for (size_t c = 0; c < columns_; ++c) all[c] = py::cast(Tensor(batch_, c));
    return all;
  }

 private:
  const std::shared_ptr<const DeviceBatch> batch_;
  const size_t columns_;
};

class DeviceIteration : public Iteration {
 public:
  DeviceIteration(std::unique_ptr<DeviceCursor> cursor, size_t columns)
      : cursor_(std::move(cursor)), columns_(columns) {}

  std::optional<BatchName> position() const override { return cursor_->position(); }
  Status Seek(BatchName batch) override { return cursor_->Seek(batch); }

  Result<std::unique_ptr<Taken>> Next(const Interrupt& interrupt) override {
    ASSIGN_OR_RETURN(DeviceBatch batch, cursor_->Next(interrupt));
    std::unique_ptr<Taken> taken;
    if batch
      taken = std::make_unique<TakenFromRing>(std::move(batch), columns_);
    return taken;
  }

 private:
  const std::unique_ptr<DeviceCursor> cursor_;
  const size_t columns_;
};

}  // namespace

std::unique_ptr<Iteration> OnADevice(std::unique_ptr<DeviceCursor> cursor, size_t columns) {
  return std::make_unique<DeviceIteration>(std::move(cursor), columns);
}

std::unique_ptr<Iteration> OnTheCpu(std::unique_ptr<Cursor> cursor, size_t columns, As as) {
  return std::make_unique<CpuIteration>(std::move(cursor), columns, as);
}

}  // namespace stoker::python
