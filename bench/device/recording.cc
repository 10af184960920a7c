#include "bench/device/recording.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bindings/cli/bench/device_scratch.h"
#include "core/result/try.h"
#include "core/time/stage_times.h"

namespace stoker {

namespace {

constexpr size_t kCopyBytes = size_t{64} << 20;
constexpr uint64_t kBusyNs = 100'000'000;

CallTimes TimesOf(std::vector<uint64_t> ns) {
  if (ns.empty()) return {};
  std::ranges::sort(ns);
  constexpr double kMicro = 1e-3;
  return {.calls = static_cast<int>(ns.size()),
          .median_us = kMicro * static_cast<double>(ns[ns.size() / 2]),
          .most_us = kMicro * static_cast<double>(ns.back())};
}

template <typename Call>
Status AddTime(std::vector<uint64_t>& times, const Call& call) {
  const uint64_t begun = NowNanoseconds();
  TRY(call());
  times.push_back(NowNanoseconds() - begun);
  return {};
}

// Events of one device, destroyed with this.
class Events {
 public:
  explicit Events(Device& device) : device_(device) {}
  ~Events() {
    for (const DeviceEvent event : made_) device_.Destroy(event);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  Result<DeviceEvent> Make() {
    ASSIGN_OR_RETURN(made_.emplace_back(), device_.MakeEvent());
    return made_.back();
  }

 private:
  Device& device_;
  std::vector<DeviceEvent> made_;
};

// Keeps a device busy with a kernel and with copies, on a stream each.
class Load {
 public:
  explicit Load(Device& device) : device_(device), kernel_(device), copies_(device) {}

  Status Begin(Events& events) {
    TRY(kernel_.Prepare());
    TRY(copies_.Prepare());
    ASSIGN_OR_RETURN(void* const from, copies_.Host(kCopyBytes, HostMemory::kAllocated));
    ASSIGN_OR_RETURN(void* const to, copies_.Allocate(kCopyBytes));
    const auto copy = [&](DeviceStream stream) {
      return device_.Copy(to, from, kCopyBytes, stream);
    };
    ASSIGN_OR_RETURN(const WorkTimes alone, copies_.Time(copy, /*repeats=*/3));
    ASSIGN_OR_RETURN(kernel_ends_, events.Make());
    ASSIGN_OR_RETURN(copies_end_, events.Make());
    TRY(device_.Occupy(kBusyNs, kernel_.stream()));
    TRY(device_.Record(kernel_ends_, kernel_.stream()));
    for (uint64_t i = 0; i <= kBusyNs / alone.median_ns; ++i) TRY(copy(copies_.stream()));
    return device_.Record(copies_end_, copies_.stream());
  }

  // Whether both are still running.
  Result<bool> IsRunning() const {
    ASSIGN_OR_RETURN(const bool kernel, device_.IsDone(kernel_ends_));
    ASSIGN_OR_RETURN(const bool copies, device_.IsDone(copies_end_));
    return !kernel && !copies;
  }

  Status Await() const {
    TRY(device_.Synchronize(kernel_ends_));
    return device_.Synchronize(copies_end_);
  }

 private:
  Device& device_;
  DeviceScratch kernel_, copies_;
  DeviceEvent kernel_ends_, copies_end_;
};

}  // namespace

Result<RecordTimes> MeasureRecords(Device& device, bool busy, int calls) {
  DeviceScratch scratch(device);
  TRY(scratch.Prepare());
  Events events(device);
  ASSIGN_OR_RETURN(const DeviceEvent event, events.Make());
  Load load(device);
  std::vector<uint64_t> record, record_all;
  // The first calls are not counted.
  TRY(device.Record(event, scratch.stream()));
  TRY(device.RecordAll(event));
  if (busy) TRY(load.Begin(events));
  for (int i = 0; i < calls; ++i) {
    TRY(AddTime(record, [&] { return device.Record(event, scratch.stream()); }));
    TRY(AddTime(record_all, [&] { return device.RecordAll(event); }));
    if (!busy) continue;
    ASSIGN_OR_RETURN(const bool lasts, load.IsRunning());
    if (!lasts) break;
  }
  if (busy) TRY(load.Await());
  TRY(device.SynchronizeAll());
  return RecordTimes{TimesOf(std::move(record)), TimesOf(std::move(record_all))};
}

}  // namespace stoker
