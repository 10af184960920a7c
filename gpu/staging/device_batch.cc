#include "gpu/staging/device_batch.h"

#include <algorithm>
#include <mutex>

#include "core/result/try.h"
#include "gpu/staging/device_ring.h"

namespace stoker {

namespace {

// CUDA's handle of "the calling thread's default stream": another thread cannot refer to it.
constexpr uintptr_t kPerThreadDefaultStream = 2;

Status CheckProcess(const DeviceRing& ring) {
  return ring.process().Check(ring.device()->name().ToString());
}

// Adds the stream to those that use the entry. Under the entry's mutex.
Status AddUse(RingEntry& entry, DeviceStream stream) {
  if (reinterpret_cast<uintptr_t>(stream.handle) == kPerThreadDefaultStream) entry.untracked = true;
  const auto end = entry.uses.begin() + static_cast<std::ptrdiff_t>(entry.used);
  const bool known = std::any_of(entry.uses.begin(), end,
                                 [&](const StreamUse& use) { return use.stream == stream; });
  if (known || entry.untracked) return {};
  if (entry.used == entry.uses.size()) {
    Result<DeviceEvent> event = entry.ring->device()->MakeEvent();
    if (!event.ok()) return event.error();
    entry.uses.push_back({{}, *event});
  }
  entry.uses[entry.used++].stream = stream;
  return {};
}

}  // namespace

std::span<const Column> DeviceBatch::columns() const { return entry_->columns; }
std::span<const uint64_t> DeviceBatch::sample_ids() const { return entry_->sample_ids; }
int64_t DeviceBatch::rows() const { return entry_->rows; }
BatchName DeviceBatch::name() const { return entry_->name; }
uint64_t DeviceBatch::issued_ns() const { return entry_->issued_ns; }
const std::shared_ptr<Device>& DeviceBatch::device() const { return entry_->ring->device(); }

Status DeviceBatch::WaitOn(DeviceStream stream) const {
  TRY(CheckProcess(*entry_->ring));
  {
    std::lock_guard lock(entry_->mutex);
    if (Status s = AddUse(*entry_, stream); !s.ok()) return s;
  }
  return device()->Wait(stream, entry_->arrived);
}

Status DeviceBatch::RecordStream(DeviceStream stream) const {
  TRY(CheckProcess(*entry_->ring));
  std::lock_guard lock(entry_->mutex);
  TRY(AddUse(*entry_, stream));
  entry_->named = true;
  return {};
}

void DeviceBatch::MarkUntracked() const {
  if (!entry_->ring->process().here()) return;
  std::lock_guard lock(entry_->mutex);
  entry_->unnamed = true;
}

Status DeviceBatch::GiveTo(std::optional<DeviceStream> stream) const {
  Status given = stream ? WaitOn(*stream) : Wait();
  MarkUntracked();
  return given;
}

Status DeviceBatch::Wait() const {
  TRY(CheckProcess(*entry_->ring));
  return device()->Synchronize(entry_->arrived);
}

}  // namespace stoker
