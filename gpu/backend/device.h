// Device: the operations of an accelerator that stoker needs: memory, streams, events, copies, one
// kernel. Streams and events have CUDA's semantics.
//
// There are two implementations: CUDA's (device_cuda.cc; device_without_cuda.cc replaces it in a
// build without CUDA), and the host as a device (device_host.cc), with ordinary memory and threads
// as streams, on which this contract can be tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct DeferredOpsJob;  // deferred_ops_job.h
namespace decode {
struct CropBatch;  // core/batch/device_crop.h
}

// Handles. A stream may be a consumer's own: a cudaStream_t, including 1 (CUDA's legacy default
// stream) and 2 (the thread's default stream).
struct DeviceStream {
  void* handle = nullptr;
  friend bool operator==(const DeviceStream&, const DeviceStream&) = default;
};
DeviceStream LegacyDefaultStream();  // CUDA's handle 1
struct DeviceEvent {
  void* handle = nullptr;
};

struct DeviceName {
  enum class Kind : uint8_t { kHost, kCuda };
  Kind kind = Kind::kHost;
  int ordinal = 0;

  // Parses "cuda:1", "cuda" (which is "cuda:0") or "host". Otherwise InvalidArgument.
  static Result<DeviceName> Parse(std::string_view text);
  std::string ToString() const;
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

enum class StreamPriority : uint8_t { kNormal, kHigh };

// Thread-safe; the thread's current context, which belongs to the program, is left unchanged, and
// no context is created on any other device. Errors: ResourceExhausted (no memory), Unavailable
// (anything else; the cause has the call and the driver's message). After an Unavailable of a copy,
// an event or a kernel the device is lost to this process, as in CUDA.
//
// In a forked child every call is FailedPrecondition, and functions that release do nothing; the
// same holds once the driver is being unloaded at the end of the process. Calls do not disturb a
// capture of other streams into a graph, on any thread, except RecordAll and SynchronizeAll.
class Device {
 public:
  // For CUDA this is the first use of the driver: loads it, joins the device's primary context,
  // which frameworks use, and loads the kernels. FailedPrecondition says what is missing: built
  // without CUDA, no driver (or one that is too old), no such device among those that
  // CUDA_VISIBLE_DEVICES allows.
  static Result<std::shared_ptr<Device>> Open(DeviceName name);

  virtual ~Device() = default;

  virtual DeviceName name() const = 0;
  virtual int numa_node() const = 0;  // of the device; -1 means unknown

  // Pins host memory for all devices of this kind.
  virtual Status Pin(void* data, size_t bytes) = 0;
  virtual void Unpin(void* data) = 0;
  // Allocates host memory, page-aligned, that is pinned for all devices of this kind.
  virtual Result<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* data) = 0;

  virtual Result<void*> Allocate(size_t bytes) = 0;  // at least 256-byte aligned
  virtual void Free(void* data) = 0;                 // waits until it is no longer used

  // Streams do not wait for the legacy default stream. A destroyed stream finishes its work first;
  // an event may be destroyed while streams wait for it.
  virtual Result<DeviceStream> MakeStream(StreamPriority priority = StreamPriority::kNormal) = 0;
  virtual void Destroy(DeviceStream stream) = 0;
  virtual Result<DeviceEvent> MakeEvent(bool timed = false) = 0;
  virtual void Destroy(DeviceEvent event) = 0;

  // The event is done when all work issued to the stream so far is done. The last Record counts.
  virtual Status Record(DeviceEvent event, DeviceStream stream) = 0;
  // The event is done when all work that the process has issued to the device so far, on any
  // stream, is done: for memory whose users are unknown. FailedPrecondition while any stream is
  // being captured into a graph, on any thread; CUDA then also invalidates that capture, so do not
  // call this while one may be on. CUDA reports captures only stream by stream: see IsCapturing.
  virtual Status RecordAll(DeviceEvent event) = 0;
  // Returns whether the stream is being captured; for the legacy default stream, whether any stream
  // is that is ordered with it. Disturbs no capture.
  virtual Result<bool> IsCapturing(DeviceStream stream) = 0;
  // Later work of the stream begins when the event, as last recorded, is done. An event that was
  // never recorded is done. FailedPrecondition for a stream that is being captured.
  virtual Status Wait(DeviceStream stream, DeviceEvent event) = 0;
  // Never blocks. Errors of the work before the event are returned here, and by Synchronize.
  virtual Result<bool> IsDone(DeviceEvent event) = 0;
  virtual Status Synchronize(DeviceEvent event) = 0;  // sleeps until the event is done
  // Waits for all streams, including those of others. Invalidates captures, as RecordAll does.
  virtual Status SynchronizeAll() = 0;
  // Nanoseconds between two timed events that are done.
  virtual Result<uint64_t> Elapsed(DeviceEvent begin, DeviceEvent end) = 0;

  // Copies between the host and the device, in either direction, or on the device. Host memory
  // should be pinned; otherwise the call may block until it has been read. Both stay valid until
  // the copy is done.
  virtual Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) = 0;
  virtual Status ApplyDeferred(const DeferredOpsJob& job, DeviceStream stream) = 0;
  // The batch's pointers are device pointers.
  virtual Status DecodeCrops(const decode::CropBatch& batch, DeviceStream stream) = 0;
  // Keeps the stream busy for about this long, as a training step would; for measuring.
  virtual Status Occupy(uint64_t nanoseconds, DeviceStream stream) = 0;
};

// The findings about CUDA for `stoker doctor`, without creating a context.
struct CudaReport {
  bool built = false;   // with CUDA
  int runtime = 0;      // version of the build × 1000 + minor × 10; 0 means none
  int min_driver = 0;   // lowest CUDA version that the driver must have
  int driver = 0;       // the driver's; 0 means there is none
  std::string why_not;  // why no device can be used; empty means one can
  struct DeviceInfo {
    int ordinal = 0;
    std::string name;
    uint64_t memory_bytes = 0;
    int capability = 0;  // major × 10 + minor
    std::string bus;     // "0000:3b:00.0"
    // In one direction; 0 means unknown. link_gb_s is the present rate, from the link's width and
    // speed; an idle device may have slowed its link down from the best rate.
    double link_gb_s = 0;
    double best_link_gb_s = 0;
    int numa_node = -1;  // of the device; -1 means unknown
  };
  std::vector<DeviceInfo> devices;
};
CudaReport LookForCuda();

}  // namespace stoker
