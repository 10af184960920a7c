// Gives access to stoker through a table of C functions that Python passes once; nothing here links
// to stoker.
//
// Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <absl/status/status.h>
#include <tensorflow/core/framework/cancellation.h>
#include <tensorflow/core/platform/errors.h>
#include <tensorflow/core/platform/mutex.h>
#include <tensorflow/core/profiler/lib/traceme.h>

#include "bindings/c/stoker_c.h"

namespace stoker_tf {

// The arguments of stoker_tf_bind, set once, before the first dataset.
struct Binding {
  std::atomic<const stoker_api*> api{nullptr};
  std::atomic<int (*)(void*)> interrupted{nullptr};
  std::atomic<void* (*)()> python_thread{
      nullptr};  // Python's state for the calling thread, or NULL
};

inline Binding& TheBinding() {
  static Binding binding;
  return binding;
}

// Precondition: a dataset has been opened, so the table is bound.
inline const stoker_api& Api() { return *TheBinding().api.load(std::memory_order_acquire); }

// Returns what stands next to a number of stoker's in a table.
template <typename To, size_t n>
To Find(const std::pair<int32_t, To> (&all)[n], int32_t from, To otherwise) {
  for (const auto& [number, to] : all) {
    if (number == from) return to;
  }
  return otherwise;
}

inline absl::StatusCode CodeOf(int32_t code) {
  using Code = absl::StatusCode;
  constexpr std::pair<int32_t, Code> kCodes[] = {
      {STOKER_INVALID_ARGUMENT, Code::kInvalidArgument},
      {STOKER_NOT_FOUND, Code::kNotFound},
      {STOKER_PERMISSION_DENIED, Code::kPermissionDenied},
      {STOKER_DATA_LOSS, Code::kDataLoss},
      {STOKER_RESOURCE_EXHAUSTED, Code::kResourceExhausted},
      {STOKER_FAILED_PRECONDITION, Code::kFailedPrecondition},
      {STOKER_UNIMPLEMENTED, Code::kUnimplemented},
      {STOKER_CANCELLED, Code::kCancelled},
      {STOKER_UNAVAILABLE, Code::kUnavailable}};
  return Find(kCodes, code, Code::kInternal);
}

// Takes ownership of the error; NULL is success.
inline absl::Status ToStatus(stoker_error* error) {
  if (error == nullptr) return absl::OkStatus();
  absl::Status status(CodeOf(Api().error_code(error)), Api().error_message(error));
  Api().error_free(error);
  return status;
}

// Shows spans of stoker's threads as rows of TensorFlow's profiler. Costs one load when it is not
// recording.
inline int64_t BeginSpan(const char* name) {
  return tensorflow::profiler::TraceMe::ActivityStart(name);
}
inline void EndSpan(int64_t span) { tensorflow::profiler::TraceMe::ActivityEnd(span); }

// Whether this thread has a Python thread state.
inline bool OnThreadOfPython() {
  auto* const state = TheBinding().python_thread.load(std::memory_order_acquire);
  return state != nullptr && state() != nullptr;
}

inline absl::Status CheckBound() {
  if (TheBinding().api.load(std::memory_order_acquire) != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "stoker is not loaded in this process: import stoker.tensorflow before the dataset is used, "
      "also in the dispatcher and the workers of tf.data service");
}

// Refuses to take an epoch from this counter while a restored state is in the middle of one,
// because the rest of that epoch would be skipped.
inline absl::Status CheckNothingRestored(const std::string& key) {
  if (Api().epoch_restored(key.c_str()) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "load_state_dict restored a batch in the middle of an epoch, where only an iteration over "
      "the loader itself continues. Save and restore iterators of as_tf_dataset() by "
      "tf.train.Checkpoint");
}

// The last batch that the op delivered on a thread, kept until the next request to an iterator.
// Python code in TensorFlow runs after delivery, and a signal handler may raise an exception in it:
// the batch then never reaches the program, which takes it back (stoker_tf_take_back).
class Delivered {
 public:
  explicit Delivered(std::function<void()> take_back) : take_back_(std::move(take_back)) {}

