#include "tests/testing/devices/fake_cuda/fake_state.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace stoker::testing {

namespace {

constexpr std::align_val_t kAlignment{256}, kPage{4096};

uintptr_t AddressOf(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// Returns the allocation whose range [data, data + bytes) contains the address, or the end.
template <typename Ranges>
auto Around(Ranges& ranges, const void* data) {
  auto after = ranges.upper_bound(AddressOf(data));
  return after == ranges.begin() ? ranges.end() : std::prev(after);
}

// The state of a thread on the installed machine.
struct OfThread {
  std::weak_ptr<FakeState> machine;
  std::vector<int> stack;
};

struct InstalledState {
  std::mutex mutex;
  std::shared_ptr<FakeState> state;
};

// CUDA's functions belong to the process, and so does the state that they use.
InstalledState& TheInstalled() {
  static InstalledState installed;
  return installed;
}

}  // namespace

std::shared_ptr<FakeState> FakeState::Installed() {
  InstalledState& installed = TheInstalled();
  std::lock_guard lock(installed.mutex);
  return installed.state;
}

void FakeState::Install(std::shared_ptr<FakeState> state) {
  InstalledState& installed = TheInstalled();
  std::lock_guard lock(installed.mutex);
  std::swap(installed.state, state);
}

FakeState::FakeState(const FakeMachine& machine)
    : machine_(machine), contexts_(machine.devices), lost_(machine.devices, cudaSuccess) {}

FakeState::~FakeState() {
  for (const auto& [address, allocation] : allocations_) {
    ::operator delete(reinterpret_cast<void*>(address), kAlignment);
  }
  for (const uintptr_t address : own_pinned_) {
    ::operator delete(reinterpret_cast<void*>(address), kPage);
  }
}

void FakeState::EndStreams() {
  std::vector<std::shared_ptr<Stream>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(ended_);
    for (auto& [handle, stream] : streams_) all.push_back(stream);
    for (auto& [device, stream] : own_streams_) all.push_back(stream);
    streams_.clear();
    own_streams_.clear();
  }
  // Streams may wait for each other: all continue until the last has ended.
  for (const std::shared_ptr<Stream>& stream : all) {
    HostEvent end;
    end.Record(*stream->thread);
    end.Synchronize();
  }
}

