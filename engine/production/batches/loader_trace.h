// LoaderTrace: the batches and counters that a loader reports to its Runtime's trace, besides
// spans.
#pragma once

#include <cstdint>
#include <string>

#include "core/time/trace.h"
#include "engine/production/batches/assembler.h"
#include "engine/tuning/batch_record.h"
#include "engine/tuning/tuner.h"
#include "engine/tuning/tuner_decision.h"
#include "io/source/source.h"

namespace stoker {

// Without a listener each call costs one load. Thread-safe.
class LoaderTrace {
 public:
  // Both must outlive it.
  LoaderTrace(Trace& trace, const SampleSource& source);

  // Reports a task like "batch 0:17", from opening to Take, with the steps of its last row.
  void Batch(const BatchRecord& batch, const LastRow& last_row,
             const TunerSettings& settings) const;
  void Decision(const TunerDecision& decision) const;
  // Reports how many samples are being read, and how many wait for a worker.
  void Samples(uint32_t reading, uint32_t ready) const;

 private:
  void ReportBatch(const BatchRecord& batch, const LastRow& last_row) const;
  TraceSource loader() const { return {number_, name_}; }

  const Trace& trace_;
  const SampleSource& source_;
  const uint64_t number_;
  const std::string name_;
};

}  // namespace stoker