  // Called by the iterator's destructor.
  void Forget() {
    tensorflow::mutex_lock lock(mutex_);
    take_back_ = nullptr;
  }
  void TakeBack() {
    tensorflow::mutex_lock lock(mutex_);
    if (take_back_ != nullptr) take_back_();
  }

  static std::weak_ptr<Delivered>& Here() {
    thread_local std::weak_ptr<Delivered> here;
    return here;
  }

 private:
  tensorflow::mutex mutex_;
  std::function<void()> take_back_ TF_GUARDED_BY(mutex_);
};

// The loader that a dataset names by its key. If this process has it, it is kept from the start;
// otherwise it is opened by the first request for a batch, not by the graph: a process that only
// passes the graph on (such as a dispatcher of tf.data service) lists no folder. A loader that
// copies to a device has no spec, so it cannot be opened here. Thread-safe.
class Source {
 public:
  // `epochs`: the key of the epoch counter; usually the loader's own.
  Source(std::string key, std::string spec, std::string epochs)
      : key_(std::move(key)), spec_(std::move(spec)), epochs_(std::move(epochs)) {
    tensorflow::mutex_lock lock(mutex_);
    if (CheckBound().ok()) OpenLocked("").IgnoreError();  // only looks the key up
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() {
    if (dataset_ != nullptr) Api().dataset_free(dataset_);
  }

  const std::string& epochs() const { return epochs_; }

  // Valid as long as this object; NULL if it is not open.
  stoker_dataset* IfOpen() const {
    tensorflow::mutex_lock lock(mutex_);
    return dataset_;
  }

  // A failure is not remembered: the folder may exist the next time.
  absl::Status Open(stoker_dataset** dataset) {
    tensorflow::mutex_lock lock(mutex_);
    TF_RETURN_IF_ERROR(CheckBound());
    const absl::Status opened = OpenLocked(spec_.c_str());
    if (!opened.ok() && spec_.empty()) {
      return absl::FailedPreconditionError(
          "this process does not have the dataset's device loader: it was made in another process, "
          "or has gone. Make the dataset where it is used");
    }
    TF_RETURN_IF_ERROR(opened);
    *dataset = dataset_;
    return absl::OkStatus();
  }

 private:
  absl::Status OpenLocked(const char* spec) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (dataset_ != nullptr) return absl::OkStatus();
    TF_RETURN_IF_ERROR(ToStatus(Api().dataset_open(key_.c_str(), spec, &dataset_)));
    static const stoker_trace trace{sizeof(stoker_trace), &BeginSpan, &EndSpan};
    Api().dataset_set_trace(dataset_, &trace);
    return absl::OkStatus();
  }

  const std::string key_;
  const std::string spec_;
  const std::string epochs_;
  mutable tensorflow::mutex mutex_;
  stoker_dataset* dataset_ TF_GUARDED_BY(mutex_) = nullptr;
};

// Ends a wait in stoker when TensorFlow cancels the step or Python has a signal to handle. Lives on
// the stack of the waiting call.
class Wait {
 public:
  // `cancel`: cancels other waits, besides stoker's own; called on another thread, perhaps at once.
  Wait(tensorflow::CancellationManager* manager, std::function<void()> cancel)
      : manager_(manager), cancel_(std::move(cancel)) {
    if (manager_ == nullptr) return;
    token_ = manager_->get_cancellation_token();
    registered_ = manager_->RegisterCallback(token_, [this] {
      cancelled_ = true;
      cancel_();
    });
    if (!registered_) cancelled_ = true;
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() {
    if (registered_) manager_->DeregisterCallback(token_);
  }

  bool cancelled() const { return cancelled_; }
  const stoker_interrupt* interrupt() const { return &interrupt_; }

 private:
  static int IsInterrupted(void* self) {
    if (static_cast<Wait*>(self)->cancelled_) return 1;
    auto* const interrupted = TheBinding().interrupted.load(std::memory_order_acquire);
    return interrupted != nullptr && interrupted(nullptr) != 0;
  }

  tensorflow::CancellationManager* const manager_;
  const std::function<void()> cancel_;
  tensorflow::CancellationToken token_ = 0;
  bool registered_ = false;
  std::atomic<bool> cancelled_{false};
  const stoker_interrupt interrupt_{sizeof(stoker_interrupt), &Wait::IsInterrupted, this};
};

}  // namespace stoker_tf
