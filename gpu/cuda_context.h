// A device's primary context: the one that CUDA's runtime uses, and so all frameworks.
#pragma once

#include <string>

#include "core/result.h"

namespace stoker {

// Any thread. Once joined, a context is kept until the process ends, as frameworks keep it: it
// could not be told who else still relies on it.
class CudaContext {
 public:
  // Makes the context, unless somebody in this process has. `ordinal`: below the count of devices.
  static Result<CudaContext> Join(int ordinal, const std::string& device);

  // Makes the context the calling thread's for as long as this lives; then the thread has again
  // what it had before. Neither cudaSetDevice nor what the runtime does on a thread that has no
  // context is as careful: both make a context on the device that was current, be it used or not.
  //
  // A capture of a CUDA graph elsewhere in the program is not disturbed meanwhile.
  class Current {
   public:
    explicit Current(const CudaContext& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    // Of `call`, where the context could not be made current; 0: it is.
    int error() const { return error_; }
    const char* call() const { return call_; }

   private:
    const CudaContext& context_;
    const char* call_ = "cuCtxPushCurrent";
    int error_ = 0;
    int capture_mode_ = 0;  // that the thread had
  };

  // Records a cudaEvent_t behind all that the context was given so far; a CUresult. Not where
  // cannot_record(): drivers before CUDA 12.5.
  int Record(void* event) const;
  bool cannot_record() const { return record_ == nullptr; }

 private:
  using Entry = void (*)();  // a function of the driver

  CudaContext() = default;

  void* context_ = nullptr;
  Entry push_ = nullptr;
  Entry pop_ = nullptr;
  Entry record_ = nullptr;
};

}  // namespace stoker
