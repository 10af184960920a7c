// A stand-in for training on a device: takes batches, keeps the device busy for a step with each,
// and tells how long the device had to wait for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "gpu/device.h"
#include "gpu/device_batch.h"

namespace stoker {

// Times are the device's own, by events; in nanoseconds.
struct StepTimes {
  uint64_t steps = 0;
  uint64_t step_ns = 0;  // of all steps
  uint64_t idle_ns = 0;  // between a step's end and the next one's begin: waiting for input
};

class DeviceConsumer {
 public:
  // A step of 0 does nothing with the batch but wait for it, on the device.
  static Result<std::unique_ptr<DeviceConsumer>> Make(std::shared_ptr<Device> device,
                                                      uint64_t step_ns);
  ~DeviceConsumer();
  DeviceConsumer(const DeviceConsumer&) = delete;
  DeviceConsumer& operator=(const DeviceConsumer&) = delete;

  // Issues the step behind the batch's arrival, and lets the batch go. Waits for the step two
  // before it, as a training loop that looks at its loss now and then does.
  Status Step(DeviceBatch batch);

  // Waits for the last step.
  Result<StepTimes> Finish();

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
  uint64_t first_ = 0;  // step since the last Finish
  StepTimes times_;
};

// What a batch holds, in host memory.
struct HostCopy {
  std::vector<std::vector<uint8_t>> memory;
  std::vector<Column> columns;
};
Result<HostCopy> CopyToHost(const DeviceBatch& batch);

// Bytes a second of copies of `bytes` from pinned memory, one behind the other, and nothing else:
// the median of some.
Result<double> BareCopyRate(Device& device, size_t bytes);

// Bytes read and written a second by `job`'s kernel, and by a copy on the device of as many bytes.
struct FinishRate {
  double finish = 0, copy = 0;
};
Result<FinishRate> MeasureFinish(Device& device, FinishJob job);

// Nanoseconds of a step while nothing else is done.
Result<uint64_t> BareStep(Device& device, uint64_t step_ns);

}  // namespace stoker
