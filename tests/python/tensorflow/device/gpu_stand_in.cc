// A device of TensorFlow's type GPU that needs none: TensorFlow's runtime places, copies and frees
// as on a GPU, while memory is the host's and streams are threads (gpu/backend/host_streams.h),
// each of which sleeps before each piece of its work. They are streams of stoker's device "host".
//
// TensorFlow calls it a pluggable device. It has one kernel, Invert of uint8, which returns before
// its work is done, as a GPU's kernels do. TensorFlow loads it with load_pluggable_device_library,
// before it looks for devices; STOKER_STAND_IN_GPUS says how many there are (2).
#include <tensorflow/c/experimental/stream_executor/stream_executor.h>
#include <tensorflow/c/kernels.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "gpu/backend/host_streams.h"

struct SP_Event_st {
  stoker::HostEvent event;
};
struct SP_Timer_st {};

namespace {

using stoker::HostStream;

constexpr size_t kAlignment = 256;

// Between nothing and 2 ms, in an order that differs from run to run.
void SleepAWhile() {
  static std::atomic<uint32_t> count{0};
  const uint32_t mixed = (count.fetch_add(1) * 2654435761U) >> 21U;
  std::this_thread::sleep_for(std::chrono::microseconds(mixed));
}

void* Allocate(uint64_t bytes) {
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

// TensorFlow's handle of a stream is stoker's.
HostStream& Of(SP_Stream stream) { return *reinterpret_cast<HostStream*>(stream); }

// The streams that TensorFlow has made and not destroyed.
class Streams {
 public:
  SP_Stream Keep(std::shared_ptr<HostStream> stream) {
    HostStream* const kept = stream.get();
    std::lock_guard lock(mutex_);
    streams_.emplace(kept, std::move(stream));
    return reinterpret_cast<SP_Stream>(kept);
  }
  void Drop(SP_Stream stream) {
    std::shared_ptr<HostStream> dropped;  // outside the lock: it finishes its work
    std::lock_guard lock(mutex_);
    const auto found = streams_.find(&Of(stream));
    dropped = std::move(found->second);
    streams_.erase(found);
  }
  static Streams& Get() {
    static auto* const streams = new Streams;
    return *streams;
  }

 private:
  std::mutex mutex_;
  std::map<HostStream*, std::shared_ptr<HostStream>> streams_;
};

// ---- memory ----

void MakeMemory(const SP_Device*, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = Allocate(size);
  memory->size = size;
}
void FreeMemory(const SP_Device*, SP_DeviceMemoryBase* memory) {
  std::free(memory->opaque);
  memory->opaque = nullptr;
}
void* MakeHostMemory(const SP_Device*, uint64_t size) { return Allocate(size); }
void FreeHostMemory(const SP_Device*, void* memory) { std::free(memory); }
TF_Bool AllocatorStats(const SP_Device*, SP_AllocatorStats*) { return 0; }
TF_Bool MemoryUsage(const SP_Device*, int64_t* free, int64_t* total) {
  *free = *total = int64_t{64} << 20;
  return 1;
}

// ---- streams and events ----

void MakeStream(const SP_Device*, SP_Stream* stream, TF_Status* status) {
  auto started = HostStream::Start(&SleepAWhile);
  if (!started.ok()) return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no thread for a stream");
  *stream = Streams::Get().Keep(*std::move(started));
}
void FreeStream(const SP_Device*, SP_Stream stream) { Streams::Get().Drop(stream); }
void StreamStatus(const SP_Device*, SP_Stream, TF_Status*) {}
void MakeDependency(const SP_Device*, SP_Stream dependent, SP_Stream other, TF_Status*) {
  stoker::HostEvent event;
  event.Record(Of(other));
  event.HoldBack(Of(dependent));
}
void MakeEvent(const SP_Device*, SP_Event* event, TF_Status*) { *event = new SP_Event_st; }
void FreeEvent(const SP_Device*, SP_Event event) { delete event; }
SE_EventStatus EventStatus(const SP_Device*, SP_Event event) {
  return event->event.Done() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
}
void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  event->event.Record(Of(stream));
}
void WaitForEvent(const SP_Device* const, SP_Stream stream, SP_Event event, TF_Status* const) {
  event->event.HoldBack(Of(stream));
}
void MakeTimer(const SP_Device*, SP_Timer* timer, TF_Status*) { *timer = new SP_Timer_st; }
void FreeTimer(const SP_Device*, SP_Timer timer) { delete timer; }
void UseTimer(const SP_Device*, SP_Stream, SP_Timer, TF_Status*) {}
uint64_t Nanoseconds(SP_Timer) { return 0; }
void AwaitEvent(const SP_Device*, SP_Event event, TF_Status*) { event->event.Synchronize(); }
void AwaitStream(const SP_Device*, SP_Stream stream, TF_Status*) {
  stoker::HostEvent event;
  event.Record(Of(stream));
  event.Synchronize();
}
void AwaitAll(const SP_Device*, TF_Status*) {}
TF_Bool CallHost(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn call, void* argument) {
  Of(stream).Give([=] {
    TF_Status* const status = TF_NewStatus();
    call(argument, status);
    TF_DeleteStatus(status);
  });
  return 1;
}

// ---- copies ----

void ToHost(const SP_Device*, SP_Stream stream, void* to, const SP_DeviceMemoryBase* from,
            uint64_t size, TF_Status*) {
  Of(stream).Give([=, source = from->opaque] { std::memcpy(to, source, size); });
}
void ToDevice(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, const void* from,
              uint64_t size, TF_Status*) {
  Of(stream).Give([=, target = to->opaque] { std::memcpy(target, from, size); });
}
void OnDevice(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to,
              const SP_DeviceMemoryBase* from, uint64_t size, TF_Status*) {
  Of(stream).Give(
      [target = to->opaque, source = from->opaque, size] { std::memcpy(target, source, size); });
}
void ToHostNow(const SP_Device*, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
               TF_Status*) {
  std::memcpy(to, from->opaque, size);
}
void ToDeviceNow(const SP_Device*, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                 TF_Status*) {
  std::memcpy(to->opaque, from, size);
}
void OnDeviceNow(const SP_Device*, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                 uint64_t size, TF_Status*) {
  std::memcpy(to->opaque, from->opaque, size);
}
void Fill(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, uint8_t value, uint64_t size,
          TF_Status*) {
  Of(stream).Give([target = to->opaque, value, size] { std::memset(target, value, size); });
}
void Clear(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* to, uint64_t size,
           TF_Status* status) {
  Fill(device, stream, to, 0, size, status);
}
void FillWords(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* to, uint32_t value,
               uint64_t size, TF_Status*) {
  Of(stream).Give([target = static_cast<uint32_t*>(to->opaque), value, size] {
    for (uint64_t i = 0; i < size / sizeof(value); ++i) target[i] = value;
  });
}

// ---- what TensorFlow asks of the library ----

void CountDevices(const SP_Platform*, int* count, TF_Status*) {
  const char* const wanted = std::getenv("STOKER_STAND_IN_GPUS");
  *count = wanted == nullptr ? 2 : std::atoi(wanted);
}
void MakeDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status*) {
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
}
void FreeDevice(const SP_Platform*, SP_Device*) {}
void MakeDeviceFunctions(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status*) {
  *params->device_fns = {.struct_size = SP_DEVICE_FNS_STRUCT_SIZE};
}
void FreeDeviceFunctions(const SP_Platform*, SP_DeviceFns*) {}
void MakeExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status*) {
  *params->stream_executor = {.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
                              .allocate = &MakeMemory,
                              .deallocate = &FreeMemory,
                              .host_memory_allocate = &MakeHostMemory,
                              .host_memory_deallocate = &FreeHostMemory,
                              .get_allocator_stats = &AllocatorStats,
                              .device_memory_usage = &MemoryUsage,
                              .create_stream = &MakeStream,
                              .destroy_stream = &FreeStream,
                              .create_stream_dependency = &MakeDependency,
                              .get_stream_status = &StreamStatus,
                              .create_event = &MakeEvent,
                              .destroy_event = &FreeEvent,
                              .get_event_status = &EventStatus,
                              .record_event = &RecordEvent,
                              .wait_for_event = &WaitForEvent,
                              .create_timer = &MakeTimer,
                              .destroy_timer = &FreeTimer,
                              .start_timer = &UseTimer,
                              .stop_timer = &UseTimer,
                              .memcpy_dtoh = &ToHost,
                              .memcpy_htod = &ToDevice,
                              .memcpy_dtod = &OnDevice,
                              .sync_memcpy_dtoh = &ToHostNow,
                              .sync_memcpy_htod = &ToDeviceNow,
                              .sync_memcpy_dtod = &OnDeviceNow,
                              .block_host_for_event = &AwaitEvent,
                              .block_host_until_done = &AwaitStream,
                              .synchronize_all_activity = &AwaitAll,
                              .mem_zero = &Clear,
                              .memset = &Fill,
                              .memset32 = &FillWords,
                              .host_callback = &CallHost};
}
void FreeExecutor(const SP_Platform*, SP_StreamExecutor*) {}
void MakeTimerFunctions(const SP_Platform*, SP_TimerFns* timer, TF_Status*) {
  *timer = {.struct_size = SP_TIMER_FNS_STRUCT_SIZE, .nanoseconds = &Nanoseconds};
}
void FreeTimerFunctions(const SP_Platform*, SP_TimerFns*) {}
void FreePlatform(SP_Platform*) {}
void FreePlatformFunctions(SP_PlatformFns*) {}

