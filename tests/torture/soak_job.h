// SoakJob: a job that is stopped and resumed, moved about and thrown away at random, while a model
// says what each of its batches must be.
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>

#include "core/batch/batch.h"
#include "core/numbers/random.h"
#include "engine/loader/loader.h"
#include "tests/testing/storage/fake_reader.h"
#include "tests/torture/soak_model.h"

namespace stoker::testing {

// Random numbers of one set of options.
class Draw {
 public:
  explicit Draw(DrawKey key) : random_(key, 0) {}
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  bool Chance(double p) { return random_.Uniform() < p; }
  template <typename Value>
  Value Of(std::initializer_list<Value> values) {
    return values.begin()[Below(values.size())];
  }

 private:
  RandomStream random_;
};

struct SoakTotals {
  uint64_t sets = 0, batches = 0, samples = 0, rows_decoded_again = 0;
  uint64_t failed = 0, substituted = 0, dropped = 0;
  uint64_t resumed = 0, restored = 0, sought = 0, interrupted = 0, by_name = 0, beside = 0,
           stopped = 0, refused = 0;

  SoakTotals& operator+=(const SoakTotals& other);
};

// The samples, and which of them are bad.
struct SoakStorage {
  std::shared_ptr<const SampleSource> source;
  std::shared_ptr<const FakeDisk> disk;
  Faults faults;
};

// Options that make the same batches whatever the Runtime and the depth are, but for their size and
// transforms.
void DrawOrder(Draw& draw, LoaderOptions& options);

// A caller gives hooks to act while a job runs. All may be null.
struct SoakHooks {
  std::function<void()> step;                // before each step, and on the thread that stops
  std::function<void(Result<Batch>&)> gets;  // with what came, before it is compared
  std::function<void(Batch)> discard;        // a batch that it needs no longer; null destroys it
};

class SoakJob {
 public:
  struct Options {
    LoaderOptions loader;                               // without a Runtime and a depth
    std::function<std::shared_ptr<Runtime>()> runtime;  // of each of its loaders
    uint64_t most_lives = 4, most_steps = 60;
    double seeks = 0.05;          // in this share of the steps
    bool may_be_refused = false;  // there may be no memory for one more loader, or too many
                                  // batches are lent
    SoakHooks hooks{};
  };

  // The references must outlive it.
  SoakJob(Options options, const SoakStorage& storage, Draw draw, SoakTotals& totals);

  // Returns "" or what was wrong.
  std::string Run();

 private:
  void Live();
  bool Open();
  void Step();
  BatchName AnyBatch();
  void Seek(BatchName to);
  void Restore();
  void Next(Iterator& iterator, BatchName& at);
  void Count(const ExpectedBatch& expected);
  void Check(Result<Batch> batch, BatchName name, const ExpectedBatch& expected);
  void ByName();
  void Beside();
  void Interrupted();
  void Stop();
  void CheckCounts();
  void Hold(size_t most);
  bool IsRefusal(const Result<Batch>& batch);
  void Wrong(BatchName name, const std::string& what);
  void Wrong(const std::string& what);

  Options options_;
  const SoakStorage& storage_;
  Draw draw_;
  SoakModel model_;
  SoakTotals& totals_;
  std::shared_ptr<Loader> loader_;
  std::unique_ptr<Iterator> iterator_;
  std::deque<Batch> held_;  // the newest first
  BatchName at_;            // the next batch
  BadCounts bad_;           // of the present loader's batches
  uint64_t passed_ = 0;     // and their number, without those that failed
  bool refused_ = false;    // the present loader gives no more batches
  std::string wrong_;
};

}  // namespace stoker::testing
