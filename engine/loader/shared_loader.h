// SharedLoader: one set of options, many iterations. What the Python package and plugins hold.
//
// Each iteration is a Cursor with an epoch of its own: the next that nobody has taken, unless one
// was named. The engines (Loaders) belong to the SharedLoader and not to the cursors: a cursor at
// the end of its epoch leaves its engine at the start of the next one, with the first batches in
// production already, and the next cursor finds it there. Cursors that run side by side have an
// engine each, and memory for each.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/epoch_counter.h"
#include "engine/loader/loader.h"

namespace stoker {

class Cursor;

// Any thread. Its cursors keep it alive.
class SharedLoader : public std::enable_shared_from_this<SharedLoader> {
 public:
  // As Loader::Open: checks every option and reserves the memory; reads and starts nothing.
  // `epochs`: a counter that outlives this object, or none.
  static Result<std::shared_ptr<SharedLoader>> Open(LoaderOptions options,
                                                    std::shared_ptr<EpochCounter> epochs = {});
  ~SharedLoader();

  EpochCounter& epochs() { return *epochs_; }

  // `epoch`: iterate this one; none: the next that nobody has taken, decided at the first Next.
  // `repeat`: expect that the same epoch is iterated again afterwards.
  std::unique_ptr<Cursor> Iterate(std::optional<uint64_t> epoch = {}, bool repeat = false);

  // One batch by its name, without a cursor. Consecutive calls, and the first of an epoch, are read
  // ahead of, across epochs, the way an operating system reads ahead in a file; a call elsewhere
  // makes that one batch only. Two sequences may take turns. Calls on several threads wait for each
  // other.
  Result<Batch> BatchAt(BatchName batch, const Interrupt& interrupt = {});

  // Said once, and only where lent_batches sets no limit: the caller holds more than the memory
  // budget.
  std::optional<std::string> TakeWarning();

  // Gives back the memory of engines that no cursor has, for one who takes the batches another way;
  // the next cursor opens one anew.
  void LetIdleGo();

  // Ends all iterations, also those that wait now: Cancelled, from here on.
  void Stop();

  LoaderStats Stats() const;  // of all engines together, past ones included
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint32_t last_rows() const { return last_rows_; }  // of the last batch of an epoch
  const std::vector<ColumnSpec>& columns() const { return columns_; }
  int depth() const { return depth_; }  // batches in production for one iteration
  const LoaderOptions& options() const { return options_; }

 private:
  friend class Cursor;

  struct Engine {
    std::unique_ptr<Loader> loader;
    Schedule schedule = Schedule::kEpochs;
  };

  // An engine on loan, which goes back by itself. The SharedLoader outlives it.
  class Lease {
   public:
    Lease() = default;
    Lease(SharedLoader* owner, Engine engine) : owner_(owner), engine_(std::move(engine)) {}
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    explicit operator bool() const { return engine_.loader != nullptr; }
    Loader& loader() const { return *engine_.loader; }
    Schedule schedule() const { return engine_.schedule; }
    Status Seek(BatchName batch, Schedule schedule) {
      engine_.schedule = schedule;
      return engine_.loader->Seek(batch.epoch, batch.index, schedule);
    }

   private:
    SharedLoader* owner_ = nullptr;
    Engine engine_;
  };

  SharedLoader(LoaderOptions options, std::shared_ptr<EpochCounter> epochs);

  // An engine that goes on at `batch`; for kAppended nothing is appended yet. `spare`: rather open
  // another than disturb an idle one, while there are fewer than kMostIdle.
  Result<Lease> Borrow(BatchName batch, Schedule schedule, bool spare = false);
  Result<Lease> FindEngine(BatchName batch, Schedule schedule, bool spare);
  void Return(Engine engine);
  Result<Engine> OpenEngine();
  std::optional<Engine> TakeIdle(BatchName batch, Schedule schedule, bool spare);
  bool IdleAt(BatchName batch) const;
  Result<Batch> MakeByName(BatchName batch, bool follows, const Interrupt& interrupt);
  void NoteLent();

  static constexpr size_t kMostIdle = 2;

  const LoaderOptions options_;
  const std::shared_ptr<EpochCounter> epochs_;
  uint64_t batches_per_epoch_ = 0;
  uint32_t last_rows_ = 0;
  int depth_ = 0;
  std::vector<ColumnSpec> columns_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable by_name_;
  bool serving_by_name_ = false;  // one BatchAt at a time
  std::vector<Engine> idle_;      // the one used last is last
  std::vector<Loader*> busy_;     // borrowed
  LoaderStats past_;              // of engines that are gone
  bool stopped_ = false;
  bool warned_ = false;
  std::optional<std::string> warning_;
};

}  // namespace stoker
