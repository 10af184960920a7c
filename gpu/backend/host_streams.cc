#include "gpu/backend/host_streams.h"

#include <utility>

#include "core/result/try.h"
#include "core/system/start_thread.h"
#include "core/time/stage_times.h"

namespace stoker {

Result<std::shared_ptr<HostStream>> HostStream::Start(BeforeWork before) {
  std::shared_ptr<HostStream> stream(new HostStream(std::move(before)));
  ASSIGN_OR_RETURN(stream->thread_,
                   StartThread("a stream's thread", [s = stream.get()] { s->Run(); }));
  return stream;
}

HostStream::HostStream(BeforeWork before) : before_(std::move(before)) {}

HostStream::~HostStream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  given_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HostStream::Give(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  given_.notify_one();
}

void HostStream::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (before_) before_();
    work();
    work = nullptr;  // its captures are destroyed before the next begins, and outside the lock
    lock.lock();
  }
}

class HostEvent::Point {
 public:
  explicit Point(size_t streams) : missing_(streams) {}

  void Pass() {
    // Notified under the lock: the waiter may destroy the point as soon as it has been passed.
    std::lock_guard lock(mutex_);
    if (--missing_ > 0) return;
    passed_ns_ = NowNanoseconds();
    passing_.notify_all();
  }
  bool HasPassed() {
    std::lock_guard lock(mutex_);
    return missing_ == 0;
  }
  void Await() {
    std::unique_lock lock(mutex_);
    passing_.wait(lock, [this] { return missing_ == 0; });
  }
  uint64_t passed_ns() {
    std::lock_guard lock(mutex_);
    return passed_ns_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable passing_;
  size_t missing_;  // streams that have yet to reach it
  uint64_t passed_ns_ = 0;
};

std::shared_ptr<HostEvent::Point> HostEvent::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

void HostEvent::Record(HostStream& stream) {
  auto point = std::make_shared<Point>(1);
  // One lock covers both: if two threads record, the later point counts.
  std::lock_guard lock(mutex_);
  stream.Give([point] { point->Pass(); });
  last_ = std::move(point);
}

void HostEvent::Record(const std::vector<std::shared_ptr<HostStream>>& streams) {
  auto point = std::make_shared<Point>(streams.size());
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<HostStream>& stream : streams)
    stream->Give([point] { point->Pass(); });
  last_ = std::move(point);
}

void HostEvent::HoldBack(HostStream& stream) const {
  if (std::shared_ptr<Point> point = last()) stream.Give([point] { point->Await(); });
}

bool HostEvent::Done() const {
  const std::shared_ptr<Point> point = last();
  return point == nullptr || point->HasPassed();
}

void HostEvent::Synchronize() const {
  if (const std::shared_ptr<Point> point = last()) point->Await();
}

uint64_t HostEvent::passed_ns() const {
  const std::shared_ptr<Point> point = last();
  return point == nullptr ? 0 : point->passed_ns();
}

}  // namespace stoker
