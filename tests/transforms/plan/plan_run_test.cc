// PlanRun, which interleaves samples, gives the rows that Apply gives one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"

namespace stoker {
namespace {

using testing::JpegColor;
using testing::JpegOptions;
using testing::JpegScans;

const Plan& ThePlan() {
  static const Plan plan = Plan::Compile({RandomResizedCrop{24, 40}, RandomHorizontalFlip{}},
                                         {.decode = DecodeSize::kScaled})
                               .value();
  return plan;
}

struct Sample {
  std::vector<uint8_t> padded;
  std::vector<uint8_t> index;
  DrawKey key;

  std::span<const uint8_t> bytes() const {
    return std::span(padded).first(padded.size() - kBufferPadding);
  }
};

// Files small and large, of all kinds; one in six damaged, one in three with an index, some of
// which are wrong.
Sample MakeSample(uint64_t n) {
  RandomStream random({7, 0, n}, 0);
  JpegOptions options;
  options.width = 1 + static_cast<int>(random.Below(n % 3 == 0 ? 400 : 60));
  options.height = 1 + static_cast<int>(random.Below(n % 3 == 0 ? 300 : 60));
  options.seed = n;
  if (random.Below(5) == 0)
    options.color = JpegColor::kGray;
  else
    options.sampling =
        testing::Luma(1 + static_cast<int>(random.Below(2)), 1 + static_cast<int>(random.Below(2)));
  if (random.Below(6) == 0) options.scans = JpegScans::kProgressive;
  if (random.Below(4) == 0) options.restart_interval = 1 + static_cast<int>(random.Below(9));
  Sample sample;
  sample.key = {1, 0, n};
  sample.padded = testing::MakeJpeg(options);
  const size_t size = sample.padded.size();
  sample.padded.resize(size + kBufferPadding);
  if (random.Below(8) == 0) {  // zeros instead of its end
    sample.padded[size - 2] = sample.padded[size - 1] = 0;
  }
  if (random.Below(3) == 0) (void)jpeg::CropIndexMaker().Make(sample.bytes(), sample.index);
  if (!sample.index.empty() && random.Below(4) == 0) sample.index[sample.index.size() / 2] ^= 4;
  if (random.Below(6) == 0) sample.padded[size / 2 + random.Below(size / 2)] ^= 0x55;
  if (random.Below(12) == 0) sample.padded[size - 1] = 0;  // no end of image
  return sample;
}

struct Outcome {
  std::vector<uint8_t> row;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

std::string TextOf(const Status& status) { return status.ok() ? "" : status.error().ToString(); }

// Begins the samples in order, in several runs: now and then none is ready.
class SampleQueue {
 public:
  SampleQueue(const std::vector<Sample>& samples, uint64_t seed)
      : samples_(samples), random_({seed, 0, 0}, 0) {
    outcomes.resize(samples.size());
    for (Outcome& o : outcomes) o.row.resize(ThePlan().row_bytes());
  }

  void Run(Workspace& workspace) {
    PlanRun run(ThePlan(), workspace, times_);
    for (Fill(run); run.busy(); Fill(run)) {
      if (const std::optional<FinishedRows> rows = run.Advance()) Finish(rows->tag, rows->status);
    }
  }

  bool ended() const { return next_ == samples_.size() && finished_.size() == samples_.size(); }

  std::vector<Outcome> outcomes;

 private:
  void Fill(PlanRun& run) {
    while (run.has_room() && next_ < samples_.size() && random_.Below(4) != 0) {
      const Sample& sample = samples_[next_];
      run.Begin({.tag = static_cast<uint32_t>(next_),
                 .bytes = sample.bytes(),
                 .key = sample.key,
                 .to = {.row = outcomes[next_].row.data()},
                 .crop_index = sample.index});
      ++next_;
    }
  }

  void Finish(uint32_t tag, const Status& status) {
    EXPECT_LT(tag, next_);
    EXPECT_EQ(finished_[tag]++, 0) << tag;
    outcomes[tag].error = TextOf(status);
    EXPECT_GE(times_.decode_ns, seen_ns_);
    seen_ns_ = times_.decode_ns;
  }

