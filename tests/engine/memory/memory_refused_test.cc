// The system refuses memory for batches, read buffers and decoders: samples wait and are tried
// again, and the batches are the same. This program's mmap is its own.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "core/sample_fault.h"
#include "engine/loader/producer.h"
#include "tests/testing/batches.h"
#include "tests/testing/executors.h"
#include "tests/testing/photo_folder.h"

namespace {

std::atomic<uint64_t> refuse_each{0};  // of so many mappings, the last; 0: none
std::atomic<uint64_t> smallest{0};     // bytes of a mapping that may be refused
std::atomic<uint64_t> asked{0}, refused{0};

bool Refuses(size_t bytes, int flags) {
  const uint64_t each = refuse_each;
  if (each == 0 || bytes < smallest || (flags & MAP_ANONYMOUS) == 0) return false;
  if (++asked % each != 0) return false;
  ++refused;
  return true;
}

}  // namespace

extern "C" void* mmap(void* at, size_t bytes, int protection, int flags, int descriptor,
                      off_t offset) {
  using Function = void*(void*, size_t, int, int, int, off_t);
  static Function* const next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "mmap"));
  if (Refuses(bytes, flags)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next(at, bytes, protection, flags, descriptor, offset);
}

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::TakeEpoch;
using ::testing::HasSubstr;
using ::testing::Not;

class MemoryRefused : public ::testing::Test {
 protected:
  ~MemoryRefused() override { refuse_each = 0; }

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
  // A sample is tried again once, alone; what it needs then is smaller.
  smallest = 64 << 10;
  for (const uint64_t each : {2, 3, 5}) {
    SCOPED_TRACE("each " + std::to_string(each));
    refused = 0;
    auto producer = Producer::Open(Options()).value();
    refuse_each = each;
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
    refuse_each = 0;
    EXPECT_EQ(prints, expected);
    EXPECT_GT(refused, 0u);
    producer.reset();
    EXPECT_EQ(runtime->budget().used(), 0u);
  }
}

TEST_F(MemoryRefused, ForGoodIsAnErrorThatBlamesTheSystem) {
  auto producer = Producer::Open(Options()).value();
  smallest = 0;
  refuse_each = 1;
  const Result<Batch> batch = producer->Next();
  refuse_each = 0;
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kResourceExhausted);
  EXPECT_EQ(FaultOf(batch.error()), std::nullopt) << "the sample may be good";
  EXPECT_THAT(batch.error().ToString(), Not(HasSubstr("memory_budget")));
}

}  // namespace
}  // namespace stoker
