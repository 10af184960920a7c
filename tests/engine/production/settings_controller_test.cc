// Settings follow the tuner, the needs of other loaders, and the available memory.
#include "engine/production/settings_controller.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/memory/arrays.h"

namespace stoker {
namespace {

class SettingsControllerTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSecond = 1'000'000'000;

  // Makes a loader with memory for `max_slots` slots in production, in addition to the memory that
  // so many loaders always have for samples.
  void Open(const TunerOptions& options, int max_slots, int loaders = 1) {
    const uint64_t samples = static_cast<uint64_t>(loaders) * kSureReads * kReadBufferBytes;
    memory_.emplace(static_cast<uint64_t>(max_slots) * slot_ + samples, /*workers=*/4, [] {});
    Start(options);
  }

  // Makes a loader that shares 16 slots with another one, which still holds all but `free_slots`.
  void OpenBesideAHolder(int free_slots) {
    memory_.emplace(16 * slot_ + 2 * kSureReads * kReadBufferBytes, /*workers=*/4, [] {});
    holder_ = memory_->Lease({.slot_bytes = slot_}, 1).value();
    held_ = holder_->TakeBatches();
    ASSERT_TRUE(held_.Resize(static_cast<uint64_t>(16 - free_slots) * slot_));
    Start({});
  }

  void Start(const TunerOptions& options) {
    const MemoryNeeds needs{.slot_bytes = slot_,
                            .depth = options.fixed.depth,
                            .first_depth = kFirstDepth,
                            .max_depth = 16};
    lease_ = memory_->Lease(needs, 1).value();
    pool_ = SlotPool::Make(
                {.columns = columns_, .batch_size = 4, .working_slots = lease_->plan().depth},
                lease_->TakeBatches())
                .value();
    controller_.emplace(options, TunerLimits{.depth = 16, .workers = 4, .reads = 8}, *lease_,
                        *pool_, trace_,
                        [this](const TunerSettings& settings) { applied_.push_back(settings); });
    controller_->Start();
  }

  // Returns a batch that its consumer waited for, at this second.
  void Take(uint64_t second, uint64_t waited_ns = 0) {
    BatchRecord batch;
    batch.name = {0, second};
    batch.rows = 4;
    batch.taken_ns = second * kSecond;
    batch.asked_ns = batch.taken_ns - waited_ns;
    batch.opened_ns = batch.asked_ns - kSecond / 2;
    batch.complete_ns = batch.taken_ns;
    batch.work_ns = kSecond / 4;
    batch.longest_ns = kSecond / 8;
    batch.waited = {.decode_ns = waited_ns};
    controller_->Observe(batch);
  }

  // Takes eight batches at once, then pauses for two seconds; a batch takes a quarter of a second.
  void TakeBurst() {
    for (int i = 0; i < 8; ++i) {
      BatchRecord batch;
      batch.rows = 4;
      batch.opened_ns =
          taken_ns_[taken_ns_.size() - static_cast<size_t>(controller_->settings().depth)];
      complete_ns_ = batch.complete_ns = std::max(complete_ns_, batch.opened_ns) + kSecond / 4;
      batch.asked_ns = taken_ns_.back() + (i == 0 ? 2 * kSecond : 0);
      batch.taken_ns = std::max(batch.asked_ns, batch.complete_ns);
      batch.work_ns = 4 * (kSecond / 4);
      batch.longest_ns = kSecond / 4;
      controller_->Observe(batch);
      taken_ns_.push_back(batch.taken_ns);
    }
  }

  LoaderStats Stats() const {
    LoaderStats stats;
    controller_->AddTo(stats);
    return stats;
  }

