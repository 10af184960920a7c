// stoker._stoker.Iterator: one iteration, as threads and signal handlers of Python use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loader/iterator.h"
#include "engine/loader/loader.h"

namespace pybind11 {
class tuple;
}

namespace stoker::python {

// Set by whoever closes what is iterated, on any thread.
using Closed = std::atomic<bool>;

// What Python sees of a batch in the host's memory: NumPy arrays, or Tensors. Columns on a device
// are Tensors.
enum class As : uint8_t { kArrays, kTensors };

// Where an iteration goes on; none while it has no epoch. Never waits: a signal handler may ask
// while the iteration waits for a batch. Outlives the iteration.
class Position {
 public:
  std::optional<std::pair<uint64_t, uint64_t>> Get() const;
  void Set(const std::optional<BatchName>& at);

 private:
  mutable std::mutex mutex_;
  std::optional<std::pair<uint64_t, uint64_t>> position_;
};

// Threads that share it take turns, and each batch goes to one of them. With the GIL held.
class IteratorHandle {
 public:
  // Gives the first `columns` of each batch. `closed`: where it is set, Next is Cancelled, also one
  // that waits now; null: never.
  IteratorHandle(std::shared_ptr<Loader> loader, std::unique_ptr<Iterator> iterator, size_t columns,
                 As as, std::shared_ptr<const Closed> closed = nullptr);
  ~IteratorHandle();

  // A tuple of columns; none at the end. The batch is let go when Python lets go of all of them.
  std::optional<pybind11::tuple> Next();
  void Seek(uint64_t epoch, uint64_t index);

  const std::shared_ptr<Position>& position() const { return position_; }
  const std::vector<uint64_t>& sample_ids() const { return sample_ids_; }

 private:
  // One of the two, or none: the epoch has ended.
  struct Taken {
    Batch host;
    std::shared_ptr<const DeviceBatch> device;
  };

  bool closed() const { return closed_ != nullptr && *closed_; }
  Result<Taken> Take();
  Result<Taken> TakeNext(const Interrupt& interrupt);

  // `use` has the iteration to itself. What it waits for may run signal handlers on this thread:
  // those can look at the position, and are refused here.
  template <typename Use>
  auto InTurn(const Use& use) -> decltype(use(Interrupt()));

  std::shared_ptr<Loader> loader_;
  const size_t columns_;
  const As as_;
  const std::shared_ptr<const Closed> closed_;
  std::timed_mutex turn_;
  std::atomic<std::thread::id> owner_;  // has the turn
  const std::shared_ptr<Position> position_ = std::make_shared<Position>();
  std::unique_ptr<Iterator> iterator_;
  std::vector<uint64_t> sample_ids_;  // of the last batch
};

}  // namespace stoker::python
