#include "bindings/cli/bench/device_consumer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/cli/bench/device_scratch.h"
#include "core/result/try.h"

namespace stoker {

namespace {

double Rate(double bytes, uint64_t nanoseconds) {
  return bytes * 1e9 / static_cast<double>(nanoseconds);
}

}  // namespace

DeviceConsumer::DeviceConsumer(std::shared_ptr<Device> device, uint64_t step_ns)
    : device_(std::move(device)), step_ns_(step_ns) {}

Result<std::unique_ptr<DeviceConsumer>> DeviceConsumer::Make(std::shared_ptr<Device> device,
                                                             uint64_t step_ns) {
  std::unique_ptr<DeviceConsumer> consumer(new DeviceConsumer(std::move(device), step_ns));
  ASSIGN_OR_RETURN(consumer->stream_, consumer->device_->MakeStream());
  for (Marks& marks : consumer->marks_) {
    for (DeviceEvent* event : {&marks.begun, &marks.done}) {
      ASSIGN_OR_RETURN(*event, consumer->device_->MakeEvent(/*timed=*/true));
    }
  }
  return consumer;
}

DeviceConsumer::~DeviceConsumer() {
  if (stream_.handle != nullptr) device_->Destroy(stream_);
  for (const Marks& marks : marks_) {
    if (marks.begun.handle != nullptr) device_->Destroy(marks.begun);
    if (marks.done.handle != nullptr) device_->Destroy(marks.done);
  }
}

Status DeviceConsumer::Step(DeviceBatch batch) {
  const Marks& marks = marks_[issued_ % marks_.size()];
  Status s = batch.WaitOn(stream_);
  if (s.ok()) s = device_->Record(marks.begun, stream_);
  if (s.ok() && step_ns_ > 0) s = device_->Occupy(step_ns_, stream_);
  if (s.ok()) s = device_->Record(marks.done, stream_);
  batch.Release();
  if (!s.ok()) return s;
  ++issued_;
  return issued_ - accounted_ > kInFlight ? Account(accounted_) : Status();
}

// Waits for a step and the one before it, and adds their times.
Status DeviceConsumer::Account(uint64_t step) {
  const Marks& marks = marks_[step % marks_.size()];
  TRY(device_->Synchronize(marks.done));
  ASSIGN_OR_RETURN(uint64_t spent, device_->Elapsed(marks.begun, marks.done));
  times_.step_ns += spent;
  if (step > first_) {
    const Marks& last = marks_[(step - 1) % marks_.size()];
    ASSIGN_OR_RETURN(uint64_t idle, device_->Elapsed(last.done, marks.begun));
    times_.idle_ns += idle;
  }
  ++accounted_;
  ++times_.steps;
  return {};
}

Result<StepTimes> DeviceConsumer::Drain() {
  while (accounted_ < issued_) {
    TRY(Account(accounted_));
  }
  first_ = issued_;  // the next step does not follow this one without a pause
  return times_;
}

Result<HostCopy> CopyToHost(const DeviceBatch& batch) {
  Device& device = *batch.device();
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  HostCopy copy;
  copy.columns.assign(batch.columns().begin(), batch.columns().end());
  Status s = batch.Wait();  // on the host: this stream is destroyed before the batch
  for (Column& column : copy.columns) {
    std::vector<uint8_t>& memory = copy.memory.emplace_back(column.bytes());
    if (s.ok()) s = device.Copy(memory.data(), column.data, memory.size(), scratch.stream());
    column.data = memory.data();
  }
  if (s.ok()) s = scratch.Synchronize();
  if (!s.ok()) return std::move(s).error();
  return copy;
}

Result<double> BareCopyRate(Device& device, size_t bytes, HostMemory memory) {
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  ASSIGN_OR_RETURN(void* from, scratch.Host(bytes, memory));
  ASSIGN_OR_RETURN(void* to, scratch.Allocate(bytes));
  ASSIGN_OR_RETURN(const WorkTimes times, scratch.Time([&](DeviceStream stream) {
    return device.Copy(to, from, bytes, stream);
  }));
  return Rate(static_cast<double>(bytes), times.median_ns);
}

Result<uint64_t> BareStep(Device& device, uint64_t step_ns) {
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  ASSIGN_OR_RETURN(const WorkTimes times, scratch.Time([&](DeviceStream stream) {
    return device.Occupy(step_ns, stream);
  }));
  return times.median_ns;
}

}  // namespace stoker