void FakeState::Inject(const FakeFault& fault) {
  std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

FakeState::Entered FakeState::Enter(const char* function) {
  std::lock_guard lock(mutex_);
  ++calls_[function];
  Entered entered;
  for (FakeFault& fault : faults_) {
    if (fault.call != function || --fault.nth != 0) continue;
    (fault.later ? entered.later : entered.now) = fault.error;
  }
  return entered;
}

cudaError_t FakeState::DriverError() const {
  if (!process_.here()) return cudaErrorInitializationError;
  if (machine_.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  return machine_.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t FakeState::Violate(std::string what) {
  std::lock_guard lock(mutex_);
  violations_.push_back(std::move(what));
  return cudaErrorInvalidValue;
}

void FakeState::MakeContext(int device) {
  std::lock_guard lock(mutex_);
  contexts_[device] = true;
}

std::vector<int>& FakeState::Stack() {
  thread_local OfThread mine;
  const std::shared_ptr<FakeState> installed = Installed();
  if (mine.machine.lock() != installed) mine = {.machine = installed, .stack = {}};
  return mine.stack;
}

int FakeState::Current() {
  std::vector<int>& stack = Stack();
  if (stack.empty()) {
    MakeContext(0);
    stack.push_back(0);
  }
  return stack.back();
}

cudaError_t FakeState::Lost(int device) const {
  std::lock_guard lock(mutex_);
  return lost_[device];
}

void FakeState::Lose(int device, cudaError_t error) {
  std::lock_guard lock(mutex_);
  if (lost_[device] == cudaSuccess) lost_[device] = error;
}

cudaError_t FakeState::Allocate(int device, size_t bytes, void** data) {
  std::lock_guard lock(mutex_);
  if (bytes > machine_.device_bytes - allocated_bytes_) return cudaErrorMemoryAllocation;
  *data = ::operator new(bytes, kAlignment);
  std::memset(*data, 0xA5, bytes);  // the earlier content must not be used
  allocations_[AddressOf(*data)] = {bytes, device};
  allocated_bytes_ += bytes;
  return cudaSuccess;
}

cudaError_t FakeState::Free(void* data) {
  int device = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = allocations_.find(AddressOf(data));
    if (found != allocations_.end()) device = found->second.device;
    if (found == allocations_.end()) {
      violations_.emplace_back("cudaFree of what was not allocated");
      return cudaErrorInvalidValue;
    }
  }
  AwaitStreams(device);
  std::lock_guard lock(mutex_);
  const auto found = allocations_.find(AddressOf(data));
  allocated_bytes_ -= found->second.bytes;
  allocations_.erase(found);
  ::operator delete(data, kAlignment);
  return cudaSuccess;
}

bool FakeState::IsDeviceMemory(int device, const void* data, size_t bytes) const {
  std::lock_guard lock(mutex_);
  const auto found = Around(allocations_, data);
  return found != allocations_.end() && (device < 0 || found->second.device == device) &&
         AddressOf(data) + bytes <= found->first + found->second.bytes;
}

cudaError_t FakeState::Pin(void* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0 || AddressOf(data) % 4096 != 0) {
    violations_.emplace_back("cudaHostRegister of what are not pages");
    return cudaErrorInvalidValue;
  }
  const auto before = Around(pinned_, data);
  const auto after = pinned_.upper_bound(AddressOf(data));
  const bool overlaps =
      (before != pinned_.end() && before->first + before->second > AddressOf(data)) ||
      (after != pinned_.end() && after->first < AddressOf(data) + bytes);
  if (overlaps) return cudaErrorHostMemoryAlreadyRegistered;
  pinned_[AddressOf(data)] = bytes;
  return cudaSuccess;
}

cudaError_t FakeState::Unpin(void* data) {
  std::lock_guard lock(mutex_);
  if (!own_pinned_.contains(AddressOf(data)) && pinned_.erase(AddressOf(data)) == 1)
    return cudaSuccess;
  violations_.emplace_back("cudaHostUnregister of what is not registered");
  return cudaErrorHostMemoryNotRegistered;
}

cudaError_t FakeState::AllocatePinned(size_t bytes, void** data) {
  std::lock_guard lock(mutex_);
  *data = ::operator new(bytes, kPage);
  pinned_[AddressOf(*data)] = bytes;
  own_pinned_.insert(AddressOf(*data));
  return cudaSuccess;
}

cudaError_t FakeState::FreePinned(void* data) {
  std::lock_guard lock(mutex_);
  if (own_pinned_.erase(AddressOf(data)) == 0) {
    violations_.emplace_back("cudaFreeHost of what cudaHostAlloc has not returned");
    return cudaErrorInvalidValue;
  }
  pinned_.erase(AddressOf(data));
  ::operator delete(data, kPage);
  return cudaSuccess;
}

bool FakeState::IsPinned(const void* data, size_t bytes) const {
  std::lock_guard lock(mutex_);
  const auto found = Around(pinned_, data);
  return found != pinned_.end() && AddressOf(data) + bytes <= found->first + found->second;
}

void* FakeState::NextHandle() { return reinterpret_cast<void*>((++handles_) << 8); }

cudaError_t FakeState::MakeStream(int device, unsigned flags, cudaStream_t* handle) {
  Result<std::shared_ptr<HostStream>> thread = HostStream::Start(machine_.before_work);
  if (!thread) return cudaErrorMemoryAllocation;
  std::lock_guard lock(mutex_);
  *handle = static_cast<cudaStream_t>(NextHandle());
  streams_[*handle] = std::make_shared<Stream>(Stream{
      .thread = *std::move(thread), .device = device, .blocking = flags == cudaStreamDefault});
  return cudaSuccess;
}

cudaError_t FakeState::DestroyStream(cudaStream_t handle) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle);
  if (found == streams_.end()) {
    violations_.emplace_back("cudaStreamDestroy of what is no stream");
    return cudaErrorInvalidResourceHandle;
  }
  ended_.push_back(std::move(found->second));
  streams_.erase(found);
  return cudaSuccess;
}

std::shared_ptr<FakeState::Stream> FakeState::FindStream(cudaStream_t handle, int device) {
  std::lock_guard lock(mutex_);
  if (AddressOf(handle) <= 2) {
    std::shared_ptr<Stream>& own = own_streams_[device];
    if (own == nullptr)
      own =
          std::make_shared<Stream>(Stream{.thread = HostStream::Start(machine_.before_work).value(),
                                          .device = device,
                                          .legacy = true});
    return own;
  }
  const auto found = streams_.find(handle);
  if (found != streams_.end()) return found->second;
  violations_.emplace_back("use of what is no stream");
  return nullptr;
}

void FakeState::BeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle);
  if (found == streams_.end() || found->second->capture) {
    violations_.emplace_back("a capture of what is no stream, or is being captured");
  } else {
    found->second->capture = {.thread = std::this_thread::get_id(), .mode = mode};
  }
}

