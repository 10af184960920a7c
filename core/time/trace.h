// Trace: passes spans of the threads' work on to listeners, such as profilers or a trace file.
// Without a listener a span costs one load.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "core/time/trace_listener.h"

namespace stoker {

// Thread-safe.
class Trace {
 public:
  // The limit on listeners; a removed listener counts until the spans that it saw begin have ended.
  static constexpr int kMax = 8;

  // Sets the listener of `owner`, replacing an earlier one; null removes it. The listeners of a
  // span are chosen at its beginning: a listener removed meanwhile is kept alive until the span has
  // ended; no call waits for that. Returns false, and changes nothing, if there are too many.
  bool Listen(const void* owner, std::shared_ptr<TraceListener> listener);
  std::shared_ptr<TraceListener> listener(const void* owner) const;  // null if there is none

  // Whether anyone listens, to skip preparing arguments.
  bool listening() const { return on_.load(std::memory_order_relaxed) != 0; }

  // These call the functions of the same names of all listeners.
  void Counter(const TraceSource& source, const char* name, double value) const;
  void Instant(const TraceSource& source, const char* name, std::string_view text) const;
  void Task(const TraceSource& source, const TraceTask& task) const;

  // A number that is unique in this trace, from 1 on.
  uint64_t NewNumber() { return numbers_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  friend class TraceSpan;

  // A listener, and the number of threads that are calling it.
  class Entry {
   public:
    bool Enter();  // false if the entry does not listen (any more)
    void Leave();
    bool free() const { return state_.load(std::memory_order_acquire) == 0; }
    void Open(std::shared_ptr<TraceListener> listener);  // precondition: free()
    void Close();
    const std::shared_ptr<TraceListener>& listener() const {
      return listener_;
    }  // only after Enter()

   private:
    void Empty();

    static constexpr uint64_t kListens = uint64_t{1} << 63;
    static constexpr uint64_t kInUse = uint64_t{1} << 62;
    std::atomic<uint64_t> state_{0};  // kListens, kInUse, and the number of calling threads
    std::shared_ptr<TraceListener> listener_;
  };

  template <typename Call>
  void Notify(const Call& call) const;

  std::atomic<uint32_t> on_{0};  // the entries that listen, by bit
  mutable std::array<Entry, kMax> entries_;
  std::array<const void*, kMax> owners_{};  // who registered each listener; under mutex_
  mutable std::mutex mutex_;
  std::atomic<uint64_t> numbers_{0};
};

// A span from construction to the end of the scope.
class TraceSpan {
 public:
  TraceSpan(const Trace& trace, const char* name) {
    if (const uint32_t on = trace.on_.load(std::memory_order_relaxed)) Begin(trace, on, name);
  }
  // A span that concerns one batch.
  TraceSpan(const Trace& trace, const char* name, uint64_t epoch, uint64_t index) {
    const uint32_t on = trace.on_.load(std::memory_order_relaxed);
    if (on != 0) Begin(trace, on, name, epoch, index);
  }
  ~TraceSpan() {
    if (listening_ != 0) End();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void Begin(const Trace& trace, uint32_t on, const char* name);
  void Begin(const Trace& trace, uint32_t on, const char* name, uint64_t epoch, uint64_t index);
  template <typename Call>
  void BeginWith(const Trace& trace, uint32_t on, const Call& call);
  void End();

  uint32_t listening_ = 0;                  // the entries that saw it begin, by bit
  const Trace* trace_;                      // when listening_
  std::array<int64_t, Trace::kMax> spans_;  // the listeners' own values
};

}  // namespace stoker
