#include "engine/production/samples/worker_tasks.h"

#include <utility>

namespace stoker {

WorkerTasks::WorkerTasks(SamplesInFlight& samples, MemoryLease& memory, Executor& executor,
                         Turn turn, void* context)
    : samples_(samples),
      memory_(memory),
      executor_(executor),
      turn_(turn),
      context_(context),
      concurrency_(static_cast<uint32_t>(executor.concurrency())) {}

// The task is counted before the sample is ready, because another task's worker may take the
// sample, and once that task has ended only this count keeps the producer from being destroyed
// under this thread.
void WorkerTasks::Add(uint32_t sample) {
  WorkToken task = memory_.Begin();
  samples_.SetReady(sample);
  Send(std::move(task));
}

void WorkerTasks::Send(WorkToken task) {
  std::move(task).Release();
  executor_.Submit({&WorkerTasks::Run, this, 0});
}

// A surplus task, whose sample another worker has taken in addition to its own, enters and leaves,
// too, because tasks that were refused wait for the next one to leave.
void WorkerTasks::Run(void* tasks, uint32_t, int worker) {
  auto& self = *static_cast<WorkerTasks*>(tasks);
  const WorkToken task = self.memory_.Adopt();
  if (!self.concurrency_.Enter()) return;
  self.BeginTurn(worker);
  if (self.concurrency_.Leave()) self.Send(self.memory_.Begin());
}

void WorkerTasks::BeginTurn(int worker) {
  const std::optional<uint32_t> first = samples_.TakeReady();
  if (!first) return;  // the task is surplus
  samples_.SetState(*first, SamplesInFlight::State::kWorking);
  turn_(context_, *first, worker);
}

std::optional<uint32_t> WorkerTasks::TakeFurther() {
  const std::optional<uint32_t> taken = samples_.TakeFurther(concurrency_.limit());
  if (taken) samples_.SetState(*taken, SamplesInFlight::State::kWorking);
  return taken;
}

void WorkerTasks::SetLimit(uint32_t workers) {
  for (uint32_t sent = concurrency_.SetLimit(workers); sent > 0; --sent) Send(memory_.Begin());
}

}  // namespace stoker
