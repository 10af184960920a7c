#include "tests/testing/devices/hooked_device.h"

#include <utility>

#include "gpu/ops/deferred_ops_job.h"

namespace stoker::testing {

HookedDevice::HookedDevice(std::shared_ptr<Device> inner, Hook hook)
    : inner_(std::move(inner)), hook_(std::move(hook)) {}

Status HookedDevice::Before(DeviceCall call) {
  ++counts_[static_cast<size_t>(call)];
  return hook_ ? hook_(call) : Status();
}

std::vector<HookedDevice::Copied> HookedDevice::copies() const {
  const std::lock_guard lock(copies_mutex_);
  return copies_;
}

Status HookedDevice::Pin(void* data, size_t bytes) {
  if (Status s = Before(DeviceCall::kPin); !s.ok()) return s;
  return inner_->Pin(data, bytes);
}

Result<void*> HookedDevice::AllocatePinned(size_t bytes) {
  if (Status s = Before(DeviceCall::kPin); !s.ok()) return s.error();
  return inner_->AllocatePinned(bytes);
}

Result<void*> HookedDevice::Allocate(size_t bytes) {
  if (Status s = Before(DeviceCall::kAllocate); !s.ok()) return s.error();
  Result<void*> data = inner_->Allocate(bytes);
  if (data.ok()) ++alive_;
  return data;
}

void HookedDevice::Free(void* data) {
  if (data != nullptr) --alive_;
  inner_->Free(data);
}

Result<DeviceStream> HookedDevice::MakeStream(StreamPriority priority) {
  if (Status s = Before(DeviceCall::kMakeStream); !s.ok()) return s.error();
  Result<DeviceStream> stream = inner_->MakeStream(priority);
  if (stream.ok()) ++alive_;
  return stream;
}

void HookedDevice::Destroy(DeviceStream stream) {
  --alive_;
  inner_->Destroy(stream);
}

Result<DeviceEvent> HookedDevice::MakeEvent(bool timed) {
  if (Status s = Before(DeviceCall::kMakeEvent); !s.ok()) return s.error();
  Result<DeviceEvent> event = inner_->MakeEvent(timed);
  if (event.ok()) ++alive_;
  return event;
}

void HookedDevice::Destroy(DeviceEvent event) {
  --alive_;
  inner_->Destroy(event);
}

Status HookedDevice::Record(DeviceEvent event, DeviceStream stream) {
  if (Status s = Before(DeviceCall::kRecord); !s.ok()) return s;
  return inner_->Record(event, stream);
}

Status HookedDevice::RecordAll(DeviceEvent event) {
  if (Status s = Before(DeviceCall::kRecordAll); !s.ok()) return s;
  return inner_->RecordAll(event);
}

Status HookedDevice::Wait(DeviceStream stream, DeviceEvent event) {
  if (Status s = Before(DeviceCall::kWait); !s.ok()) return s;
  return inner_->Wait(stream, event);
}

Result<bool> HookedDevice::IsDone(DeviceEvent event) {
  if (Status s = Before(DeviceCall::kDone); !s.ok()) return s.error();
  return inner_->IsDone(event);
}

Status HookedDevice::Synchronize(DeviceEvent event) {
  if (Status s = Before(DeviceCall::kSynchronize); !s.ok()) return s;
  return inner_->Synchronize(event);
}

Status HookedDevice::SynchronizeAll() {
  if (Status s = Before(DeviceCall::kSynchronizeAll); !s.ok()) return s;
  return inner_->SynchronizeAll();
}

Result<uint64_t> HookedDevice::Elapsed(DeviceEvent begin, DeviceEvent end) {
  if (Status s = Before(DeviceCall::kElapsed); !s.ok()) return s.error();
  return inner_->Elapsed(begin, end);
}

Status HookedDevice::Copy(void* to, const void* from, size_t bytes, DeviceStream stream) {
  if (Status s = Before(DeviceCall::kCopy); !s.ok()) return s;
  {
    const std::lock_guard lock(copies_mutex_);
    copies_.push_back({to, from, bytes, stream});
  }
  return inner_->Copy(to, from, bytes, stream);
}

Status HookedDevice::ApplyDeferred(const DeferredOpsJob& job, DeviceStream stream) {
  if (Status s = Before(DeviceCall::kApplyDeferred); !s.ok()) return s;
  return inner_->ApplyDeferred(job, stream);
}

Status HookedDevice::DecodeCrops(const decode::CropBatch& batch, DeviceStream stream) {
  if (Status s = Before(DeviceCall::kDecodeCrops); !s.ok()) return s;
  return inner_->DecodeCrops(batch, stream);
}

Status HookedDevice::Occupy(uint64_t nanoseconds, DeviceStream stream) {
  if (Status s = Before(DeviceCall::kOccupy); !s.ok()) return s;
  return inner_->Occupy(nanoseconds, stream);
}

}  // namespace stoker::testing
