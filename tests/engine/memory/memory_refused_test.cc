// The system refuses memory for batches, read buffers and decoders: samples wait and are tried
// again, and the batches are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result/sample_fault.h"
#include "engine/production/producer.h"
#include "tests/testing/process/refused_memory.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RefusedMemory;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::TakeEpoch;
using ::testing::HasSubstr;
using ::testing::Not;

class MemoryRefused : public ::testing::Test {
 protected:
  LoaderOptions Options() const {
    LoaderOptions options;
    options.source = photos.Source();
    options.transforms = {RandomResizedCrop{.height = 64, .width = 64}};
    options.batch_size = 8;
    options.runtime = runtime;
    return options;
  }

  const PhotoFolder photos{61, 4};
  std::shared_ptr<Runtime> runtime = Runtime::Create(RuntimeUnderTest(2)).value();
};

TEST_F(MemoryRefused, NowAndThenChangesNothing) {
  const std::vector<uint64_t> expected = TakeEpoch(*Producer::Open(Options()).value());
  for (const uint64_t each : {2, 3, 5}) {
    SCOPED_TRACE("each " + std::to_string(each));
    auto producer = Producer::Open(Options()).value();
    // A sample is tried again once, alone; its needs are then smaller.
    std::optional<RefusedMemory> memory(std::in_place, each, 64 << 10);
    std::vector<uint64_t> prints;
    while (true) {
      const Result<Batch> batch = producer->Next();
      if (batch.ok() && !*batch) break;
      if (batch.ok()) {
        prints.push_back(testing::Fingerprint(*batch));
        continue;
      }
      // There is no memory for a batch now; the next call asks again.
      EXPECT_THAT(batch.error().ToString(), HasSubstr("no memory for a batch"));
    }
    EXPECT_GT(memory->refused(), 0u);
    memory.reset();
    EXPECT_EQ(prints, expected);
    producer.reset();
    EXPECT_EQ(runtime->budget().used(), 0u);
  }
}

TEST_F(MemoryRefused, ForGoodIsAnErrorThatBlamesTheSystem) {
  auto producer = Producer::Open(Options()).value();
  std::optional<RefusedMemory> memory(std::in_place, 1);
  const Result<Batch> batch = producer->Next();
  memory.reset();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kResourceExhausted);
  EXPECT_EQ(FaultOf(batch.error()), std::nullopt) << "the sample may be good";
  EXPECT_THAT(batch.error().ToString(), Not(HasSubstr("memory_budget")));
  EXPECT_THAT(batch.error().advice, HasSubstr("Free memory of this machine"));
}

}  // namespace
}  // namespace stoker