  const std::vector<ColumnSpec> columns_ = {{"x", DType::kU8, {4096}}};
  const uint64_t slot_ = SlotPool::SlotBytes(columns_, /*batch_size=*/4);
  const uint8_t value_ = 0;
  const std::shared_ptr<const SampleSource> source_ =
      Arrays({{.name = "x", .dtype = DType::kU8, .row_shape = {1}, .data = &value_, .samples = 1}},
             nullptr)
          .value();
  Trace listeners_;
  const LoaderTrace trace_{listeners_, *source_};
  std::optional<MemoryManager> memory_;
  std::unique_ptr<MemoryLease> holder_;
  Reservation held_;
  std::unique_ptr<MemoryLease> lease_;
  std::shared_ptr<SlotPool> pool_;
  std::optional<SettingsController> controller_;
  std::vector<TunerSettings> applied_;
  std::vector<uint64_t> taken_ns_ = std::vector<uint64_t>(16, kSecond);  // of all batches
  uint64_t complete_ns_ = 0;                                             // of the last one
};

TEST_F(SettingsControllerTest, StartAppliesTheCurrentSettings) {
  Open({}, /*max_slots=*/16);
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0], controller_->settings());
  EXPECT_EQ(Stats().depth, applied_[0].depth);
  EXPECT_EQ(Stats().workers, applied_[0].workers);
  EXPECT_EQ(Stats().reads, applied_[0].reads);
}

TEST_F(SettingsControllerTest, FixedSettingsAreAppliedAndStay) {
  Open({.fixed = {.depth = 3, .workers = 2, .reads = 5}}, /*max_slots=*/16);
  for (uint64_t second = 1; second < 50; ++second) Take(second, kSecond / 2);
  EXPECT_EQ(applied_, (std::vector<TunerSettings>{{.depth = 3, .workers = 2, .reads = 5}}));
  EXPECT_EQ(Stats().decisions_made, 0u);
}

TEST_F(SettingsControllerTest, DepthNeverExceedsTheMemory) {
  Open({}, /*max_slots=*/1);
  for (uint64_t second = 1; second < 50; ++second) {
    Take(second, kSecond / 2);
    EXPECT_EQ(controller_->settings().depth, 1);
  }
  EXPECT_LE(memory_->budget().used(), memory_->budget().limit());
}

TEST_F(SettingsControllerTest, StartDecidesNothingWhereMemoryIsShort) {
  OpenBesideAHolder(/*free_slots=*/1);
  EXPECT_EQ(controller_->settings().depth, 1);
  EXPECT_EQ(Stats().decisions_made, 0u);
}

// Bursts need a deeper loader, but there are only two slots.
TEST_F(SettingsControllerTest, AGrowthThatFindsNoMemoryIsOneDecisionOfTheLimit) {
  OpenBesideAHolder(/*free_slots=*/2);
  for (int burst = 0; burst < 50; ++burst) TakeBurst();
  EXPECT_EQ(controller_->settings().depth, 2);
  int refused = 0;
  for (const TunerDecision& decision : Stats().decisions) {
    if (decision.setting != TunerDecision::Setting::kDepth) continue;
    EXPECT_EQ(decision.reason, TunerDecision::Reason::kLimit);
    EXPECT_EQ(decision.from, 2);
    EXPECT_EQ(decision.to, 2);
    ++refused;
  }
  EXPECT_EQ(refused, 1) << "once, not every second";
  held_ = Reservation();
  for (int burst = 0; burst < 50; ++burst) TakeBurst();
  EXPECT_GT(controller_->settings().depth, 2);
}

TEST_F(SettingsControllerTest, GivesUpWorkersThatOthersNeedAndRecordsTheDecision) {
  Open({}, /*max_slots=*/16, /*loaders=*/2);
  Take(1);
  const int before = controller_->settings().workers;
  ASSERT_GT(before, 1) << "it begins with all there are";
  const auto other = memory_->Lease({.slot_bytes = 1}, 1).value();
  other->SetNeed({.workers = 4}, kSecond);
  Take(2);
  EXPECT_LT(controller_->settings().workers, before);
  EXPECT_EQ(applied_.back(), controller_->settings());
  EXPECT_GE(Stats().decisions_made, 1u);
  EXPECT_EQ(Stats().decisions.size(), Stats().decisions_made);
}

TEST_F(SettingsControllerTest, CountsWaitsAndTheConsumersTime) {
  Open({}, /*max_slots=*/16);
  Take(1, 100);
  Take(2, 300);
  const LoaderStats stats = Stats();
  EXPECT_EQ(stats.wait_ns, 400u);
  EXPECT_EQ(stats.waited.decode_ns, 400u);
  EXPECT_EQ(stats.consumer_ns, kSecond - 300);
}

}  // namespace
}  // namespace stoker
