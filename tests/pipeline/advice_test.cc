#include "engine/pipeline/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kS = 1'000'000'000;

// Four workers, random crops of JPEGs, 100 s, of which `waited` were waited for decoding.
LoaderStats Decoding(uint64_t waited) {
  LoaderStats stats;
  stats.batches = 1000;
  stats.samples = 256'000;
  stats.wait_ns = stats.waited.decode_ns = waited * kS;
  stats.consumer_ns = (100 - waited) * kS;
  stats.work_ns = 396 * kS;
  stats.stages.decode_ns = 300 * kS;
  stats.stages.resize_ns = 90 * kS;
  stats.bytes_read = 28'000'000'000;
  stats.decoded.fast = 256'000;
  stats.depth = 6;
  stats.workers = stats.threads = 4;
  stats.reads = 8;
  stats.reader = "uring";
  stats.plan = "RandomResizedCrop, RandomHorizontalFlip, fused: decode the box only";
  return stats;
}

LoaderStats Storage(uint64_t waited) {
  LoaderStats stats = Decoding(waited);
  stats.work_ns = 50 * kS;
  stats.waited = {.storage_ns = waited * kS};
  return stats;
}

TEST(Advice, NothingBeforeTheSecondBatch) {
  EXPECT_EQ(Advice({}), "");
  LoaderStats stats = Decoding(41);
  stats.batches = 1;
  EXPECT_EQ(Advice(stats), "");
  stats = {};
  stats.batches = 10;  // and no time has passed
  EXPECT_EQ(Advice(stats), "");
}

TEST(Advice, TheConsumerIsTheLimit) {
  LoaderStats stats = Decoding(0);
  stats.wait_ns = stats.waited.decode_ns = 3 * kS / 10;
  EXPECT_EQ(Advice(stats),
            "The consumer is the limit: it waited 0.3% of the time. There is nothing to do here.");
}

TEST(Advice, TooFewCores) {
  EXPECT_EQ(Advice(Decoding(41)),
            "The consumer waited 41% of the time: decoding needs 6.7 cores and has 4. Add cores, "
            "build a crop index (`stoker index`), or decode smaller photographs.");
}

TEST(Advice, TheCropIndexIsThereOrOfNoUse) {
  LoaderStats stats = Decoding(41);
  stats.decoded.indexed = 256'000;
  EXPECT_THAT(Advice(stats), HasSubstr(". Add cores or decode smaller photographs."));
  stats.decoded.stale = 100'000;
  EXPECT_THAT(Advice(stats), HasSubstr("make the crop index anew (`stoker index`)"));
  stats = Decoding(41);
  stats.plan = "Resize, CenterCrop, fused";
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
  stats = Decoding(41);
  stats.decoded = {};  // PNGs
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
}

TEST(Advice, ProgressivePhotographs) {
  LoaderStats stats = Decoding(41);
  stats.decoded.fast = 100'000;
  stats.decoded.fallback[static_cast<size_t>(Fallback::kProcess)] = 156'000;
  EXPECT_THAT(Advice(stats), HasSubstr("make progressive photographs baseline (`jpegtran`)"));
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
}

TEST(Advice, WorkersThatOthersHave) {
  LoaderStats stats = Decoding(41);
  stats.threads = 8;
  EXPECT_THAT(Advice(stats), HasSubstr("has 4. Let it have more than 4 of the 8 workers, add"));
}

TEST(Advice, EnoughCoresOnAverage) {
  LoaderStats stats = Decoding(12);
  stats.work_ns = 150 * kS;
  EXPECT_THAT(Advice(stats),
              StartsWith("The consumer waited 12% of the time: decoding needs 1.7 cores and has 4, "
                         "but not at an even pace. Let more batches be ready (depth, now 6, or "
                         "memory_budget), add cores"));
}

TEST(Advice, OtherWorkThanDecoding) {
  LoaderStats stats = Decoding(41);
  stats.stages = {.decode_ns = 100 * kS, .mix_ns = 200 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr(": mixing needs 6.7 cores and has 4. Add cores or leave "
                                       "out transforms."));
  stats.stages = {.decode_ns = 100 * kS, .augment_ns = 200 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr(": augmenting needs"));
  stats = Decoding(41);
  stats.stages = {};
  stats.reader = "none";
  EXPECT_THAT(Advice(stats), HasSubstr(": making batches needs 6.7 cores and has 4. Add cores."));
}

TEST(Advice, SlowStorage) {
  EXPECT_EQ(Advice(Storage(41)),
            "The consumer waited 41% of the time: storage brings 280 MB/s and should bring 475 "
            "MB/s. Use a faster disk, keep the files in the page cache, or allow more reads at a "
            "time (now 8).");
  EXPECT_THAT(Advice(Storage(5)),
              HasSubstr(" 5.0% of the time: storage is late now and then. Use"));
}

