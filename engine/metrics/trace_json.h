// Writes a recorded trace as JSON in the Trace Event Format, which ui.perfetto.dev and
// chrome://tracing open: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// The process has one track of spans for each thread. Each loader appears as a process of its own
// with counters, decisions, and one track for each batch that was in production at a time.
#pragma once

#include <cstdint>
#include <cstdio>

#include "engine/metrics/trace_recorder.h"

namespace stoker {

struct TracePeriod {
  uint64_t begin_ns = 0;  // NowNanoseconds
  uint64_t end_ns = 0;
  uint64_t begin_unix_ns = 0;  // the same moment as begin_ns, since the Unix epoch
};

// Returns the number of events written. Spans that have not ended are cut at the end of the period
// and marked. The stream holds the error state of the writes.
uint64_t WriteTraceJson(const TraceRecorder& recorder, const TracePeriod& period,
                        std::FILE* stream);

}  // namespace stoker
