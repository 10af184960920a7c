#include "bindings/cli/bench/device_scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "core/result/try.h"

namespace stoker {

namespace {

// A few bytes, repeatedly: a device neither compresses nor caches the bytes it copies.
void FillWithRandom(std::span<uint8_t> bytes) {
  std::vector<uint64_t> words(8192);
  std::mt19937_64 random;
  std::generate(words.begin(), words.end(), random);
  const size_t most = words.size() * sizeof(words[0]);
  for (size_t at = 0; at < bytes.size(); at += most) {
    std::memcpy(&bytes[at], words.data(), std::min(most, bytes.size() - at));
  }
}

}  // namespace

DeviceScratch::~DeviceScratch() {
  for (void* memory : memory_) device_.Free(memory);
  if (begun_.handle != nullptr) device_.Destroy(begun_);
  if (done_.handle != nullptr) device_.Destroy(done_);
  if (stream_.handle != nullptr) device_.Destroy(stream_);
  if (pinned_) device_.Unpin(mapped_.data());
  if (allocated_ != nullptr) device_.FreePinned(allocated_);
}

Status DeviceScratch::Prepare() {
  ASSIGN_OR_RETURN(stream_, device_.MakeStream());
  ASSIGN_OR_RETURN(begun_, device_.MakeEvent(/*timed=*/true));
  ASSIGN_OR_RETURN(done_, device_.MakeEvent(/*timed=*/true));
  return {};
}

Status DeviceScratch::Synchronize() {
  TRY(device_.Record(done_, stream_));
  return device_.Synchronize(done_);
}

Result<void*> DeviceScratch::Allocate(size_t bytes) {
  Result<void*> memory = device_.Allocate(bytes);
  if (memory.ok()) memory_.push_back(*memory);
  return memory;
}

Result<void*> DeviceScratch::Host(size_t bytes, HostMemory memory) {
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

Result<void*> DeviceScratch::Upload(const void* from, size_t bytes) {
  ASSIGN_OR_RETURN(void* to, Allocate(bytes));
  TRY(device_.Copy(to, from, bytes, stream_));
  TRY(Synchronize());
  return to;
}

Result<WorkTimes> DeviceScratch::Time(const std::function<Status(DeviceStream)>& issue,
                                      int repeats) {
  std::vector<uint64_t> times;
  for (int i = 0; i <= repeats; ++i) {
    TRY(device_.Record(begun_, stream_));
    TRY(issue(stream_));
    TRY(Synchronize());
    ASSIGN_OR_RETURN(const uint64_t elapsed, device_.Elapsed(begun_, done_));
    if (i > 0) times.push_back(std::max<uint64_t>(elapsed, 1));
  }
  std::ranges::sort(times);
  return WorkTimes{.median_ns = times[times.size() / 2], .least_ns = times.front()};
}

}  // namespace stoker
