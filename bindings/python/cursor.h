// stoker._stoker.Cursor: one iteration, as threads and signal handlers of Python use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/python/iteration.h"
#include "engine/loader/shared_loader.h"

namespace pybind11 {
class tuple;
}

namespace stoker::python {

// Set by whoever closes what is iterated, on any thread.
using Closed = std::atomic<bool>;

// Where an iteration goes on; none while it has no epoch. Never waits: a signal handler may ask
// while the iteration waits for a batch. Outlives the iteration.
class Place {
 public:
  std::optional<std::pair<uint64_t, uint64_t>> Get() const;
  void Set(const std::optional<BatchName>& at);

 private:
  mutable std::mutex mutex_;
  std::optional<std::pair<uint64_t, uint64_t>> place_;
};

// Threads that share it take turns, and each batch goes to one of them. With the GIL held.
class CursorHandle {
 public:
  // `closed`: where it is set, Next is Cancelled, also one that waits now; null: never.
  CursorHandle(std::shared_ptr<SharedLoader> shared, std::unique_ptr<Iteration> iteration,
               std::shared_ptr<const Closed> closed = nullptr);
  ~CursorHandle();

  // A tuple of what the iteration makes of columns; none at the end.
  std::optional<pybind11::tuple> Next();
  void Seek(uint64_t epoch, uint64_t index);

  const std::shared_ptr<Place>& place() const { return place_; }
  const std::vector<uint64_t>& sample_ids() const { return sample_ids_; }

 private:
  using Taken = std::unique_ptr<Iteration::Taken>;

  bool closed() const { return closed_ != nullptr && *closed_; }
  Result<Taken> Take();

  // `use` has the iteration to itself. What it waits for may run signal handlers on this thread:
  // those can look at the place, and are refused here.
  template <typename Use>
  auto InTurn(const Use& use) -> decltype(use(Interrupt()));

  std::shared_ptr<SharedLoader> shared_;
  const std::shared_ptr<const Closed> closed_;
  std::timed_mutex turn_;
  std::atomic<std::thread::id> owner_;  // has the turn
  const std::shared_ptr<Place> place_ = std::make_shared<Place>();
  std::unique_ptr<Iteration> iteration_;
  std::vector<uint64_t> sample_ids_;  // of the last batch
};

}  // namespace stoker::python
