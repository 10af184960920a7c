// What a loader tells those who listen to its Runtime's trace, beside its spans.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/trace.h"
#include "engine/loader/assembler.h"
#include "engine/loader/batch_record.h"
#include "engine/tuning/tuner.h"
#include "engine/tuning/tuner_decision.h"
#include "io/sources/source.h"

namespace stoker {

// Where nobody listens each call costs a load. Any thread.
class LoaderTrace {
 public:
  // Both outlive it.
  LoaderTrace(Trace& trace, const SampleSource& source);

  // "batch 0:17", from being opened to being taken, with the way of the row that came last.
  void Batch(const BatchRecord& batch, const LastRow& last_row,
             const TunerSettings& settings) const;
  void Decisions(std::span<const TunerDecision> decisions) const;
  // How many samples are being read, and are read and wait for a worker.
  void Samples(uint32_t reading, uint32_t ready) const;

 private:
  void TellBatch(const BatchRecord& batch, const LastRow& last_row) const;
  TraceSource loader() const { return {number_, name_}; }

  const Trace& trace_;
  const SampleSource& source_;
  const uint64_t number_;
  const std::string name_;
};

}  // namespace stoker
