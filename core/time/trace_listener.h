// TraceListener: receives the events of the threads, with their times.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

// Distinguishes several loaders in one trace. Number 0 is the Runtime itself.
struct TraceSource {
  uint64_t number = 0;
  std::string_view name;
};

// A detail of a task: a number or, if it is not empty, a text.
struct TraceArgument {
  const char* name = "";
  double number = 0;
  std::string_view text = {};
};

// Work of several threads, reported when it is complete: a batch, from its first row to its
// delivery. Times are NowNanoseconds'; views are valid during the call.
struct TraceTask {
  struct Part {
    const char* name = "";
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  const char* name = "";
  uint64_t epoch = 0;
  uint64_t index = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  std::span<const Part> parts = {};  // parts of it, in sequence
  std::span<const TraceArgument> arguments = {};
};

// Called on any thread, several at a time; must not wait for another thread's work. Names are
// literals that live as long as the process.
class TraceListener {
 public:
  virtual ~TraceListener() = default;

  // A span on this thread begins. The result is passed to End, on the same thread; spans of a
  // thread end in reverse order.
  virtual int64_t Begin(const char* name) = 0;
  // A span that concerns one batch begins.
  virtual int64_t BeginBatch(const char* name, uint64_t /*epoch*/, uint64_t /*index*/) {
    return Begin(name);
  }
  virtual void End(int64_t span) = 0;

  // The counter changes to this value.
  virtual void Counter(const TraceSource& /*source*/, const char* /*name*/, double /*value*/) {}
  // An event at this moment.
  virtual void Instant(const TraceSource& /*source*/, const char* /*name*/,
                       std::string_view /*text*/) {}
  virtual void Task(const TraceSource& /*source*/, const TraceTask& /*task*/) {}
};

}  // namespace stoker