  const std::vector<Sample>& samples_;
  RandomStream random_;
  StageTimes times_;
  size_t next_ = 0;
  std::map<uint32_t, int> finished_;
  uint64_t seen_ns_ = 0;
};

struct Alone {
  std::vector<Outcome> outcomes;
  DecodePaths paths;
};

Alone OneByOne(const std::vector<Sample>& samples) {
  MemoryBudget budget(256 << 20);
  const auto workspace = ThePlan().MakeWorkspace(budget);
  Alone alone;
  for (const Sample& sample : samples) {
    Outcome outcome{std::vector<uint8_t>(ThePlan().row_bytes()), ""};
    StageTimes times;
    outcome.error = TextOf(ThePlan().Apply(sample.bytes(), sample.key, *workspace,
                                           outcome.row.data(), times, sample.index));
    alone.outcomes.push_back(std::move(outcome));
  }
  alone.paths = PathsOf(*workspace);
  return alone;
}

void ExpectTheSameInTurns(const std::vector<Sample>& samples, const Alone& alone, uint64_t seed) {
  MemoryBudget budget(256 << 20);
  const auto workspace = ThePlan().MakeWorkspace(budget);
  SampleQueue queue(samples, seed);
  while (!queue.ended()) queue.Run(*workspace);
  for (size_t i = 0; i < samples.size(); ++i) {
    const Outcome &got = queue.outcomes[i], &wanted = alone.outcomes[i];
    ASSERT_EQ(got.error, wanted.error) << i;
    ASSERT_TRUE(!wanted.error.empty() || got.row == wanted.row) << i;
  }
  const DecodePaths paths = PathsOf(*workspace);
  EXPECT_EQ(paths.fast, alone.paths.fast);
  EXPECT_EQ(paths.fallback, alone.paths.fallback);
  EXPECT_EQ(paths.no_end_marker, alone.paths.no_end_marker);
  EXPECT_EQ(paths.indexed, alone.paths.indexed);
  EXPECT_EQ(paths.contradicted, alone.paths.contradicted);
}

TEST(PlanRun, EqualsApplyingOneByOne) {
  std::vector<Sample> samples;
  for (uint64_t n = 0; n < static_cast<uint64_t>(testing::Effort(400)); ++n) {
    samples.push_back(MakeSample(n));
  }
  const Alone alone = OneByOne(samples);
  const auto failed = std::count_if(alone.outcomes.begin(), alone.outcomes.end(),
                                    [](const Outcome& o) { return !o.error.empty(); });
  EXPECT_GT(failed, 0);
  EXPECT_GT(alone.paths.fast, 0u);
  EXPECT_GT(alone.paths.indexed, 0u);
  EXPECT_GT(alone.paths.contradicted, 0u);
  EXPECT_GT(alone.paths.no_end_marker, 0u);
  for (uint64_t seed = 0; seed < 3; ++seed) ExpectTheSameInTurns(samples, alone, seed);
}

// ---- The order of a run.

std::vector<uint8_t> WithPadding(std::vector<uint8_t> file) {
  file.resize(file.size() + kBufferPadding);
  return file;
}

class RunOrder : public ::testing::Test {
 protected:
  void Begin(PlanRun& run, uint32_t tag, const std::vector<uint8_t>& padded) {
    rows_[tag].resize(ThePlan().row_bytes());
    run.Begin({.tag = tag,
               .bytes = std::span(padded).first(padded.size() - kBufferPadding),
               .key = {1, 0, tag},
               .to = {.row = rows_[tag].data()}});
  }

  // Advances until rows are finished.
  static uint32_t Finish(PlanRun& run) {
    for (;;) {
      if (const std::optional<FinishedRows> rows = run.Advance()) {
        EXPECT_TRUE(rows->status.ok());
        return rows->tag;
      }
    }
  }

