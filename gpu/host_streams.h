// Streams and events on the host: a stream is a thread that does what it is given, in order.
//
// They mean what CUDA's mean, so that what is built on a Device can be tested without a GPU.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/result.h"

namespace stoker {

// Called on a stream's thread before each piece of its work. For tests: it may sleep.
using BeforeWork = std::function<void()>;

// Any thread may call.
class HostStream {
 public:
  // Starts its thread. ResourceExhausted.
  static Result<std::shared_ptr<HostStream>> Start(BeforeWork before = {});
  ~HostStream();  // ends its work first

  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Never waits. `work` must not throw.
  void Give(std::function<void()> work);

 private:
  explicit HostStream(BeforeWork before);
  void Run();

  const BeforeWork before_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;
};

// Any thread may call. May be destroyed at any time: streams that wait for it keep what they need.
class HostEvent {
 public:
  // Done when all that the stream was given so far is. The last Record counts.
  void Record(HostStream& stream);
  // The same for all of these together.
  void Record(const std::vector<std::shared_ptr<HostStream>>& streams);
  // The stream goes on when the event, as last recorded, is done.
  void HoldBack(HostStream& stream) const;

  // An event that was never recorded is done.
  bool Done() const;
  void Synchronize() const;    // waits until it is done
  uint64_t passed_ns() const;  // when it was, by a clock that only differences of are told; 0: not

 private:
  class Point;  // that a stream will pass
  std::shared_ptr<Point> last() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_;
};

}  // namespace stoker
