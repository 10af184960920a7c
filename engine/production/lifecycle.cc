#include "engine/production/lifecycle.h"

#include <utility>

#include "core/result/try.h"

namespace stoker {

namespace {

Error WasStopped() { return {Code::kCancelled, "the loader was stopped"}; }

}  // namespace

Status Lifecycle::Start() {
  const std::lock_guard lock(mutex_);
  if (stopped()) return WasStopped();
  if (running_) return {};
  ending_ = false;
  Status begun = work_.begin();
  running_ = begun.ok();
  return begun;
}

Status Lifecycle::Restart(const std::function<void()>& set_up) {
  const std::lock_guard lock(mutex_);
  if (stopped()) return WasStopped();
  set_up();
  return {};
}

Status Lifecycle::Halt(const Interrupt& interrupt) {
  while (!TryHalt()) {
    if (!interrupt || !interrupt()) continue;
    return stopped() ? WasStopped() : Error{Code::kCancelled, "the wait was interrupted"};
  }
  return {};
}

bool Lifecycle::TryHalt() {
  std::unique_lock lock(mutex_);
  const auto is_free = [this] { return !halting_; };
  if (!halted_.wait_for(lock, kInterruptInterval, is_free)) return false;
  halting_ = true;
  lock.unlock();
  const bool halted = EndWork();
  lock.lock();
  halting_ = false;
  halted_.notify_one();
  return halted;
}

// Waiting samples are given up before the first wait: an interrupt may end any wait, and samples of
// other loaders would wait for them.
bool Lifecycle::EndWork() {
  ending_ = true;
  work_.give_up();
  if (running_ && !work_.no_more()) return false;
  running_ = false;
  return work_.complete();
}

void Lifecycle::Stop(const std::function<void()>& cancel) {
  const std::lock_guard lock(mutex_);
  cancel();  // first, so that samples that are given up do not fail a batch that is delivered
  stopped_ = true;
}

}  // namespace stoker
