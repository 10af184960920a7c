// Trace: spans of time, told to a profiler that listens. Without one a span costs a load.
#pragma once

#include <atomic>
#include <cstdint>

namespace stoker {

// Functions of the listener, which live as long as the process. Called on any thread.
struct TraceListener {
  int64_t (*begin)(const char* name);
  void (*end)(int64_t span);  // what begin returned, on the same thread
  // In place of `begin` for what is done to a whole batch; null: `begin` is called.
  int64_t (*begin_batch)(const char* name, uint64_t epoch, uint64_t index) = nullptr;
};

class Trace {
 public:
  // From now on; null: nobody. Any thread.
  void Listen(const TraceListener* listener) {
    listener_.store(listener, std::memory_order_release);
  }
  const TraceListener* listener() const { return listener_.load(std::memory_order_acquire); }

 private:
  std::atomic<const TraceListener*> listener_{nullptr};
};

// From here to the end of the scope.
class TraceSpan {
 public:
  TraceSpan(const Trace& trace, const char* name)
      : listener_(trace.listener()), span_(listener_ != nullptr ? listener_->begin(name) : 0) {}
  // Of one batch.
  TraceSpan(const Trace& trace, const char* name, uint64_t epoch, uint64_t index)
      : listener_(trace.listener()), span_(Begin(name, epoch, index)) {}
  ~TraceSpan() {
    if (listener_ != nullptr) listener_->end(span_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  int64_t Begin(const char* name, uint64_t epoch, uint64_t index) const {
    if (listener_ == nullptr) return 0;
    if (listener_->begin_batch == nullptr) return listener_->begin(name);
    return listener_->begin_batch(name, epoch, index);
  }

  const TraceListener* listener_;
  int64_t span_;
};

}  // namespace stoker
