// A recorded trace as JSON in the Trace Event Format, which ui.perfetto.dev and chrome://tracing
// open: docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// The process has a row for each thread, with its spans. Each loader is shown as a process of its
// own: counters, decisions, and rows of batches, one for each that was in production at a time.
#pragma once

#include <cstdint>
#include <cstdio>

#include "engine/watching/trace_recorder.h"

namespace stoker {

struct TracePeriod {
  uint64_t begin_ns = 0;  // NowNanoseconds
  uint64_t end_ns = 0;
  uint64_t begin_unix_ns = 0;  // the same moment as begin_ns, since 1970
};

// Events it wrote. Spans that have not ended are cut at the end, and say so. Whether all of it
// could be written the stream knows.
uint64_t WriteTraceJson(const TraceRecorder& recorder, const TracePeriod& period,
                        std::FILE* stream);

}  // namespace stoker
