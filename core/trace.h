// Trace: what the threads do and when, told to those who listen: profilers, a file. Where nobody
// does, a span costs a load.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/trace_listener.h"

namespace stoker {

// Any thread.
class Trace {
 public:
  // Listeners at a time; one that was taken off counts until the spans that it was told of are
  // over.
  static constexpr int kMost = 8;

  // From now on `listener` is told, in place of whom `who` named before; null: nobody. A span is
  // told to those who listen when it begins: one who is taken off meanwhile is kept until it has
  // ended, and nobody waits for that. False: there are too many, and nothing has changed.
  bool Listen(const void* who, std::shared_ptr<TraceListener> listener);
  std::shared_ptr<TraceListener> listener(const void* who) const;  // null: none

  // Whether it is worth preparing what is told below.
  bool listening() const { return on_.load(std::memory_order_relaxed) != 0; }

  // As TraceListener's, to all.
  void Counter(const TraceSource& source, const char* name, double value) const;
  void Instant(const TraceSource& source, const char* name, std::string_view text) const;
  void Task(const TraceSource& source, const TraceTask& task) const;

  // A number that nobody else of this trace has, from 1 on.
  uint64_t NewNumber() { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  friend class TraceSpan;

  // A listener, and how many threads are in it.
  class Place {
   public:
    bool Enter();  // false: it does not listen (any more)
    void Leave();
    bool free() const { return state_.load(std::memory_order_acquire) == 0; }
    void Open(std::shared_ptr<TraceListener> listener);  // precondition: free()
    void Close();
    const std::shared_ptr<TraceListener>& listener() const { return listener_; }  // when entered

   private:
    void Empty();

    static constexpr uint64_t kListens = uint64_t{1} << 63;
    static constexpr uint64_t kTaken = uint64_t{1} << 62;
    std::atomic<uint64_t> state_{0};  // kListens, kTaken, and threads inside
    std::shared_ptr<TraceListener> listener_;
  };

  template <typename Call>
  void Tell(const Call& call) const;

  std::atomic<uint32_t> on_{0};  // which places listen, by bit
  mutable std::array<Place, kMost> places_;
  std::array<const void*, kMost> who_{};  // of those that listen; under mutex_
  mutable std::mutex mutex_;
  std::atomic<uint64_t> numbers_{0};
};

// From here to the end of the scope.
class TraceSpan {
 public:
  TraceSpan(const Trace& trace, const char* name) {
    if (const uint32_t on = trace.on_.load(std::memory_order_relaxed)) Begin(trace, on, name);
  }
  // Of one batch.
  TraceSpan(const Trace& trace, const char* name, uint64_t epoch, uint64_t index) {
    const uint32_t on = trace.on_.load(std::memory_order_relaxed);
    if (on != 0) Begin(trace, on, name, epoch, index);
  }
  ~TraceSpan() {
    if (told_ != 0) End();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void Begin(const Trace& trace, uint32_t on, const char* name);
  void Begin(const Trace& trace, uint32_t on, const char* name, uint64_t epoch, uint64_t index);
  template <typename Call>
  void BeginWith(const Trace& trace, uint32_t on, const Call& call);
  void End();

  uint32_t told_ = 0;                        // which places, by bit
  const Trace* trace_;                       // when told_
  std::array<int64_t, Trace::kMost> spans_;  // of those
};

}  // namespace stoker
