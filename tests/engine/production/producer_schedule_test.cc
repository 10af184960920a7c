// The batches that a loader makes: epoch after epoch, one epoch again and again, or the appended
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "engine/production/producer.h"
#include "engine/runtime/runtime_with_readers.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Fingerprint;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::TakeEpoch;

// Gives nothing back while `held` is set.
class HeldReader final : public Reader {
 public:
  explicit HeldReader(const std::atomic<bool>& held) : held_(held), reader_(MakePreadReader(8)) {}
  size_t Submit(std::span<ReadRequest* const> requests) override {
    return reader_->Submit(requests);
  }
  size_t Reap(std::span<ReadRequest*> done, bool wait) override {
    return held_ ? 0 : reader_->Reap(done, wait);
  }
  size_t in_flight() const override { return reader_->in_flight(); }
  size_t capacity() const override { return reader_->capacity(); }
  const char* name() const override { return "held"; }

 private:
  const std::atomic<bool>& held_;
  const std::unique_ptr<Reader> reader_;
};

class ProducerScheduleTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPerEpoch = 6;  // 41 photographs in batches of 7: the last has 6 rows

  LoaderOptions Options() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16}};
    options.batch_size = 7;
    options.shuffle = true;
    options.seed = 3;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
    return options;
  }

  // Fingerprints of the first epochs, batch by batch.
  std::vector<std::vector<uint64_t>> Epochs(int count) {
    auto loader = Producer::Open(Options()).value();
    std::vector<std::vector<uint64_t>> epochs;
    for (int e = 0; e < count; ++e) epochs.push_back(TakeEpoch(*loader));
    return epochs;
  }

  PhotoFolder photos_{41, 3};
};

TEST_F(ProducerScheduleTest, RepeatsTheSameEpoch) {
  const auto epochs = Epochs(3);
  ASSERT_EQ(epochs[0].size(), kPerEpoch);
  auto loader = Producer::Open(Options()).value();
  ASSERT_TRUE(loader->Seek({1, 0}, Schedule::kSameEpoch).ok());
  EXPECT_EQ(TakeEpoch(*loader), epochs[1]);
  EXPECT_EQ(loader->position(), (BatchName{1, 0}));
  EXPECT_EQ(TakeEpoch(*loader), epochs[1]);
  ASSERT_TRUE(loader->Seek({2, 4}, Schedule::kSameEpoch).ok());
  EXPECT_EQ(TakeEpoch(*loader), std::vector<uint64_t>(epochs[2].begin() + 4, epochs[2].end()));
  EXPECT_EQ(TakeEpoch(*loader), epochs[2]);
}

TEST_F(ProducerScheduleTest, DeliversAppendedBatchesInCallOrder) {
  const auto epochs = Epochs(4);
  auto loader = Producer::Open(Options()).value();
  (void)loader->Next().value();  // in the middle of another epoch
  const std::vector<BatchName> wanted = {{3, 5}, {0, 0}, {0, 0}, {2, 5}, {2, 5}, {1, 3},
                                         {3, 5}, {0, 1}, {0, 5}, {1, 5}, {2, 0}};
  size_t appended = 0, taken = 0;
  for (size_t ahead : {1, 3, 20}) {  // fewer and more than the depth
    while (appended < wanted.size() && appended < taken + ahead) {
      ASSERT_TRUE(loader->Append(wanted[appended]).ok());
      ++appended;
    }
    for (int i = 0; i < 3 && taken < appended; ++i, ++taken) {
      EXPECT_EQ(loader->position(), wanted[taken]);
      Batch batch = loader->Next().value();
      ASSERT_TRUE(batch) << taken;
      EXPECT_EQ(batch.epoch(), wanted[taken].epoch);
      EXPECT_EQ(batch.index(), wanted[taken].index);
      EXPECT_EQ(Fingerprint(batch), epochs[wanted[taken].epoch][wanted[taken].index]) << taken;
    }
  }
  for (; taken < appended; ++taken) EXPECT_TRUE(loader->Next().value());
  EXPECT_FALSE(loader->Next().value()) << "nothing is left";
  EXPECT_FALSE(loader->Next().value()) << "and stays so";
  ASSERT_TRUE(loader->Append({1, 2}).ok());
  EXPECT_EQ(Fingerprint(loader->Next().value()), epochs[1][2]);
  ASSERT_TRUE(loader->Seek({2, 0}).ok());
  EXPECT_EQ(TakeEpoch(*loader), epochs[2]) << "Seek ends it";
  EXPECT_EQ(loader->Append({0, kPerEpoch}).error().code, Code::kInvalidArgument);
}

// Short batches reuse the place of long ones and the other way round, with every depth. (With fewer
// than 12, no place would be reused.)
TEST_F(ProducerScheduleTest, ShortBatchesMayComeAnywhere) {
  const auto epochs = Epochs(2);
  const auto batches = static_cast<uint64_t>(std::max(12, testing::Effort(60)));
  for (int depth : {1, 2, 3, 5}) {
    LoaderOptions options = Options();
    options.depth = depth;
    auto loader = Producer::Open(options).value();
    for (uint64_t i = 0; i < batches; ++i) {
      ASSERT_TRUE(loader->Append({i % 2, i % 3 == 0 ? 1 : kPerEpoch - 1}).ok());
    }
    for (uint64_t i = 0; i < batches; ++i) {
      EXPECT_EQ(Fingerprint(loader->Next().value()), epochs[i % 2][i % 3 == 0 ? 1 : kPerEpoch - 1]);
    }
  }
}

TEST_F(ProducerScheduleTest, AnInterruptedWaitLosesNothing) {
  const auto epochs = Epochs(1);
  LoaderOptions options = Options();
  std::atomic<bool> held{true};
  const auto make_reader = [&held]() -> Result<std::unique_ptr<Reader>> {
    return std::unique_ptr<Reader>(std::make_unique<HeldReader>(held));
  };
  options.runtime = RuntimeWithReaders(options.runtime->options(), make_reader).value();
  auto loader = Producer::Open(options).value();
  int asked = 0;
  Result<Batch> none = loader->Next([&] { return ++asked == 2; });
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kCancelled);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(loader->position(), (BatchName{0, 0}));
  held = false;
  EXPECT_EQ(TakeEpoch(*loader), epochs[0]);
}

}  // namespace
}  // namespace stoker
