// Runtime: the resources that the loaders of a process share: memory budget, workers and reader
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/readers/reader_kind.h"

namespace stoker {

class Executor;
class MemoryBudget;
class MemoryManager;
class ReadService;
class SampleSource;
class Trace;
struct TunerSettings;

// The threads that decode: TBB's or plain threads.
enum class ExecutorKind { kTbb, kThreads };

struct RuntimeOptions {
  // Decode workers, 1 to 1024. 0: tuned, at most the allotted cores divided by LOCAL_WORLD_SIZE, if
  // that is set.
  int threads = 0;
  ReaderKind reader = ReaderKind::kAuto;
  int reader_threads = 1;  // each with its own ring
  // Per reader thread, 1 to 1024. 0: tuned, at most 64.
  uint32_t reads_in_flight = 0;
  // Working memory of all loaders together, in bytes. 0: a quarter of the memory available to the
  // process's cgroup, at most 4 GiB, divided by LOCAL_WORLD_SIZE if that is set.
  uint64_t memory_budget = 0;
  ExecutorKind executor = ExecutorKind::kTbb;  // falls back to kThreads if TBB cannot be used
  // Makes the executor instead of `executor`, for tests.
  std::function<Result<std::unique_ptr<Executor>>(int threads)> make_executor{};
  // The time limit of a read of a file, in seconds: a read that takes longer fails its sample with
  // Unavailable, which names the file. Needs io_uring: InvalidArgument where it is not used.
  // Remote objects have time limits of their own. 0 means no limit: a job then survives storage
  // that hangs for minutes.
  double read_timeout = 0;
  // In seconds. When a loader's consumer has waited this long for a batch, and nothing has moved
  // meanwhile, a line in the log says which work has not ended and names its files; so does
  // LoaderStats::stall. 0 means never.
  double stall_seconds = 30;
  // Receives the lines of the log, without a line break, on any thread. Null means standard error.
  std::function<void(const std::string& line)> log{};

  // Reads in flight over all reader threads.
  int all_reads() const { return static_cast<int>(reads_in_flight) * reader_threads; }
};

// Shared by its loaders, which keep it alive. Thread-safe.
//
// Belongs to the process that made it: after a fork, CheckProcess (and so every loader) returns
// FailedPrecondition in the child, and destroying the Runtime there touches no thread. The child
// may create its own, which runs on plain threads.
class Runtime {
 public:
  // Has fewer workers if the system has no more threads; ResourceExhausted if it has none.
  static Result<std::shared_ptr<Runtime>> Create(const RuntimeOptions& options = {});

  // The default Runtime, for loaders without their own: created with default options at the first
  // call and kept while a loader uses it. A forked child gets its own.
  static Result<std::shared_ptr<Runtime>> Default();

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Status CheckProcess() const;
  const RuntimeOptions& options() const;  // defaults filled in

  // ---- For the engine.

  void Log(const std::string& line) const;

  struct Parts;
  explicit Runtime(std::unique_ptr<Parts> parts);
  MemoryManager& memory();
  const MemoryBudget& budget();  // working memory: its limit, and the bytes in use
  Executor& executor();
  const std::string& executor_reason() const;  // why it differs from what was asked for; empty
                                               // means it does not
  ReadService& reads();
  // Returns the threads that call `source` or read its objects, shared by the loaders that hold
  // them; null if all its samples are in files or in memory. The source must outlive the threads.
  std::shared_ptr<ReadService> ReadsOf(const SampleSource& source);
  const TunerSettings& fixed() const;  // workers and reads (over all reader threads) that the user
                                       // gave
  // Spans: "stoker.read", "stoker.decode" (one task of a worker, several samples), "stoker.mix",
  // "stoker.pad" (a batch's images to its largest size), "stoker.wait".
  Trace& trace();
  const ReaderChoice& reader() const;  // which reader is used, and why

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker
