// SharedWork: the images of one call, which the workers of a Runtime take one after another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/runtime/executor.h"

namespace stoker {

// Lives until all its tasks have ended. Next and Fail are thread-safe.
class SharedWork {
 public:
  // `take`: called once on each worker; processes images until Next returns nullopt. `alone`:
  // processes one image, on the thread that calls Run, while no other is processed.
  SharedWork(size_t images, std::function<void()> take, std::function<Status(size_t)> alone)
      : images_(images), take_(std::move(take)), alone_(std::move(alone)) {}

  // Returns the next image; none when there are no more or one has failed.
  std::optional<size_t> Next();

  // Images are begun in order: all before a failed one are finished, too. One that found no room
  // next to the others is processed alone, after them.
  void Fail(size_t image, Error error);

  // Waits until all images are done. Returns the error of the first one that failed, as
  // "images[3]: …" if it names no file. Cancelled by `interrupt`, once the images in progress are
  // done.
  Status Run(Executor& executor, const Interrupt& interrupt);

 private:
  static void RunTask(void* context, uint32_t argument, int worker);
  void FailFor(size_t image, Error error);
  void RunPostponed();
  bool Wait(const Interrupt& interrupt);

  const size_t images_;
  const std::function<void()> take_;
  const std::function<Status(size_t)> alone_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable ended_;
  size_t tasks_ = 0;
  std::vector<size_t> postponed_;
  std::optional<size_t> failed_;
  Error error_;
};

}  // namespace stoker
