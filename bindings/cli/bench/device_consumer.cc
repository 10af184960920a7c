#include "bindings/cli/bench/device_consumer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/mapping.h"
#include "core/try.h"
#include "gpu/deferred_ops_job.h"

namespace stoker {

namespace {

constexpr int kRepeats = 20;

// Some, again and again: a device neither compresses nor remembers what it copies.
void FillWithRandom(std::span<uint8_t> bytes) {
  std::vector<uint64_t> words(8192);
  std::mt19937_64 random;
  std::generate(words.begin(), words.end(), random);
  const size_t most = words.size() * sizeof(words[0]);
  for (size_t at = 0; at < bytes.size(); at += most) {
    std::memcpy(&bytes[at], words.data(), std::min(most, bytes.size() - at));
  }
}

// A stream, two timed events, device memory and host memory.
class DeviceScratch {
 public:
  explicit DeviceScratch(Device& device) : device_(device) {}
  ~DeviceScratch() {
    for (void* memory : memory_) device_.Free(memory);
    if (begun_.handle != nullptr) device_.Destroy(begun_);
    if (done_.handle != nullptr) device_.Destroy(done_);
    if (stream_.handle != nullptr) device_.Destroy(stream_);
    if (pinned_) device_.Unpin(mapped_.data());
    if (allocated_ != nullptr) device_.FreePinned(allocated_);
  }
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;

  Status Prepare() {
    ASSIGN_OR_RETURN(DeviceStream stream, device_.MakeStream());
    stream_ = stream;
    for (DeviceEvent* event : {&begun_, &done_}) {
      ASSIGN_OR_RETURN(DeviceEvent made, device_.MakeEvent(/*timed=*/true));
      *event = made;
    }
    return {};
  }

  DeviceStream stream() const { return stream_; }
  Status Synchronize() {
    Status s = device_.Record(done_, stream_);
    return s.ok() ? device_.Synchronize(done_) : s;
  }

  Result<void*> Allocate(size_t bytes) {
    Result<void*> memory = device_.Allocate(bytes);
    if (memory.ok()) memory_.push_back(*memory);
    return memory;
  }

  // Returns host memory with random bytes; once.
  Result<void*> Host(size_t bytes, HostMemory memory) {
    void* data = nullptr;
    if (memory == HostMemory::kAllocated) {
      ASSIGN_OR_RETURN(allocated_, device_.AllocatePinned(bytes));
      data = allocated_;
    } else {
      const bool huge = memory == HostMemory::kRegisteredHuge;
      ASSIGN_OR_RETURN(mapped_, Mapping::Map(bytes, huge));
      data = mapped_.data();
      // The system may give huge pages to all memory. This is a hint, as that for huge pages is.
      if (!huge) (void)madvise(data, mapped_.size(), MADV_NOHUGEPAGE);
      if (memory != HostMemory::kPageable) {
        TRY(device_.Pin(data, mapped_.size()));
        pinned_ = true;
      }
    }
    FillWithRandom({static_cast<uint8_t*>(data), bytes});
    return data;
  }

  // Returns device memory with these bytes.
  Result<void*> Upload(const void* from, size_t bytes) {
    ASSIGN_OR_RETURN(void* to, Allocate(bytes));
    TRY(device_.Copy(to, from, bytes, stream_));
    TRY(Synchronize());
    return to;
  }

  // Returns the median time that `issue(stream)` takes on the device, in nanoseconds, without the
  // first run.
  template <typename Issue>
  Result<uint64_t> Time(const Issue& issue) {
    std::vector<uint64_t> times;
    for (int i = 0; i <= kRepeats; ++i) {
      Status s = device_.Record(begun_, stream_);
      if (s.ok()) s = issue(stream_);
      if (s.ok()) s = device_.Record(done_, stream_);
      if (s.ok()) s = device_.Synchronize(done_);
      if (!s.ok()) return std::move(s).error();
      Result<uint64_t> elapsed = device_.Elapsed(begun_, done_);
      if (!elapsed.ok()) return elapsed;
      if (i > 0) times.push_back(std::max<uint64_t>(*elapsed, 1));
    }
    std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
    return times[kRepeats / 2];
  }

 private:
  Device& device_;
  DeviceStream stream_;
  DeviceEvent begun_, done_;
  std::vector<void*> memory_;
  Mapping mapped_;
  bool pinned_ = false;
  void* allocated_ = nullptr;
};

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
  ASSIGN_OR_RETURN(uint64_t time, scratch.Time([&](DeviceStream stream) {
    return device.Copy(to, from, bytes, stream);
  }));
  return Rate(static_cast<double>(bytes), time);
}

Result<DeferredOpsRate> MeasureDeferredOps(Device& device, DeferredOpsJob job,
                                           const std::vector<uint64_t>& work) {
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  const auto values = static_cast<size_t>(job.rows) * 3 * static_cast<size_t>(job.height) *
                      static_cast<size_t>(job.width);
  const size_t written = values * SizeOf(job.dtype), moved = values + written;
  const size_t from_bytes = std::max(values, moved / 2);
  ASSIGN_OR_RETURN(void* random, scratch.Host(from_bytes, HostMemory::kAllocated));
  ASSIGN_OR_RETURN(void* from, scratch.Upload(random, from_bytes));
  ASSIGN_OR_RETURN(void* to, scratch.Allocate(std::max(written, moved / 2)));
  job.from = static_cast<const uint8_t*>(from);
  job.to = to;
  if (!work.empty()) {
    ASSIGN_OR_RETURN(void* there, scratch.Upload(work.data(), work.size() * sizeof(work[0])));
    job.work = static_cast<const uint8_t*>(there);
  }
  ASSIGN_OR_RETURN(uint64_t deferred, scratch.Time([&](DeviceStream stream) {
    return device.ApplyDeferred(job, stream);
  }));
  ASSIGN_OR_RETURN(uint64_t copy, scratch.Time([&](DeviceStream stream) {
    return device.Copy(to, from, moved / 2, stream);
  }));
  return DeferredOpsRate{Rate(static_cast<double>(moved), deferred),
                         Rate(static_cast<double>(moved), copy)};
}

Result<uint64_t> BareStep(Device& device, uint64_t step_ns) {
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  return scratch.Time([&](DeviceStream stream) { return device.Occupy(step_ns, stream); });
}

}  // namespace stoker
