// stoker._stoker.Iterator: one iteration, made safe for Python's threads and signal handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"

namespace pybind11 {
class tuple;
}

namespace stoker::python {

// Set to true, on any thread, when the iterated object is closed.
using Closed = std::atomic<bool>;

// Returns the objects (`of` of UserCall) whose calls a loader of these options makes.
std::vector<uintptr_t> CallsOf(const LoaderOptions& options);

// The form in which Python sees a batch: a tuple of columns, which are NumPy arrays or Tensors, or
// (kParts) a tuple with such a tuple of Tensors for each device. Columns on a device are always
// Tensors.
enum class As : uint8_t { kArrays, kTensors, kParts };

// The next batch of an iteration; none while it has no epoch. Never blocks: a signal handler may
// ask while the iteration waits for a batch. May outlive the iteration.
class Position {
 public:
  std::optional<BatchName> Get() const;
  void Set(const std::optional<BatchName>& at);

 private:
  mutable std::mutex mutex_;
  std::optional<BatchName> position_;
};

// Threads that share it are serialized, and each batch goes to one of them. With the GIL held.
class IteratorHandle {
 public:
  // Returns the first `columns` of each batch. `closed`: if set, Next returns Cancelled, also a
  // Next that is waiting; null: never.
  IteratorHandle(std::shared_ptr<Loader> loader, std::unique_ptr<Iterator> iterator, size_t columns,
                 As as, std::shared_ptr<const Closed> closed = nullptr);
  ~IteratorHandle();

  // Returns a batch; none at the end. A batch is released when Python has released all of its
  // columns; each device's part is released by itself. `ids`, `paths`: appends to the columns the
  // rows' sample ids, an array of int64, and a list of their files.
  std::optional<pybind11::tuple> Next(bool ids, bool paths);
  void Seek(BatchName batch);

  const std::shared_ptr<Position>& position() const { return position_; }
  const std::vector<uint64_t>& sample_ids() const { return sample_ids_; }

 private:
  // A batch on the host or on devices, or neither: the epoch has ended.
  struct Taken {
    Batch host;
    std::vector<std::shared_ptr<const DeviceBatch>> parts;
  };

  bool closed() const { return closed_ != nullptr && *closed_; }
  Result<Taken> Take();
  Result<Taken> TakeNext(const Interrupt& interrupt);
  // Returns the columns of the batch on the host or, if it is not null, of a part on a device.
  pybind11::tuple Columns(const Batch& host, const std::shared_ptr<const DeviceBatch>& part,
                          bool ids, bool paths) const;

  // Calls `use` with exclusive access to the iteration. While `use` waits it may run signal
  // handlers on this thread: they can read the position, but are refused here.
  template <typename Use>
  auto WithExclusiveUse(const Use& use) -> decltype(use(Interrupt()));

  std::shared_ptr<Loader> loader_;
  const size_t columns_;
  const As as_;
  const std::shared_ptr<const Closed> closed_;
  std::timed_mutex in_use_;
  std::atomic<std::thread::id> owner_;  // the thread inside WithExclusiveUse
  const std::shared_ptr<Position> position_ = std::make_shared<Position>();
  std::unique_ptr<Iterator> iterator_;
  std::vector<uint64_t> sample_ids_;  // of the last batch
};

}  // namespace stoker::python
