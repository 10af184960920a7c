#include "engine/arrays/shared_work.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stoker {

std::optional<size_t> SharedWork::Next() {
  if (stop_.load(std::memory_order_relaxed)) return std::nullopt;
  const size_t image = next_.fetch_add(1, std::memory_order_relaxed);
  if (image >= images_) return std::nullopt;
  return image;
}

void SharedWork::Fail(size_t image, Error error) {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  if (error.wanted_bytes != 0) {
    postponed_.push_back(image);
  } else {
    FailFor(image, std::move(error));
  }
}

Status SharedWork::Run(Executor& executor, const Interrupt& interrupt) {
  bool interrupted = false;
  do {
    stop_ = false;
    tasks_ = std::min(images_, static_cast<size_t>(executor.concurrency()));
    for (size_t task = tasks_; task > 0; --task) executor.Submit({&RunTask, this, 0});
    interrupted = Wait(interrupt);
    if (!interrupted) RunPostponed();
  } while (!interrupted && !failed_ && next_ < images_);
  if (failed_) {
    if (error_.file.empty()) {
      error_.cause = "images[" + std::to_string(*failed_) + "]: " + error_.cause;
    }
    return std::move(error_);
  }
  if (interrupted) return Error{Code::kCancelled, "decoding was interrupted"};
  return {};
}

void SharedWork::FailFor(size_t image, Error error) {
  if (failed_ && *failed_ < image) return;
  failed_ = image;
  error_ = std::move(error);
}

void SharedWork::RunPostponed() {
  for (const size_t image : postponed_) {
    if (failed_ && *failed_ < image) continue;
    if (Status status = alone_(image); !status.ok()) FailFor(image, std::move(status).error());
  }
  postponed_.clear();
}

void SharedWork::RunTask(void* context, uint32_t /*argument*/, int /*worker*/) {
  auto& work = *static_cast<SharedWork*>(context);
  work.take_();
  const std::lock_guard lock(work.mutex_);  // until after the notification: `work` dies then
  --work.tasks_;
  work.ended_.notify_one();
}

// Returns whether it was interrupted.
bool SharedWork::Wait(const Interrupt& interrupt) {
  bool interrupted = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kInterruptInterval, [this] { return tasks_ == 0; })) {
    if (interrupted || !interrupt) continue;
    lock.unlock();
    interrupted = interrupt();
    lock.lock();
    if (interrupted) stop_ = true;
  }
  return interrupted;
}

}  // namespace stoker
