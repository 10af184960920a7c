// Simulates a loader's pipeline, sample by sample with its own rules, without a clock:
//
//  - a batch is opened when one is taken, up to `depth` open ones; rows are claimed in order;
//  - at most `reads` of them are being read, and reads + 3 × workers requests are in use in all; a
//    request is free again when its row is decoded;
// - workers take rows that have been read, lowest request first; batches are delivered in order.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/tuner_sim/workload.h"
#include "engine/tuning/batch_record.h"
#include "engine/tuning/tuner.h"

namespace stoker::tuner_sim {

// Chooses the settings while a simulation runs.
class Controller {
 public:
  virtual ~Controller() = default;
  virtual TunerSettings Start() = 0;
  virtual TunerSettings Observe(const BatchRecord& record) = 0;
};

class Fixed : public Controller {
 public:
  explicit Fixed(const TunerSettings& settings) : settings_(settings) {}
  TunerSettings Start() override { return settings_; }
  TunerSettings Observe(const BatchRecord&) override { return settings_; }

 private:
  TunerSettings settings_;
};

// The result of a run. Values cover the batches from converged_from() on, unless they say
// otherwise.
struct Outcome {
  double seconds = 0;
  double batches_per_second = 0;
  double waited = 0;  // share of the time
  double memory = 0;  // bytes, mean over time: depth × slot, plus read buffers in use × their size
  double depth = 0;   // means over time, as the next two
  double workers = 0;
  double reads = 0;
  uint32_t changes = 0;  // of settings
  double whole_run_seconds = 0;
};

// The record of each batch, for plots.
struct Trace {
  std::vector<BatchRecord> records;
  std::vector<TunerSettings> settings;  // after the batch
};

Outcome Simulate(const Workload& workload, Controller& controller, Trace* trace = nullptr);

}  // namespace stoker::tuner_sim
