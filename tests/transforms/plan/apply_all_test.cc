// ApplyAll, which interleaves samples, gives the rows that Apply gives one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/plan/plan.h"

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

// Gives the samples in order, and now and then says that there is none.
class SomeQueue final : public ImageQueue {
 public:
  SomeQueue(const std::vector<Sample>& samples, uint64_t seed)
      : samples_(samples), random_({seed, 0, 0}, 0) {
    outcomes.resize(samples.size());
    for (Outcome& o : outcomes) o.row.resize(ThePlan().row_bytes());
  }

  std::optional<EncodedImage> Next(GrowingBuffer& /*crop_index*/) override {
    if (next_ == samples_.size() || random_.Below(4) == 0) return std::nullopt;
    const Sample& sample = samples_[next_];
    begun_ = next_ + 1;
    return EncodedImage{static_cast<uint32_t>(next_), sample.bytes(), sample.key,
                        outcomes[next_++].row.data(), sample.index};
  }

  void Done(uint32_t tag, Status status) override {
    EXPECT_LT(tag, begun_);
    EXPECT_EQ(done_[tag]++, 0) << tag;
    outcomes[tag].error = TextOf(status);
    EXPECT_GE(times.decode_ns, seen_ns_);
    seen_ns_ = times.decode_ns;
  }

  bool ended() const { return next_ == samples_.size() && done_.size() == samples_.size(); }

  std::vector<Outcome> outcomes;
  StageTimes times;

 private:
  const std::vector<Sample>& samples_;
  RandomStream random_;
  size_t next_ = 0, begun_ = 0;
  std::map<uint32_t, int> done_;
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
  SomeQueue queue(samples, seed);
  while (!queue.ended()) ThePlan().ApplyAll(queue, *workspace, queue.times);
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

TEST(ApplyAll, EqualsApplyingOneByOne) {
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

// Runs on every instruction set, without and with an index.
TEST(Photos, ApplyAllEqualsApplyingOneByOne) {
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