// ---- the kernel ----

// Runs on the device's stream after this returns, when TensorFlow may have dropped its input.
void ComputeInvert(void*, TF_OpKernelContext* context) {
  TF_Status* const status = TF_NewStatus();
  TF_Tensor* input = nullptr;
  TF_GetInput(context, 0, &input, status);
  const size_t bytes = TF_TensorByteSize(input);
  TF_Tensor* output = nullptr;
  {
    int64_t dims[8];
    const int rank = TF_NumDims(input);
    for (int d = 0; d < rank; ++d) dims[d] = TF_Dim(input, d);
    output = TF_AllocateOutput(context, 0, TF_UINT8, dims, rank, bytes, status);
  }
  const SP_Stream stream = TF_GetStream(context, status);
  if (TF_GetCode(status) == TF_OK) {
    Of(stream).Give([from = static_cast<const uint8_t*>(TF_TensorData(input)),
                     to = static_cast<uint8_t*>(TF_TensorData(output)), bytes] {
      for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<uint8_t>(~from[i]);
    });
  } else {
    TF_OpKernelContext_Failure(context, status);
  }
  TF_DeleteTensor(output);
  TF_DeleteTensor(input);
  TF_DeleteStatus(status);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(
    SE_PlatformRegistrationParams* params, TF_Status*) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "STOKER_STAND_IN";
  params->platform->type = "GPU";
  params->platform->use_bfc_allocator = 1;
  *params->platform_fns = {.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
                           .get_device_count = &CountDevices,
                           .create_device = &MakeDevice,
                           .destroy_device = &FreeDevice,
                           .create_device_fns = &MakeDeviceFunctions,
                           .destroy_device_fns = &FreeDeviceFunctions,
                           .create_stream_executor = &MakeExecutor,
                           .destroy_stream_executor = &FreeExecutor,
                           .create_timer_fns = &MakeTimerFunctions,
                           .destroy_timer_fns = &FreeTimerFunctions};
  params->destroy_platform = &FreePlatform;
  params->destroy_platform_fns = &FreePlatformFunctions;
}

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  TF_Status* const status = TF_NewStatus();
  TF_KernelBuilder* const invert =
      TF_NewKernelBuilder("Invert", "GPU", nullptr, &ComputeInvert, nullptr);
  TF_KernelBuilder_TypeConstraint(invert, "T", TF_UINT8, status);
  TF_RegisterKernelBuilder("StandInInvert", invert, status);
  TF_DeleteStatus(status);
}