bool FakeState::EndCapture(cudaStream_t handle) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(handle);
  if (found == streams_.end() || !found->second->capture) {
    violations_.emplace_back("the end of a capture that has not begun");
    return false;
  }
  const Capture ended = *std::exchange(found->second->capture, std::nullopt);
  if (ended.mode != cudaStreamCaptureModeRelaxed && ended.thread != std::this_thread::get_id()) {
    violations_.emplace_back("the end of a capture on another thread");
  }
  return ended.valid;
}

bool FakeState::Prohibits(cudaStreamCaptureMode mode) const {
  if (mode == cudaStreamCaptureModeRelaxed) return false;
  std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    const std::optional<Capture>& capture = entry.second->capture;
    if (!capture || capture->mode == cudaStreamCaptureModeRelaxed) return false;
    const bool own = capture->thread == std::this_thread::get_id();
    return own || (mode == cudaStreamCaptureModeGlobal && capture->mode == mode);
  });
}

bool FakeState::InvalidateCaptures(int device) {
  std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& [handle, stream] : streams_) {
    if (stream->device != device || !stream->capture) continue;
    stream->capture->valid = false;
    any = true;
  }
  return any;
}

bool FakeState::IsUnusable(const Stream& legacy) const {
  return legacy.legacy && std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
           const Stream& stream = *entry.second;
           return stream.device == legacy.device && stream.blocking && stream.capture;
         });
}

cudaError_t FakeState::CaptureStatus(const Stream& stream, cudaStreamCaptureStatus* status) const {
  std::lock_guard lock(mutex_);
  if (IsUnusable(stream)) return cudaErrorStreamCaptureImplicit;
  *status = cudaStreamCaptureStatusNone;
  if (stream.capture) {
    *status =
        stream.capture->valid ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
  }
  return cudaSuccess;
}

cudaError_t FakeState::GiveInCapture(Stream& stream) {
  std::lock_guard lock(mutex_);
  if (IsUnusable(stream)) {
    for (const auto& [handle, other] : streams_) {
      if (other->capture && other->blocking) other->capture->valid = false;
    }
    return cudaErrorStreamCaptureImplicit;
  }
  if (!stream.capture) return cudaSuccess;
  stream.capture->valid = false;
  return cudaErrorStreamCaptureIsolation;
}

cudaError_t FakeState::MakeEvent(int device, bool timed, cudaEvent_t* handle) {
  auto event = std::make_shared<Event>();
  event->device = device;
  event->timed = timed;
  std::lock_guard lock(mutex_);
  *handle = static_cast<cudaEvent_t>(NextHandle());
  events_[*handle] = std::move(event);
  return cudaSuccess;
}

cudaError_t FakeState::DestroyEvent(cudaEvent_t handle) {
  std::lock_guard lock(mutex_);
  if (events_.erase(handle) == 1) return cudaSuccess;
  violations_.emplace_back("cudaEventDestroy of what is no event");
  return cudaErrorInvalidResourceHandle;
}

std::shared_ptr<FakeState::Event> FakeState::FindEvent(cudaEvent_t handle) const {
  std::lock_guard lock(mutex_);
  const auto found = events_.find(handle);
  return found == events_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<HostStream>> FakeState::Threads(int device) const {
  std::vector<std::shared_ptr<HostStream>> threads;
  const auto add = [&](const std::shared_ptr<Stream>& stream) {
    if (stream->device == device) threads.push_back(stream->thread);
  };
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Stream>& stream : ended_) add(stream);
  for (const auto& [handle, stream] : streams_) add(stream);
  for (const auto& [own, stream] : own_streams_) add(stream);
  return threads;
}

void FakeState::AwaitStreams(int device) {
  HostEvent end;
  end.Record(Threads(device));
  end.Synchronize();
}

void FakeState::Give(Stream& stream, cudaError_t later, std::function<cudaError_t()> work) {
  stream.thread->Give([this, device = stream.device, later, work = std::move(work)] {
    if (Lost(device) != cudaSuccess) return;
    const cudaError_t error = later != cudaSuccess ? later : work();
    if (error != cudaSuccess) Lose(device, error);
  });
}

int FakeState::Calls(const std::string& function) const {
  std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<std::string> FakeState::Called() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> functions;
  for (const auto& [function, calls] : calls_) functions.push_back(function);
  return functions;
}

std::vector<bool> FakeState::Contexts() const {
  std::lock_guard lock(mutex_);
  return contexts_;
}

FakeHeld FakeState::Held() const {
  std::lock_guard lock(mutex_);
  return {static_cast<int>(allocations_.size()), static_cast<int>(pinned_.size()),
          static_cast<int>(streams_.size()), static_cast<int>(events_.size())};
}

std::vector<std::string> FakeState::Violations() const {
  std::lock_guard lock(mutex_);
  return violations_;
}

}  // namespace stoker::testing
