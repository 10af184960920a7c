// DeviceConsumer: simulates training on a device: takes batches, keeps the device busy for a step
// with each, and measures how long the device had to wait for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/cli/bench/device_scratch.h"
#include "core/batch/batch.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"
#include "gpu/staging/device_batch.h"

namespace stoker {

// Measured by the device's events; in nanoseconds.
struct StepTimes {
  uint64_t steps = 0;
  uint64_t step_ns = 0;  // of all steps
  uint64_t idle_ns = 0;  // from a step's end to the next one's start: waiting for input
};

class DeviceConsumer {
 public:
  // With a step of 0 the device only waits for the batches.
  static Result<std::unique_ptr<DeviceConsumer>> Make(std::shared_ptr<Device> device,
                                                      uint64_t step_ns);
  ~DeviceConsumer();
  DeviceConsumer(const DeviceConsumer&) = delete;
  DeviceConsumer& operator=(const DeviceConsumer&) = delete;

  // Issues the step after the batch's arrival, and releases the batch. Waits for the step two
  // before it, like a training loop that occasionally reads its loss.
  Status Step(DeviceBatch batch);

  // Waits for the last step.
  Result<StepTimes> Drain();

 private:
  struct Marks {
    DeviceEvent begun, done;
  };
  static constexpr size_t kInFlight = 2;

  DeviceConsumer(std::shared_ptr<Device> device, uint64_t step_ns);
  Status Account(uint64_t step);

  const std::shared_ptr<Device> device_;
  const uint64_t step_ns_;
  DeviceStream stream_;
  std::array<Marks, kInFlight + 2> marks_{};  // by step
  uint64_t issued_ = 0, accounted_ = 0;
  uint64_t first_ = 0;  // first step since the last Drain
  StepTimes times_;
};

// A batch's content, in host memory.
struct HostCopy {
  std::vector<std::vector<uint8_t>> memory;
  std::vector<Column> columns;
};
Result<HostCopy> CopyToHost(const DeviceBatch& batch);

// Returns the median rate of copies of `bytes` random bytes to the device, one after the other, in
// bytes per second.
Result<double> BareCopyRate(Device& device, size_t bytes,
                            HostMemory memory = HostMemory::kAllocated);

// Returns the time of a step alone, in nanoseconds.
Result<uint64_t> BareStep(Device& device, uint64_t step_ns);

}  // namespace stoker
