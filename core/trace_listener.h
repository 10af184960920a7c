// TraceListener: one who is told what the threads do, and when.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

// What several of a kind are told apart by: a loader. Number 0: the Runtime itself.
struct TraceSource {
  uint64_t number = 0;
  std::string_view name;
};

// Something worth knowing about a task: a number, or a text where that is not empty.
struct TraceArgument {
  const char* name = "";
  double number = 0;
  std::string_view text = {};
};

// What several threads did together, told when it is over: a batch, from its first row to its
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
  std::span<const Part> parts = {};  // within it, one after the other
  std::span<const TraceArgument> arguments = {};
};

// Called on any thread, several at a time; waits for nothing. Names are literals: they live as long
// as the process.
class TraceListener {
 public:
  virtual ~TraceListener() = default;

  // A span of time on this thread begins. What it returns is given to End, on the same thread;
  // spans of a thread end in the reverse order.
  virtual int64_t Begin(const char* name) = 0;
  // One that is spent on a whole batch.
  virtual int64_t BeginBatch(const char* name, uint64_t /*epoch*/, uint64_t /*index*/) {
    return Begin(name);
  }
  virtual void End(int64_t span) = 0;

  // Has this value from now on.
  virtual void Counter(const TraceSource& /*source*/, const char* /*name*/, double /*value*/) {}
  // Happened now.
  virtual void Instant(const TraceSource& /*source*/, const char* /*name*/,
                       std::string_view /*text*/) {}
  virtual void Task(const TraceSource& /*source*/, const TraceTask& /*task*/) {}
};

}  // namespace stoker
