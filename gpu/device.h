// Device: what stoker asks of an accelerator, and nothing more: memory, streams, events, copies,
// one kernel. Streams and events mean what they mean in CUDA.
//
// Three devices: CUDA's (device_cuda.cc; device_without_cuda.cc takes its place in a build without
// CUDA), and the host as a device (device_host.cc), whose memory is ordinary memory and whose
// streams are threads: what is said here can be tested on it, without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "gpu/finish.h"

namespace stoker {

// Handles. A stream may be a consumer's own: a cudaStream_t, 1 (CUDA's legacy default stream) and 2
// (the thread's default stream) included.
struct DeviceStream {
  void* handle = nullptr;
  friend bool operator==(const DeviceStream&, const DeviceStream&) = default;
};
struct DeviceEvent {
  void* handle = nullptr;
};

struct DeviceName {
  enum class Kind : uint8_t { kHost, kCuda };
  Kind kind = Kind::kHost;
  int ordinal = 0;

  // "cuda:1"; "cuda" is "cuda:0"; "host". InvalidArgument else.
  static Result<DeviceName> Parse(std::string_view text);
  std::string ToString() const;
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

enum class StreamPriority : uint8_t { kNormal, kHigh };

// Any thread; the thread's current context, which belongs to the program, is left as it was, and no
// context is made on any other device. Errors: ResourceExhausted (no memory), Unavailable (anything
// else; the cause has the call and the driver's words). After an Unavailable of a copy, an event or
// a kernel the device is lost to this process, as CUDA has it.
//
// In a forked child everything is FailedPrecondition, and what gives back does nothing. The same
// once the driver is being unloaded, at the end of the process. Calls do not disturb a capture of
// other streams into a graph.
class Device {
 public:
  // For CUDA, the first touch of the driver: loads it and joins the device's primary context, the
  // one that frameworks use; loads the kernels. FailedPrecondition says what is missing: built
  // without CUDA, no driver (or one that is too old), no such device among those that
  // CUDA_VISIBLE_DEVICES leaves.
  static Result<std::shared_ptr<Device>> Open(DeviceName name);

  virtual ~Device() = default;

  virtual DeviceName name() const = 0;
  virtual int numa_node() const = 0;  // that it is attached to; -1: unknown

  // Host memory, for all devices of this kind.
  virtual Status Pin(void* data, size_t bytes) = 0;
  virtual void Unpin(void* data) = 0;

  virtual Result<void*> Allocate(size_t bytes) = 0;  // at least 256-byte aligned
  virtual void Free(void* data) = 0;                 // waits for what uses it

  // Streams do not wait for the legacy default stream. A destroyed one ends its work first; an
  // event that streams wait for may be destroyed.
  virtual Result<DeviceStream> MakeStream(StreamPriority priority = StreamPriority::kNormal) = 0;
  virtual void Destroy(DeviceStream stream) = 0;
  virtual Result<DeviceEvent> MakeEvent(bool timed = false) = 0;
  virtual void Destroy(DeviceEvent event) = 0;

  // The event is done when all work of the stream so far is. The last Record counts.
  virtual Status Record(DeviceEvent event, DeviceStream stream) = 0;
  // The event is done when all that anyone in this process has given to the device so far, on any
  // stream, is: for memory of which nobody knows who uses it. FailedPrecondition while a stream is
  // being captured into a graph, which CUDA's documentation says spoils the capture.
  virtual Status RecordAll(DeviceEvent event) = 0;
  // What the stream is given from now on begins when the event, as last recorded, is done. An event
  // that was never recorded is done. FailedPrecondition for a stream that is being captured.
  virtual Status Wait(DeviceStream stream, DeviceEvent event) = 0;
  // Never waits. An error that the work before it met comes back here, and from Synchronize.
  virtual Result<bool> Done(DeviceEvent event) = 0;
  virtual Status Synchronize(DeviceEvent event) = 0;  // sleeps until the event is done
  virtual Status SynchronizeAll() = 0;                // all streams, those of others too
  // Nanoseconds between two timed events that are done.
  virtual Result<uint64_t> Elapsed(DeviceEvent begin, DeviceEvent end) = 0;

  // Between the host and the device, either way, or on the device. Host memory is pinned; else the
  // call may wait until it has been read. Both stay valid until it is done.
  virtual Status Copy(void* to, const void* from, size_t bytes, DeviceStream stream) = 0;
  virtual Status Finish(const FinishJob& job, DeviceStream stream) = 0;
  // Keeps the stream busy for about so long, as a training step would; for measuring.
  virtual Status Occupy(uint64_t nanoseconds, DeviceStream stream) = 0;
};

// What `stoker doctor` says of CUDA. Looks without joining a context.
struct CudaReport {
  bool built = false;    // with CUDA
  int runtime = 0;       // version × 1000 + minor × 10 that it was built with; 0: none
  int least_driver = 0;  // CUDA version that the driver must have at least
  int driver = 0;        // that it has; 0: there is none
  std::string why_not;   // no device can be used; empty: one can
  struct Found {
    int ordinal = 0;
    std::string name;
    uint64_t memory_bytes = 0;
    int capability = 0;  // major × 10 + minor
    std::string bus;     // "0000:3b:00.0"
    // Of one direction, 0: unknown. At present, by the link's width and speed; an idle device may
    // have slowed it down from the best that it is able to.
    double link_gb_s = 0;
    double best_link_gb_s = 0;
    int numa_node = -1;  // that it is attached to; -1: unknown
  };
  std::vector<Found> devices;
};
CudaReport LookForCuda();

}  // namespace stoker
