// TraceRecorder: keeps trace events in memory, for a trace file.
//
// Each thread writes to its own log: it takes no lock and makes no system call except malloc for
// every thousandth event. The memory is bounded. Events that do not fit are counted, and the time
// of the first one is kept: nothing is lost silently.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/time/trace_listener.h"

namespace stoker {

// The details of a task or an instant, besides its name.
struct TraceDetail {
  uint64_t source = 0;
  std::string source_name;
  uint64_t begin_ns = 0;  // of a task
  uint64_t end_ns = 0;
  std::string text;
  std::vector<TraceTask::Part> parts;
  std::vector<std::pair<const char*, std::variant<double, std::string>>> arguments;
};

struct TraceEvent {
  enum class Kind : uint8_t { kSpan, kBatchSpan, kCounter, kInstant, kTask };
  Kind kind = Kind::kSpan;
  const char* name = "";
  uint64_t begin_ns = 0;            // of a task: when it was reported
  std::atomic<uint64_t> end_ns{0};  // of a span; 0: not ended
  uint64_t epoch = 0;               // of a counter: its source's number
  uint64_t index = 0;               // of a counter: the bits of its value, a double
  std::unique_ptr<const TraceDetail> detail;
};

class TraceRecorder final : public TraceListener {
 public:
  // Uses at most about `memory` bytes, and at least 60 KB per thread.
  explicit TraceRecorder(uint64_t memory);
  ~TraceRecorder() override;

  int64_t Begin(const char* name) override;
  int64_t BeginBatch(const char* name, uint64_t epoch, uint64_t index) override;
  void End(int64_t span) override;
  void Counter(const TraceSource& source, const char* name, double value) override;
  void Instant(const TraceSource& source, const char* name, std::string_view text) override;
  void Task(const TraceSource& source, const TraceTask& task) override;

  // ---- Reading. Thread-safe, also while others write; events added meanwhile may be missing.

  struct Thread {
    uint64_t id = 0;                        // the kernel's thread id
    std::string name;                       // the name at its first event
    std::vector<const TraceEvent*> events;  // ordered by begin; valid as long as the recorder
  };
  std::vector<Thread> Threads() const;

  struct Dropped {
    uint64_t events = 0;
    uint64_t since_ns = 0;  // time of the first of them
  };
  Dropped dropped() const;

 private:
  struct Block;
  struct Log;

  Log* Mine();
  TraceEvent* Add(TraceEvent::Kind kind, const char* name, uint64_t epoch, uint64_t index,
                  std::unique_ptr<const TraceDetail> detail = nullptr);
  bool Reserve(size_t bytes);
  TraceEvent* Drop();

  static constexpr size_t kMaxThreads = 2048;

  const uint64_t memory_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> dropped_since_ns_{0};
  // Logs by thread: a hash table that only grows.
  std::unique_ptr<std::array<std::atomic<Log*>, kMaxThreads>> logs_;
};

}  // namespace stoker
