#include "engine/metrics/counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stoker {
namespace {

// Marks the bytes of what a counter points to.
struct Marker {
  const LoaderStats& stats;
  std::vector<bool>& covered;

  void Mark(const void* at, size_t bytes) const {
    const size_t begin =
        static_cast<size_t>(static_cast<const char*>(at) - reinterpret_cast<const char*>(&stats));
    ASSERT_LE(begin + bytes, covered.size());
    for (size_t i = begin; i < begin + bytes; ++i) covered[i] = true;
  }
  template <typename Value>
  void operator()(Value* value) const {
    Mark(value, sizeof(Value));
  }
  void operator()(const NamedCounts& counts) const {
    for (const auto& [name, count] : counts) Mark(count, sizeof(*count));
  }
  void operator()(uint64_t) const {}
  void operator()(const std::string&) const {}
};

TEST(Counters, AreAllMembersOfLoaderStats) {
  LoaderStats stats;
  std::vector<bool> covered(sizeof(LoaderStats));
  const Marker marker{stats, covered};
  for (const CounterRow& row : AllCounters()) std::visit(marker, row.in(stats));
  // Facts about the loader and its options, which are not counters.
  marker(&stats.may_have_crop_index);
  marker(&stats.crops_at_random);
  marker(&stats.depth_given);
  marker(&stats.workers_given);
  marker(&stats.reads_given);
  marker(&stats.map);
  marker(&stats.map_threads);
  size_t gap = 0;
  for (size_t i = 0; i < covered.size(); ++i) {
    gap = covered[i] ? 0 : gap + 1;  // padding is shorter than 8 bytes
    ASSERT_LT(gap, 8u) << "the member at byte " << i - 7 << " has no row in counters.cc";
  }
}

TEST(Counters, HaveNamesOfTheirOwnAndADocumentation) {
  std::set<std::pair<CounterPart, std::string_view>> names;
  for (const CounterRow& row : AllCounters()) {
    const std::string_view name = row.name, doc = row.doc;
    const CounterPart part = row.part == CounterPart::kCache ? row.part : CounterPart::kNone;
    EXPECT_TRUE(name.empty() || names.emplace(part, name).second) << name;
    EXPECT_FALSE(doc.empty() || doc.ends_with('.')) << name << ": " << doc;
  }
}

TEST(Counters, OfMetricsAreOnThePageAndTheirDocIsTheHelpOfOne) {
  for (const CounterRow& row : AllCounters()) {
    if (row.sample.metric == nullptr) continue;
    const auto is_named = [&](const Metric& metric) {
      return std::string_view(metric.name) == row.sample.metric;
    };
    EXPECT_EQ(std::ranges::count_if(AllMetrics(), is_named), 1)
        << "lines of kMetrics (counters.cc) for " << row.sample.metric;
  }
  for (const Metric& metric : AllMetrics()) {
    const auto is_of = [&](const CounterRow& row) {
      return row.sample.metric != nullptr && std::string_view(metric.name) == row.sample.metric;
    };
    const auto counters = std::ranges::count_if(AllCounters(), is_of);
    EXPECT_TRUE(metric.help == nullptr ? counters == 1 : counters > 1)
        << metric.name << " has " << counters << " counters; several need a help text in kMetrics";
  }
}

}  // namespace
}  // namespace stoker
