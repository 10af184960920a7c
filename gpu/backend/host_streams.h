// Streams and events on the host: a stream is a thread that runs its work in order.
//
// They have CUDA's semantics, so that code over a Device can be tested without a GPU.
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

#include "core/result/result.h"

namespace stoker {

// Called on a stream's thread before each piece of its work. For tests: it may sleep.
using BeforeWork = std::function<void()>;

// Thread-safe.
class HostStream {
 public:
  // Starts its thread. ResourceExhausted.
  static Result<std::shared_ptr<HostStream>> Start(BeforeWork before = {});
  ~HostStream();  // finishes its work first

  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Never blocks. `work` must not throw.
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

// Thread-safe. May be destroyed at any time: streams that wait for the event keep its state.
class HostEvent {
 public:
  // The event is done when all work given to the stream so far is done. The last Record counts.
  void Record(HostStream& stream);
  // The event is done when the work of all these streams is done.
  void Record(const std::vector<std::shared_ptr<HostStream>>& streams);
  // The stream continues when the event, as last recorded, is done.
  void HoldBack(HostStream& stream) const;

  // An event that was never recorded is done.
  bool Done() const;
  void Synchronize() const;    // blocks until it is done
  uint64_t passed_ns() const;  // when it completed, on an arbitrary clock; 0 means not yet

 private:
  class Point;  // that a stream will reach
  std::shared_ptr<Point> last() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Point> last_;
};

}  // namespace stoker
