// WorkerTasks: ready samples → turns of workers.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/memory/memory_manager.h"
#include "engine/production/samples/samples_in_flight.h"
#include "engine/runtime/concurrency_limit.h"
#include "engine/runtime/executor.h"

namespace stoker {

// Every ready sample has a task in the executor, unless the task was refused at the limit on
// workers; it is then submitted again when a worker leaves. Thread-safe and lock-free.
class WorkerTasks {
 public:
  // Decodes `first`, and others taken with TakeFurther. Called on a worker.
  using Turn = void (*)(void* context, uint32_t first, int worker);

  // Allows as many workers as the executor has. All references must outlive it; `context` must
  // outlive the work of `memory`.
  WorkerTasks(SamplesInFlight& samples, MemoryLease& memory, Executor& executor, Turn turn,
              void* context);

  // Hands a sample, whose bytes have arrived, to the workers.
  void Add(uint32_t sample);

  // Gives a worker a second sample to interleave with its own, if that leaves enough for the other
  // workers.
  std::optional<uint32_t> TakeFurther();

  // Sets how many workers may have a turn at a time.
  void SetLimit(uint32_t workers);

 private:
  void Send(WorkToken task);
  static void Run(void* tasks, uint32_t unused, int worker);
  void BeginTurn(int worker);

  SamplesInFlight& samples_;
  MemoryLease& memory_;
  Executor& executor_;
  const Turn turn_;
  void* const context_;
  ConcurrencyLimit concurrency_;
};

}  // namespace stoker
