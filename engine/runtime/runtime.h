// Runtime: what all loaders of a process share. The byte budget, the workers, the reader threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/memory_budget.h"
#include "core/result.h"
#include "core/trace.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/read_service.h"
#include "engine/tuning/tuner.h"
#include "io/readers/reader.h"

namespace stoker {

class MemoryManager;

struct RuntimeOptions {
  // Decode workers, 1 to 1024. 0: at most the cores allotted, divided by LOCAL_WORLD_SIZE where
  // that is set; tuned: as many as keep up.
  int threads = 0;
  ReaderKind reader = ReaderKind::kAuto;
  int reader_threads = 1;  // each with a ring of its own
  // For each reader thread, 1 to 1024. 0: at most 64, tuned.
  uint32_t reads_in_flight = 0;
  // Working memory of all loaders together, in bytes. 0: a quarter of the memory available to this
  // process' cgroup, at most 4 GiB, divided by LOCAL_WORLD_SIZE where that is set.
  uint64_t memory_budget = 0;
  ExecutorKind executor = ExecutorKind::kTbb;  // kThreads where TBB cannot be had
  uint64_t shuffle_seed = 0;                   // of ExecutorKind::kShuffled
  ReadService::ReaderFactory make_reader{};    // for tests: used in place of `reader`
};

// Shared by its loaders, which keep it alive. Thread-safe.
//
// Belongs to the process that made it: after a fork the child gets FailedPrecondition from
// CheckProcess (and so from every loader), and destroying it there touches no thread. The child may
// make its own, which runs on plain threads (see TbbWorks).
class Runtime {
 public:
  // Has fewer workers where the system has no more threads; ResourceExhausted where it has none.
  static Result<std::shared_ptr<Runtime>> Create(const RuntimeOptions& options = {});

  // The one that loaders use when none is given: made with default options at the first call, kept
  // while any loader uses it. A forked child has one of its own.
  static Result<std::shared_ptr<Runtime>> Default();

  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Status CheckProcess() const;

  MemoryManager& memory();
  const MemoryBudget& budget();  // of it, the bytes in use
  Executor& executor();
  const std::string& executor_reason() const;  // why it is not as asked for; empty: it is
  ReadService& reads();
  const TunerSettings& fixed() const;  // workers and reads (of all reader threads), where given
  // Spans: "stoker.read", "stoker.decode" (what a worker does in one go, up to eight samples),
  // "stoker.mix", "stoker.wait".
  Trace& trace();
  const ReaderChoice& reader() const;     // which reader, and why
  const RuntimeOptions& options() const;  // defaults filled in

 private:
  struct State;
  explicit Runtime(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stoker
