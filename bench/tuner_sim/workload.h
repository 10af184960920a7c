// Workload: a simulated job: the cost of each sample for workers and storage, and the times at
// which the consumer asks. Everything is drawn beforehand, so that every way of running the job
// sees the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::tuner_sim {

// Durations are nanoseconds. Samples and batches are counted from 0, in order.
struct Workload {
  std::string name;
  uint32_t batch_size = 1;
  uint32_t batches = 0;
  int max_workers = 1;
  double slot_bytes = 0;    // a batch's memory
  double buffer_bytes = 0;  // an encoded sample's

  std::vector<float> work;  // by sample: time of a worker that has a core for itself
  double quantum_ns = 0;    // interval at which workers adapt to how fast others let them run
  double mix_ns = 0;        // time of one worker, after a batch's last row

  // Storage: `channels` serve one read each at a time, first come first served; then comes a delay
  // that is the same however many reads there are (a network). No channel: samples are in memory.
  int channels = 0;
  std::vector<float> service;  // by sample
  std::vector<float> delay;    // by sample; empty means none
  double thrash = 0;           // share by which a read takes longer for each read in the queue
                               // a channel
  double elevator = 0;         // share by which a read takes less time for each doubling of the
                               // reads in flight

  struct Stall {
    uint64_t sample = 0;  // storage stands still from the read of this sample on
    double duration = 0;
  };
  std::vector<Stall> stalls;  // by sample, ascending

  std::vector<double> gap;   // by batch: from receiving it to asking for the next
  std::vector<float> cores;  // by batch: cores that workers share; more busy workers are slower
  // The share of the cores that are whole; a worker on another's twin adds only `twin_gain` of a
  // core.
  double whole_cores = 1;  // share
  double twin_gain = 0.3;

  // Workers take the oldest row that was read; otherwise the lowest request, whose row may be
  // younger.
  bool oldest_first = true;

  uint64_t samples() const { return uint64_t{batch_size} * batches; }
  // Measurement begins at this batch; the batches before it are start-up.
  uint32_t converged_from() const { return batches / 5; }
};

// Returns the `index`-th workload of `seed`, which is the same on every machine with the same
// floating point.
//
// Where the load changes (the consumer's step, a disk, a neighbour) each phase has 1300 batches or
// more; with `short_phases`, 130. In phases that short, a loader that hoards 64 batches while there
// is time, because it knows what comes, gains more than 5 % on any that does not.
Workload MakeWorkload(uint64_t seed, uint32_t index, bool short_phases = false);

// Returns a job with steps of 5 ms, then of 50 ms, then of 5 ms, 1500 batches each; eight workers,
// of which the fast phases need five.
Workload MakeStepChange();

}  // namespace stoker::tuner_sim