TEST(Advice, MoreReadsWhereTheyAreOfUse) {
  LoaderStats stats = Storage(41);
  stats.decisions = {
      {.what = TunerDecision::What::kReads, .because = TunerDecision::Because::kSaturated},
      {.what = TunerDecision::What::kDepth}};
  EXPECT_THAT(Advice(stats), Not(HasSubstr("more reads")));
  stats.decisions.push_back(
      {.what = TunerDecision::What::kReads, .because = TunerDecision::Because::kLatency});
  EXPECT_THAT(Advice(stats), HasSubstr("more reads"));
  stats.reader = "pread";
  EXPECT_THAT(Advice(stats), HasSubstr("read with io_uring"));
}

TEST(Advice, CopiesAndOther) {
  LoaderStats stats = Decoding(41);
  stats.waited = {.copy_ns = 41 * kS};
  EXPECT_THAT(Advice(stats), StartsWith("The consumer waited 41% of the time: batches were on "
                                        "their way to the device. Make"));
  stats.waited = {.other_ns = 41 * kS};
  EXPECT_THAT(Advice(stats), StartsWith("The consumer waited 41% of the time, most of it for "
                                        "threads to wake up, or for memory that it held itself."));
  stats.waited = {};
  EXPECT_EQ(Advice(stats), "The consumer waited 41% of the time.");
}

TEST(Advice, TheSecondCause) {
  LoaderStats stats = Decoding(40);
  stats.waited = {.storage_ns = 14 * kS, .decode_ns = 26 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr("has 4. Storage is next, with 35% of the wait. Add cores"));
  stats.waited = {.storage_ns = 5 * kS, .decode_ns = 35 * kS};
  EXPECT_THAT(Advice(stats), Not(HasSubstr("next")));
}

TEST(Advice, AConsumerThatOnlyTakesBatches) {
  EXPECT_THAT(Advice(Decoding(99)),
              StartsWith("Decoding is the limit, at 2,560 samples/s with 4 workers, busy 99% of "
                         "the time. Add cores, build"));
  EXPECT_THAT(Advice(Decoding(100)), StartsWith("Decoding is the limit, at 2,560 samples/s"));
  EXPECT_THAT(Advice(Storage(100)),
              StartsWith("Storage is the limit, at 2,560 samples/s, 280 MB/s with 8 reads at a "
                         "time. Use a faster disk"));
  LoaderStats stats = Decoding(100);
  stats.waited = {.copy_ns = 100 * kS};
  EXPECT_THAT(Advice(stats), StartsWith("Copying to the device is the limit, at 2,560 samples/s."));
  stats = Decoding(100);
  stats.workers = stats.threads = 1;
  stats.work_ns = 99 * kS;
  EXPECT_THAT(Advice(stats), HasSubstr(" with 1 worker, busy 99% of"));
}

// Whatever the counters are: whole sentences, and no number that is none.
TEST(Advice, NeverNonsense) {
  std::mt19937_64 random(3);
  const auto some = [&]() -> uint64_t {
    switch (random() % 6) {
      case 0:
        return 0;
      case 1:
        return std::numeric_limits<uint64_t>::max();
      case 2:
        return random();
      default:
        return random() % (100 * kS);
    }
  };
  const auto few = [&] { return static_cast<int>(random() % 4) - 1; };
  for (int round = 0; round < 50'000; ++round) {
    LoaderStats stats;
    stats.batches = 2 + some() / 2;
    stats.samples = some();
    stats.bytes_read = some();
    stats.work_ns = some();
    stats.wait_ns = some();
    stats.consumer_ns = some();
    stats.waited = {some() / 4, some() / 4, some() / 4, some() / 4};
    stats.stages = {some() / 4, some() / 4, some() / 4, some() / 4};
    stats.decoded.fast = some() / 4;
    stats.decoded.stale = some() / 4;
    stats.depth = few();
    stats.workers = few();
    stats.threads = few();
    stats.reads = few();
    stats.reader = random() % 2 == 0 ? "none" : "pread";
    if (random() % 2 == 0) stats.plan = "RandomCrop";
    const std::string advice = Advice(stats);
    if (stats.wait_ns == 0 && stats.consumer_ns == 0) {
      EXPECT_EQ(advice, "");
      continue;
    }
    ASSERT_FALSE(advice.empty());
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(advice.front()))) << advice;
    EXPECT_EQ(advice.back(), '.');
    EXPECT_LT(advice.size(), 700) << advice;
    for (const char* nonsense : {"nan", "inf", " -", "..", "  ", " ."}) {
      EXPECT_THAT(advice, Not(HasSubstr(nonsense)));
    }
  }
}

}  // namespace
}  // namespace stoker
