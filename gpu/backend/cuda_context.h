// CudaContext: a device's primary context, which CUDA's runtime and so all frameworks use.
#pragma once

#include <string>

#include "core/result/result.h"

namespace stoker {

// Thread-safe. Once joined, a context is kept until the process ends, as frameworks do: other code
// may still rely on it.
class CudaContext {
 public:
  // Creates the context unless it exists in this process. `ordinal`: below the count of devices.
  static Result<CudaContext> Join(int ordinal, const std::string& device);

  // Makes the context current on the calling thread until destruction, which restores the previous
  // one. cudaSetDevice and the runtime on a thread without a context are less careful: both create
  // a context on the device that was current, used or not.
  //
  // Does not disturb a capture of a CUDA graph elsewhere in the program.
  class Current {
   public:
    explicit Current(const CudaContext& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    // Returns the error of `call` if the context could not be made current; otherwise 0.
    int error() const { return error_; }
    const char* call() const { return call_; }

   private:
    const CudaContext& context_;
    const char* call_ = "cuCtxPushCurrent";
    int error_ = 0;
    int capture_mode_ = 0;  // the thread's previous context
  };

  // Records a cudaEvent_t after all work that the context has been given so far; returns a
  // CUresult. Not with cannot_record(): drivers before CUDA 12.5.
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
