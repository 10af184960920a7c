// The host as a device: ordinary memory, and threads as streams.
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/result/try.h"
#include "core/system/machine.h"
#include "gpu/backend/open_device.h"
#include "gpu/backend/own_process.h"
#include "gpu/crops/decode_crops.h"
#include "gpu/ops/deferred_ops_job.h"

namespace stoker {

namespace {

constexpr std::align_val_t kAlignment{256}, kPage{4096};

class HostDevice final : public Device {
 public:
  explicit HostDevice(BeforeWork before) : before_(std::move(before)) {}

  ~HostDevice() override {
    if (process_.here()) return;
    for (auto& [handle, stream] : streams_) Leave(std::move(stream));
    if (own_) Leave(std::move(own_));
  }

  DeviceName name() const override { return {DeviceName::Kind::kHost, 0}; }
  int numa_node() const override { return -1; }

  Status Pin(void*, size_t) override { return process_.Check("host"); }
  void Unpin(void*) override {}

  Result<void*> AllocatePinned(size_t bytes) override {
    TRY(process_.Check("host"));
    void* data = ::operator new(bytes, kPage, std::nothrow);
    if (data != nullptr) return data;
    return Error{.code = Code::kResourceExhausted,
                 .cause = "no " + std::to_string(bytes) + " bytes of memory"};
  }
  void FreePinned(void* data) override { ::operator delete(data, kPage); }

  Result<void*> Allocate(size_t bytes) override {
    TRY(process_.Check("host"));
    // Checked first, because Linux promises memory that it does not have.
    void* data =
        bytes <= AvailableMemory() ? ::operator new(bytes, kAlignment, std::nothrow) : nullptr;
    if (data != nullptr) return data;
    return Error{.code = Code::kResourceExhausted,
                 .cause = "no " + std::to_string(bytes) + " bytes of memory for the device host"};
  }

  void Free(void* data) override {
    if (data == nullptr) return;
    if (process_.here()) AwaitStreams();
    ::operator delete(data, kAlignment);
  }

  Result<DeviceStream> MakeStream(StreamPriority) override {
    TRY(process_.Check("host"));
    ASSIGN_OR_RETURN(std::shared_ptr<HostStream> stream, HostStream::Start(before_));
    void* handle = stream.get();
    std::lock_guard lock(mutex_);
    streams_.emplace(handle, std::move(stream));
    return DeviceStream{handle};
  }

  void Destroy(DeviceStream stream) override {
    if (!process_.here()) return;
    std::shared_ptr<HostStream> ended;  // outside the lock: its thread may still have much to do
    std::lock_guard lock(mutex_);
    if (auto found = streams_.find(stream.handle); found != streams_.end()) {
      ended = std::move(found->second);
      streams_.erase(found);
    }
  }

  Result<DeviceEvent> MakeEvent(bool) override {
    TRY(process_.Check("host"));
    return DeviceEvent{new HostEvent};
  }
  void Destroy(DeviceEvent event) override {
    if (process_.here()) delete static_cast<HostEvent*>(event.handle);
  }

  Status Record(DeviceEvent event, DeviceStream stream) override {
    return On(stream, [&](HostStream& on) { EventOf(event).Record(on); });
  }
  Status RecordAll(DeviceEvent event) override {
    TRY(process_.Check("host"));
    EventOf(event).Record(Streams());
    return {};
  }
  Result<bool> IsCapturing(DeviceStream) override {
    TRY(process_.Check("host"));
    return false;  // there are no graphs
  }
  Status Wait(DeviceStream stream, DeviceEvent event) override {
    return On(stream, [&](HostStream& on) { EventOf(event).HoldBack(on); });
  }
  Result<bool> IsDone(DeviceEvent event) override {
    TRY(process_.Check("host"));
    return EventOf(event).Done();
  }
  Status Synchronize(DeviceEvent event) override {
    TRY(process_.Check("host"));
    EventOf(event).Synchronize();
    return {};
  }
  Status SynchronizeAll() override {
    TRY(process_.Check("host"));
    AwaitStreams();
    return {};
  }

  Result<uint64_t> Elapsed(DeviceEvent begin, DeviceEvent end) override {
    TRY(process_.Check("host"));
    return EventOf(end).passed_ns() - EventOf(begin).passed_ns();
  }

  Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) override {
    return On(stream, [&](HostStream& on) {
      if (bytes > 0) on.Give([=] { std::memcpy(to, from, bytes); });
    });
  }
  Status ApplyDeferred(const DeferredOpsJob& job, DeviceStream stream) override {
    return On(stream, [&](HostStream& on) { on.Give([job] { ApplyDeferredOnHost(job); }); });
  }
  Status DecodeCrops(const decode::CropBatch& batch, DeviceStream stream) override {
    return On(stream, [&](HostStream& on) { on.Give([batch] { DecodeCropsOnHost(batch); }); });
  }
  Status Occupy(uint64_t nanoseconds, DeviceStream stream) override {
    return On(stream, [&](HostStream& on) {
      on.Give([=] { std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds)); });
    });
  }

 private:
  static HostEvent& EventOf(DeviceEvent event) { return *static_cast<HostEvent*>(event.handle); }

  // Leaks the stream in a forked child, where its thread does not exist and cannot be joined.
  static void Leave(std::shared_ptr<HostStream> stream) {
    new std::shared_ptr<HostStream>(std::move(stream));
  }

  template <typename Use>
  Status On(DeviceStream stream, const Use& use) {
    TRY(process_.Check("host"));
    // The stream is not the device's own: this device made it, or another device of its kind.
    if (reinterpret_cast<uintptr_t>(stream.handle) > 2) {
      use(*static_cast<HostStream*>(stream.handle));
      return {};
    }
    ASSIGN_OR_RETURN(std::shared_ptr<HostStream> own, Own());
    use(*own);
    return {};
  }

  Result<std::shared_ptr<HostStream>> Own() {
    std::lock_guard lock(mutex_);
    if (own_ == nullptr) {
      Result<std::shared_ptr<HostStream>> started = HostStream::Start(before_);
      if (!started) return started;
      own_ = *std::move(started);
    }
    return own_;
  }

  std::vector<std::shared_ptr<HostStream>> Streams() {
    std::vector<std::shared_ptr<HostStream>> all;
    std::lock_guard lock(mutex_);
    all.reserve(streams_.size() + 1);
    for (const auto& [handle, stream] : streams_) all.push_back(stream);
    if (own_ != nullptr) all.push_back(own_);
    return all;
  }

  void AwaitStreams() {
    HostEvent event;
    event.Record(Streams());
    event.Synchronize();
  }

  const OwnProcess process_;
  const BeforeWork before_;
  std::mutex mutex_;
  std::shared_ptr<HostStream> own_;
  std::unordered_map<void*, std::shared_ptr<HostStream>> streams_;
};

}  // namespace

std::shared_ptr<Device> MakeHostDevice(BeforeWork before) {
  return std::make_shared<HostDevice>(std::move(before));
}

}  // namespace stoker
