// stoker._stoker.Iterator: one iteration, made safe for Python's threads and signal handlers.
// stoker._stoker.Batches and LaterBatches, the bases of the iterators that programs see, are made
// of it.
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
class object;
class tuple;
}  // namespace pybind11

namespace stoker::python {

// Set to true, on any thread, when the iterated object is closed.
using Closed = std::atomic<bool>;

// Returns the program's objects (`of` of UserCall) that a loader with these options calls.
std::vector<uintptr_t> CallsOf(const LoaderOptions& options);

// (epoch, index, start)
pybind11::tuple TupleOf(const BatchName& batch);

// The form in which Python sees a batch: a tuple of columns, which are NumPy arrays or Tensors, or
// (kParts) a tuple with such a tuple of Tensors for each device. Columns on a device are always
// Tensors.
enum class As : uint8_t { kArrays, kTensors, kParts };

struct Form;  // how a batch is made for the program

// A batch is delivered when the program has it: signal handlers run before that, and if they or
// Form::convert raise, the next call of Next delivers the batch. Threads that share the iteration
// are serialized, and each batch goes to one of them. With the GIL held.
class IteratorHandle {
 public:
  // Returns the first `columns` of each batch. `counts`: the state of the loader is that of its
  // latest iteration that counts. `closed`: if set, Next returns Cancelled, also a Next that is
  // waiting; null means never.
  IteratorHandle(std::shared_ptr<Loader> loader, std::unique_ptr<Iterator> iterator, size_t columns,
                 As as, bool counts, std::shared_ptr<const Closed> closed = nullptr);
  ~IteratorHandle();

  // Returns a batch; throws StopIteration at the end. A batch is released when Python has released
  // all of its columns; each device's part is released by itself.
  pybind11::object Next(const Form& form);
  BatchName Begin();  // see Iterator::Begin
  void Seek(BatchName batch);

  const std::shared_ptr<Position>& position() const { return position_; }
  // The ids of the samples of the last batch that any thread was given.
  std::vector<uint64_t> sample_ids() const {
    const std::lock_guard lock(sample_ids_mutex_);
    return sample_ids_;
  }

 private:
  // A batch on the host or on devices, or neither: the epoch has ended.
  struct Fetched {
    Batch host;
    std::vector<std::shared_ptr<const DeviceBatch>> parts;

    bool end() const { return !host && parts.empty(); }
  };
  // Exclusive use of the iteration. While its owner waits it may run signal handlers on its thread:
  // they can read the position, but are refused here.
  class Turn;

  bool closed() const { return closed_ != nullptr && *closed_; }
  Interrupt OnSignalsOrClosed() const;
  Status Fetch();
  Status FetchNext();
  void Deliver();
  pybind11::object MakeObject(const Form& form) const;
  // Returns the columns of the batch on the host or, if it is not null, of a part on a device.
  pybind11::object MadeOf(const std::shared_ptr<const DeviceBatch>& part, const Form& form) const;

  std::shared_ptr<Loader> loader_;
  const size_t columns_;
  const As as_;
  const std::shared_ptr<const Closed> closed_;
  std::timed_mutex in_use_;
  std::atomic<std::thread::id> owner_;  // the thread that has its turn
  const std::shared_ptr<Position> position_ = std::make_shared<Position>();
  std::unique_ptr<Iterator> iterator_;
  std::optional<Fetched> fetched_;       // and not delivered
  mutable std::mutex sample_ids_mutex_;  // taken and released with the GIL held
  std::vector<uint64_t> sample_ids_;
};

}  // namespace stoker::python
