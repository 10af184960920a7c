// MapThreads: the threads that call a MapFunction with the whole batches of one producer. They are
// not the workers, because a function may wait for an interpreter or for I/O.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "core/time/trace.h"
#include "engine/map/map_caller.h"
#include "engine/production/batches/assembler.h"

namespace stoker {

// Thread-safe, except that Start is called by one thread at a time.
class MapThreads {
 public:
  // A batch without missing rows.
  struct WholeBatch {
    RowClaim claim;
    SamplePath last_row;
    BatchCost cost;
    bool failed = false;  // a failed batch is not mapped, and keeps its place in the order
  };

  // A batch that was mapped goes to the assembler, with the function's error. All
  // references must outlive the object.
  MapThreads(const MapCaller& function, SlotPool& slots, const Trace& trace, Assembler& assembler);
  ~MapThreads();  // waits for the calls in progress

  // Starts the threads, once; fewer if the system has no more. ResourceExhausted if it has none.
  Status Start();

  // Accepts the batches of a new sequence, numbered from 0.
  void Open();
  // Drops the waiting batches, and those that arrive before the next Open.
  void Close();
  // Waits for the calls in progress, but no longer than `most`; returns false if some are left.
  // Precondition: Close.
  [[nodiscard]] bool Wait(std::chrono::milliseconds most);

  // Takes the batch over. Never blocks.
  void Give(WholeBatch batch);

  int calling() const;  // calls in progress
  // The number of calls that have ended, and their time.
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  uint64_t called_ns() const { return called_ns_.load(std::memory_order_relaxed); }

 private:
  void Run();
  std::optional<WholeBatch> Take();
  Status Call(WholeBatch& batch);

  const MapCaller& function_;
  SlotPool& slots_;
  const Trace& trace_;
  Assembler& assembler_;
  std::atomic<uint64_t> calls_{0}, called_ns_{0};
  mutable std::mutex mutex_;
  std::condition_variable given_, ended_;
  std::vector<WholeBatch> waiting_;  // this and the following: under mutex_
  uint64_t next_ = 0;                // batch to begin
  int calling_ = 0;
  bool open_ = false;
  bool ending_ = false;
  std::atomic<uint32_t> started_{0};  // threads
  std::vector<std::thread> threads_;
};

}  // namespace stoker