  const std::vector<uint8_t> png_ = WithPadding(testing::MakePng({.width = 50, .height = 40}));
  const std::vector<uint8_t> jpeg_ = WithPadding(testing::MakeJpeg({.width = 500, .height = 400}));
  MemoryBudget budget_{64 << 20};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_ = ThePlan().MakeWorkspace(budget_);
  StageTimes times_;
  std::map<uint32_t, std::vector<uint8_t>> rows_;
};

TEST_F(RunOrder, FinishedRowsAreReturnedBeforeAnotherSampleIsBegun) {
  PlanRun run(ThePlan(), *workspace_, times_);
  EXPECT_FALSE(run.busy());
  ASSERT_TRUE(run.has_room());
  Begin(run, 7, png_);  // is decoded at once
  EXPECT_FALSE(run.has_room());
  EXPECT_EQ(Finish(run), 7u);
  EXPECT_GT(times_.decode_ns, 0u);
  EXPECT_FALSE(run.busy());
  EXPECT_TRUE(run.has_room());
}

TEST_F(RunOrder, AJpegIsDecodedNextToOtherFormats) {
  PlanRun run(ThePlan(), *workspace_, times_);
  Begin(run, 0, jpeg_);
  uint32_t others = 0;
  for (bool ended = false; !ended && others < 10'000; ++others) {
    if (run.has_room()) Begin(run, 1 + others, png_);
    const std::optional<FinishedRows> rows = run.Advance();
    ended = rows && rows->tag == 0;
  }
  EXPECT_LT(others, 10'000u);
}

TEST_F(RunOrder, PhotographsThatEndTogetherAreBothReturned) {
  PlanRun run(ThePlan(), *workspace_, times_);
  Begin(run, 0, jpeg_);
  ASSERT_TRUE(run.has_room());
  GrowingBuffer* const second = &run.crop_index();
  Begin(run, 1, jpeg_);
  EXPECT_FALSE(run.has_room());
  const uint32_t first = Finish(run);
  if (!run.has_room()) {  // the other one has ended, too
    EXPECT_EQ(Finish(run), 1 - first);
  }
  EXPECT_TRUE(run.has_room());
  EXPECT_TRUE(first == 1 || &run.crop_index() != second) << "memory of a sample in progress";
}

TEST_F(RunOrder, ARunThatIsDestroyedEarlyLeavesNothingBehind) {
  {
    PlanRun given_up(ThePlan(), *workspace_, times_);
    Begin(given_up, 0, jpeg_);
    Begin(given_up, 1, png_);
  }
  PlanRun run(ThePlan(), *workspace_, times_);
  EXPECT_FALSE(run.busy());
  Begin(run, 2, jpeg_);
  EXPECT_EQ(Finish(run), 2u);
  std::vector<uint8_t> alone(ThePlan().row_bytes());
  const auto workspace = ThePlan().MakeWorkspace(budget_);
  ASSERT_TRUE(ThePlan()
                  .Apply(std::span(jpeg_).first(jpeg_.size() - kBufferPadding), {1, 0, 2},
                         *workspace, alone.data(), times_)
                  .ok());
  EXPECT_EQ(rows_[2], alone);
}

// Runs on every instruction set, without and with an index.
TEST(Photos, PlanRunEqualsApplyingOneByOne) {
  const auto paths = testing::Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  const int most = std::max(4, testing::Effort(testing::Effort(400)));  // each is decoded 12 times
  std::vector<Sample> samples;
  for (const auto& path : paths) {
    if (samples.size() == static_cast<size_t>(most)) break;
    Sample sample;
    sample.padded = testing::ReadFile(path);
    sample.padded.resize(sample.padded.size() + kBufferPadding);
    sample.key = {3, 0, samples.size()};
    samples.push_back(std::move(sample));
  }
  const Alone without = OneByOne(samples);
  testing::ForEachTarget([&] { ExpectTheSameInTurns(samples, without, 1); });
  for (Sample& sample : samples) {
    (void)jpeg::CropIndexMaker().Make(sample.bytes(), sample.index);
  }
  const Alone with = OneByOne(samples);
  EXPECT_EQ(with.outcomes, without.outcomes);
  testing::ForEachTarget([&] { ExpectTheSameInTurns(samples, with, 2); });
}

}  // namespace
}  // namespace stoker
