// Every counter and setting of LoaderStats: its names, unit, documentation, and how it adds up over
// the iterations of a loader. AddStats, Python's stats(), Prometheus' page, `stoker bench --json`
// and docs/counters.md read this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/metrics/stats.h"

namespace stoker {

enum class CounterUnit : uint8_t { kCount, kBytes, kNanoseconds, kShare, kText };

// How the values of two producers become one.
enum class CounterAdds : uint8_t {
  kSum,
  kLatest,        // the value of the producer that is added last
  kLatestStated,  // the same, of those whose text is not empty
  kComputed,      // follows from other counters
};

// The object of `stoker bench --json` that has the counter; Python also nests those of the cache.
enum class CounterPart : uint8_t { kNone, kDecoded, kCache, kSettings };

using NamedCounts = std::vector<std::pair<const char*, uint64_t*>>;

// The place of a value, or a value that is computed.
using CounterValue =
    std::variant<uint64_t*, int*, std::string*, std::vector<uint64_t>*, NamedCounts, CoreTime*,
                 double*, std::vector<TunerDecision>*, uint64_t, std::string>;

// A sample of a metric of Prometheus.
struct MetricSample {
  const char* metric = nullptr;  // a name in AllMetrics(), or null
  const char* label = nullptr;   // null if `loader` is the only one
  const char* value = nullptr;  // the label's value; null if its values are the names of the counts
  const char* by = nullptr;     // a second label, with the names of the counts
};

struct CounterRow {
  const char* name = "";  // Python's key, or empty
  const char* bench_name =
      nullptr;  // the key of `stoker bench --json` in `part`; null if it is `name`
  CounterValue (*in)(LoaderStats& stats) = nullptr;
  CounterUnit unit = CounterUnit::kCount;
  CounterAdds adds = CounterAdds::kSum;
  CounterPart part = CounterPart::kNone;
  bool of_device = false;  // only the stats() of a device loader has it
  MetricSample sample{};
  const char* doc = "";   // one sentence, without a full stop
  const char* more = "";  // further text for Python's docstring and the page
};

// In the order of Python's dictionary.
std::span<const CounterRow> AllCounters();

struct Metric {
  const char* name;            // without "stoker_"; a counter if it ends in "_total", else a gauge
  const char* help = nullptr;  // null: the doc of its only counter
};

// In the order of Prometheus' page.
std::span<const Metric> AllMetrics();

}  // namespace stoker
