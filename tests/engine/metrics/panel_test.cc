#include "engine/metrics/panel.h"

#include <gmock/gmock.h>

#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "engine/metrics/stats.h"

namespace stoker {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

LoaderStats Later() {
  LoaderStats stats;
  stats.samples = 6824;
  stats.batches = 100;
  stats.waited = {.storage_ns = 60'000'000, .decode_ns = 760'000'000, .other_ns = 3'000'000};
  stats.worker_busy_ns = {2'000'000'000, 1'000'000'000, 0};
  stats.wait_ns = 823'000'000;
  stats.consumer_ns = 1'177'000'000;
  stats.work_ns = 3'000'000'000;
  stats.threads = 3;
  stats.depth = 4;
  stats.workers = 3;
  stats.reads = 32;
  stats.memory_used = uint64_t{112} << 20;
  stats.memory_budget = uint64_t{964} << 20;
  return stats;
}

// Returns the numbers before each %.
std::vector<long> PercentsIn(const std::string& text) {
  std::vector<long> percents;
  const std::regex number("([0-9]+)%");
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    percents.push_back(std::stol((*at)[1]));
  }
  return percents;
}

TEST(Panel, ShowsRatesBetweenTwoSnapshots) {
  EXPECT_THAT(Panel({}, Later(), 2),
              StartsWith("3412 samples/s   waited 41%: decode 38%, storage 3%\n"
                         "depth 4   workers 3   reads 32   memory 112 of 964 MiB\n"
                         "busy 50% █▄·\n"));
  EXPECT_EQ(PanelLine({}, Later(), 2),
            "3412 samples/s, waited 41%: decode 38%, storage 3%, depth 4, workers 3, reads 32, "
            "memory 112 of 964 MiB, busy 50%");
}

TEST(Panel, EndsWithTheLastDecisionAndAdvice) {
  LoaderStats now = Later();
  now.decisions.push_back({.from = 4, .to = 7});
  now.decisions.push_back({.from = 7, .to = 9});
  EXPECT_THAT(Panel({}, now, 2), HasSubstr("\n" + TextOf(now.decisions[1]) + "\n"));
  EXPECT_THAT(Panel({}, now, 2), EndsWith("\n" + Advice(now) + "\n"));
  EXPECT_NE(Advice(now), "");
  EXPECT_THAT(PanelLine({}, now, 2), Not(HasSubstr("\n")));
}

TEST(Panel, ShowsDifferencesOnly) {
  LoaderStats now = Later();
  now.samples += 3;
  now.batches += 1;
  now.waited.copy_ns += 1'000'000'000;
  EXPECT_THAT(Panel(Later(), now, 2),
              StartsWith("1.5 samples/s   waited 50%: copy 50%\n"
                         "depth 4   workers 3   reads 32   memory 112 of 964 MiB\n"
                         "busy 0% ···\n"));
}

TEST(Panel, SaysWhenNothingHappened) {
  EXPECT_THAT(Panel(Later(), Later(), 2), HasSubstr("0 samples/s   no batch was taken\n"));
  LoaderStats now = Later();
  ++now.batches;
  EXPECT_THAT(Panel(Later(), now, 2), HasSubstr("waited 0%\n"));
}

TEST(Panel, OmitsAbsentFigures) {
  LoaderStats now = Later();
  now.reads = 0;
  now.worker_busy_ns.clear();
  EXPECT_THAT(Panel({}, now, 2), Not(HasSubstr("reads")));
  EXPECT_THAT(Panel({}, now, 2), Not(HasSubstr("busy")));
}

TEST(Panel, NeverExceeds100Percent) {
  LoaderStats before = Later(), now = Later();
  ++now.batches;
  now.waited.decode_ns += 9'000'000'000;          // began before, or by several consumers
  now.worker_busy_ns = {9'000'000'000, 0, 0, 5};  // fewer, and one more
  EXPECT_THAT(Panel(before, now, 2), HasSubstr("waited 100%: decode 100%"));
  EXPECT_THAT(Panel(before, now, 2), HasSubstr("busy 25% █···\n"));
  EXPECT_THAT(Panel(before, now, 0), HasSubstr("samples/s"));
}

TEST(Panel, CausesAddUpToTheWhole) {
  const auto waited = [](uint64_t storage, uint64_t decode, uint64_t copy, uint64_t other) {
    LoaderStats now = Later();
    ++now.batches;
    now.waited.storage_ns += storage * 1'000'000;
    now.waited.decode_ns += decode * 1'000'000;
    now.waited.copy_ns += copy * 1'000'000;
    now.waited.other_ns += other * 1'000'000;
    const std::string text = Panel(Later(), now, 1);
    return text.substr(0, text.find('\n'));
  };
  // The sum is more than the time, because the waits began before the period.
  EXPECT_THAT(waited(1500, 500, 0, 0), HasSubstr("waited 100%: storage 75%, decode 25%"));
  EXPECT_THAT(waited(900, 800, 0, 700), HasSubstr("waited 100%: "));
  // Each rounded by itself, these would be 34 + 34 of 67, and 34 times 3 of 101.
  EXPECT_THAT(waited(335, 335, 0, 0), HasSubstr("waited 67%: storage 34%, decode 33%"));
  EXPECT_THAT(waited(335, 335, 335, 0),
              HasSubstr("waited 100%: decode 34%, storage 33%, copy 33%"));
  EXPECT_THAT(waited(0, 0, 0, 0), HasSubstr("waited 0%"));
  for (uint64_t storage = 0; storage < 1500; storage += 37) {
    for (uint64_t decode = 0; decode < 1500; decode += 41) {
      const std::string text = waited(storage, decode, 55, 5);
      const std::vector<long> percents = PercentsIn(text);
      ASSERT_FALSE(percents.empty());
      EXPECT_EQ(std::accumulate(percents.begin() + 1, percents.end(), 0L), percents[0]) << text;
      EXPECT_LE(percents[0], 100);
    }
  }
}

TEST(RecentStats, AveragesOverSeconds) {
  constexpr uint64_t kSecond = 1'000'000'000;
  RecentStats recent;
  EXPECT_EQ(recent.panel(), "");
  const auto look = [&](double seconds, uint64_t samples) {
    LoaderStats stats;
    stats.samples = samples;
    stats.batches = samples;
    recent.Add(stats, static_cast<uint64_t>(seconds * kSecond));
  };
  look(10, 0);
  EXPECT_EQ(recent.line(), "");
  look(10.5, 100);
  EXPECT_THAT(recent.line(), HasSubstr("200 samples/s"));
  look(11, 100);
  look(12, 600);
  EXPECT_THAT(recent.panel(), HasSubstr("300 samples/s"));
  look(12.5, 600);  // that of 10 has gone
  EXPECT_THAT(recent.panel(), HasSubstr("250 samples/s"));
  look(100, 600 + 8750);  // after a pause: since the last look before it
  EXPECT_THAT(recent.panel(), HasSubstr("100 samples/s"));
}

}  // namespace
}  // namespace stoker
