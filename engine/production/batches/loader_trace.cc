#include "engine/production/batches/loader_trace.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/result/secrets.h"

namespace stoker {

LoaderTrace::LoaderTrace(Trace& trace, const SampleSource& source)
    : trace_(trace),
      source_(source),
      number_(trace.NewNumber()),
      name_(WithoutSecrets(source.Describe())) {}

void LoaderTrace::Batch(const BatchRecord& batch, const LastRow& last_row,
                        const TunerSettings& settings) const {
  if (!trace_.listening()) return;
  trace_.Counter(loader(), "depth", settings.depth);
  trace_.Counter(loader(), "workers", settings.workers);
  trace_.Counter(loader(), "reads", settings.reads);
  ReportBatch(batch, last_row);
}

void LoaderTrace::ReportBatch(const BatchRecord& batch, const LastRow& last_row) const {
  const SampleTimes& row = last_row.times;
  const uint64_t mapped_from = batch.complete_ns - std::min(batch.map_ns, batch.complete_ns);
  const uint64_t mixed_until = row.done_ns + batch.mix_ns;
  std::array<TraceTask::Part, 7> parts{{{"last row: to be read", batch.opened_ns, row.claimed_ns},
                                        {"last row: read", row.claimed_ns, row.read_ns},
                                        {"last row: waits for a worker", row.read_ns, row.begun_ns},
                                        {"last row: decode", row.begun_ns, row.done_ns},
                                        {"mix", row.done_ns, mixed_until},
                                        {"map", mapped_from, batch.complete_ns},
                                        {"ready", batch.complete_ns, batch.taken_ns}}};
  std::string file;
  if (batch.reads != 0) source_.PathOf(source_.RangeOf(last_row.sample).file, file);
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
  const double reads = std::max<uint32_t>(batch.reads, 1);
  const WaitCauses& waited = batch.waited;
  const std::array<TraceArgument, 15> arguments{{
      {"rows", static_cast<double>(batch.rows)},
      {"waited_ms", ms(batch.taken_ns - batch.asked_ns)},
      {"waited_storage_ms", ms(waited.storage_ns)},
      {"waited_decode_ms", ms(waited.decode_ns)},
      {"waited_map_ms", ms(waited.map_ns)},
      {"waited_copy_ms", ms(waited.copy_ns)},
      {"waited_other_ms", ms(waited.other_ns)},
      {"work_ms", ms(batch.work_ns)},
      {"map_ms", ms(batch.map_ns)},
      {"longest_sample_ms", ms(batch.longest_ns)},
      {"longest_read_ms", ms(batch.longest_read_ns)},
      {"mean_read_ms", ms(batch.read_ns) / reads},
      {"mean_reads_in_flight", static_cast<double>(batch.reads_in_flight) / reads},
      {"last_sample", static_cast<double>(last_row.sample)},
      {"last_file", 0, file},
  }};
  trace_.Task(loader(), {.name = "batch",
                         .epoch = batch.name.epoch,
                         .index = batch.name.index,
                         .begin_ns = batch.opened_ns,
                         .end_ns = batch.taken_ns,
                         .parts = parts,
                         .arguments = std::span(arguments).first(file.empty() ? 14 : 15)});
}

void LoaderTrace::Decision(const TunerDecision& decision) const {
  if (trace_.listening()) trace_.Instant(loader(), "stoker.tuner", TextOf(decision));
}

void LoaderTrace::Samples(uint32_t reading, uint32_t ready) const {
  if (!trace_.listening()) return;
  trace_.Counter(loader(), "reading", reading);
  trace_.Counter(loader(), "waiting for a worker", ready);
}

}  // namespace stoker
