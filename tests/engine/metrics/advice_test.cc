#include "engine/metrics/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kS = 1'000'000'000;

// Four workers, random crops of JPEGs, 100 s, of which `waited` were spent waiting for decoding.
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
  stats.may_have_crop_index = true;
  stats.depth = 6;
  stats.workers = stats.threads = 4;
  stats.reads = 8;
  stats.reader = "uring";
  stats.crops_at_random = true;
  return stats;
}

LoaderStats Storage(uint64_t waited) {
  LoaderStats stats = Decoding(waited);
  stats.work_ns = 50 * kS;
  stats.waited = {.storage_ns = waited * kS};
  return stats;
}

// It is added to what is said about waits.
TEST(Advice, SaysWhichBatchTokensWouldFillBatches) {
  LoaderStats stats = Decoding(1);
  stats.batch_fill = 0.881;
  const std::string waits = Advice(stats);
  EXPECT_THAT(waits, Not(HasSubstr("batch_tokens")));
  stats.fuller_tokens = 43'424;
  const std::string fill =
      " Batches are 88% full: raise batch_tokens to 43,424, four times the largest sample, or "
      "more.";
  EXPECT_EQ(Advice(stats), "The consumer is the limit: it waited 1.0% of the time." + fill);
  for (const uint64_t waited : {20, 60, 95}) {
    stats = Decoding(waited);
    stats.batch_fill = 0.881;
    stats.fuller_tokens = 43'424;
    EXPECT_THAT(Advice(stats), ::testing::EndsWith(fill));
  }
}

TEST(Advice, IsEmptyBeforeTheSecondBatch) {
  EXPECT_EQ(Advice({}), "");
  LoaderStats stats = Decoding(41);
  stats.batches = 1;
  EXPECT_EQ(Advice(stats), "");
  stats = {};
  stats.batches = 10;  // but no time has passed
  EXPECT_EQ(Advice(stats), "");
}

TEST(Advice, SaysWhenTheConsumerIsTheLimit) {
  LoaderStats stats = Decoding(0);
  stats.wait_ns = stats.waited.decode_ns = 3 * kS / 10;
  EXPECT_EQ(Advice(stats),
            "The consumer is the limit: it waited 0.3% of the time. There is nothing to do here.");
  stats.wait_ns = stats.waited.decode_ns = 29 * kS / 10;  // the tuner leaves it at that, too
  EXPECT_THAT(Advice(stats), StartsWith("The consumer is the limit: it waited 2.8% of the time."));
  EXPECT_THAT(Advice(Decoding(4)), StartsWith("The consumer waited 4.0% of the time: decoding"));
}

TEST(Advice, SuggestsMoreCoresForDecoding) {
  EXPECT_EQ(Advice(Decoding(41)),
            "The consumer waited 41% of the time: decoding needs 6.7 cores and has 4. Add cores, "
            "pack the images (`stoker pack` for folders, or the option `cache`), build a crop "
            "index (`stoker index`), or decode smaller images.");
}

TEST(Advice, KnowsWhatADeviceDecodes) {
  LoaderStats stats = Decoding(41);
  stats.decoded.fast = 0;
  stats.decoded.on_device = stats.samples;
  EXPECT_EQ(Advice(stats),
            "The consumer waited 41% of the time: preparing crops for the device needs 6.7 cores "
            "and has 4. Add cores.");
  stats.decoded.on_device = stats.decoded.fast = stats.samples / 2;  // most of the time is theirs
  EXPECT_THAT(Advice(stats), HasSubstr("of the time: decoding needs 6.7 cores"));
  stats.waited = {.copy_ns = 41 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr("on their way to the device. Make batches smaller"));
  stats.decoded.on_device = stats.samples;
  EXPECT_EQ(
      Advice(stats),
      "The consumer waited 41% of the time: batches were on their way to the device, or decoded "
      "there. Let the workers decode (`to_device(…, decode=\"workers\")`), make batches smaller in "
      "bytes, or see `stoker doctor` about the device's link.");
  stats.wait_ns = 99 * kS;
  stats.consumer_ns = kS;
  EXPECT_THAT(Advice(stats), StartsWith("Copying to the device and decoding there is the limit"));
}

TEST(Advice, SaysWhyWorkersDecodeWhatADeviceWasToDecode) {
  LoaderStats stats = Decoding(41);
  stats.decoded.on_device = 56'000;
  stats.decoded.fast = 0;
  stats.decoded.on_worker = {50'000, 0, 0, 6'000};  // as many
  EXPECT_THAT(Advice(stats), Not(HasSubstr("was to decode")));
  stats.decoded.fast = 170'000;
  stats.decoded.on_worker = {170'000, 1'000, 0, 29'000};
  EXPECT_EQ(Advice(stats),
            "The consumer waited 41% of the time: decoding needs 6.7 cores and has 4. Workers "
            "decode 78% of what the device was to decode, most often because an image is "
            "neither packed nor a JPEG with a usable crop index. Add cores, pack the images "
            "(`stoker pack` for folders, or the option "
            "`cache`), build a crop index (`stoker index`), or decode smaller images.");
  EXPECT_EQ(FirstChange(stats),
            "Pack the images (`stoker pack` for folders, or the option `cache`).");
  stats.cache.place = "ram:8GiB";  // which has packed none of them yet
  EXPECT_THAT(Advice(stats), AllOf(HasSubstr("neither packed"), Not(HasSubstr("pack the"))));

  stats.decoded.fast = 0;
  stats.decoded.packed = 200'000;
  stats.decoded.on_worker = {29'000, 0, 1'000, 170'000};
  EXPECT_THAT(Advice(stats),
              HasSubstr("most often because the crops of a batch have no room. Add cores, give "
                        "crops more room (`to_device(…, crop_bytes=…)`), store smaller "
                        "images, let the workers decode (`to_device(…, "
                        "decode=\"workers\")`), or decode"));
  EXPECT_EQ(FirstChange(stats), "Give crops more room (`to_device(…, crop_bytes=…)`).");
  for (const OnWorker why : {OnWorker::kUnsupported, OnWorker::kDamaged}) {
    stats.decoded.on_worker = {};
    stats.decoded.on_worker[static_cast<size_t>(why)] = 200'000;
    const char* cause = why == OnWorker::kDamaged
                            ? "because an image is damaged, or has changed since it was indexed. "
                            : "because it cannot make such a crop. ";
    EXPECT_THAT(Advice(stats), AllOf(HasSubstr(cause), Not(HasSubstr("pack ")),
                                     HasSubstr("let the workers decode (`to_device(…, decode="),
                                     Not(HasSubstr("index (`stoker index`)"))));
  }
  stats.decoded.packed = 0;
  stats.decoded.fast = stats.decoded.indexed = 200'000;  // and so not packed
  EXPECT_THAT(Advice(stats), AllOf(HasSubstr("since it was indexed. "),
                                   HasSubstr("rebuild the crop index (`stoker index`)")));
}

// CPU time of other processes is not a need of the loader: 6.7 workers like these would suffice, or
// 1.4 cores.
TEST(Advice, SaysWhenWorkersWaitForACore) {
  LoaderStats stats = Decoding(41);
  stats.clocked = {.wall_ns = 1000, .cpu_ns = 210};
  EXPECT_EQ(
      Advice(stats),
      "The consumer waited 41% of the time: decoding needs 1.4 cores and has 4 workers, each "
      "of which had a core 21% of the time. Keep other programs off the loader's cores, raise the "
      "process's CPU limit, pack the images (`stoker pack` for folders, or the option "
      "`cache`), build a crop index (`stoker index`), or decode smaller images.");
  stats.workers = stats.threads = 1;
  EXPECT_THAT(Advice(stats), HasSubstr("has 1 worker, which had a core 21% of the time. Keep other "
                                       "programs off the loader's cores, raise the process's CPU "
                                       "limit, add cores"));
  stats = Decoding(99);
  stats.clocked = {.wall_ns = 1000, .cpu_ns = 210};
  EXPECT_THAT(Advice(stats), HasSubstr("with 4 workers, busy 99% of the time, and with a core 21% "
                                       "of that. Keep other programs off the loader's cores"));
  stats.clocked.cpu_ns = 950;
  EXPECT_THAT(Advice(stats), HasSubstr("busy 99% of the time. Add cores"));
}

TEST(Advice, SuggestsToPackOnlyFilesThatCanBePacked) {
  for (const char* reader : {"calls", "objects"}) {
    LoaderStats stats = Decoding(41);
    stats.reader = reader;
    EXPECT_THAT(Advice(stats), Not(HasSubstr("pack"))) << reader;
  }
  LoaderStats stats = Decoding(41);
  stats.decoded.fast = stats.samples / 3;  // others are PNGs
  EXPECT_THAT(Advice(stats), Not(HasSubstr("pack")));
}

TEST(Advice, DoesNotSuggestToPackWhatIsPacked) {
  LoaderStats stats = Decoding(41);
  stats.decoded = {.packed = stats.decoded.fast};
  EXPECT_EQ(Advice(stats),
            "The consumer waited 41% of the time: decoding needs 6.7 cores and has 4. Add cores or "
            "decode smaller images.");
}

TEST(Advice, SuggestsALargerCacheIfItIsFull) {
  LoaderStats stats = Decoding(41);
  stats.cache = {.place = "ram:8GiB", .hits = 610, .misses = 390};
  EXPECT_THAT(Advice(stats), AllOf(Not(HasSubstr("pack")), Not(HasSubstr("cache"))));
  stats.cache.refused = 1;
  EXPECT_THAT(Advice(stats),
              HasSubstr("give the cache more bytes (it is full, and had 61% of the samples)"));
}

TEST(Advice, SuggestsToDecodeLargePhotographsScaled) {
  LoaderStats stats = Decoding(41);
  stats.decoded.scalable = stats.samples / 5;
  EXPECT_THAT(Advice(stats), Not(HasSubstr("scaled")));
  stats.decoded.scalable = stats.samples / 3;
  EXPECT_THAT(Advice(stats), HasSubstr("decode large images scaled (`decode=\"scaled\"`)"));
}

TEST(Advice, SuggestsACropIndexOnlyWhereItHelps) {
  LoaderStats stats = Decoding(41);
  stats.decoded.indexed = 256'000;
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
  stats.decoded.stale = 100'000;
  EXPECT_THAT(Advice(stats), HasSubstr("rebuild the crop index (`stoker index`)"));
  stats = Decoding(41);
  stats.may_have_crop_index = false;  // an archive, a manifest
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
  stats = Decoding(41);
  stats.crops_at_random = false;
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
  // A device needs an index for any crop.
  for (size_t why = 0; why < kOnWorkerReasons; ++why) {
    stats.decoded.on_worker = {};
    stats.decoded.on_worker[why] = stats.samples;
    const bool helps = static_cast<OnWorker>(why) == OnWorker::kNotPrepared;
    const std::string advice = Advice(stats);
    EXPECT_EQ(advice.find("build a crop index (`stoker index`)") != std::string::npos, helps)
        << advice;
  }
  stats = Decoding(41);
  stats.decoded = {};  // PNGs
  EXPECT_THAT(Advice(stats), AllOf(Not(HasSubstr("index")), Not(HasSubstr("pack"))));
}

TEST(Advice, SuggestsConvertingProgressivePhotographs) {
  LoaderStats stats = Decoding(41);
  stats.decoded.fast = 256'000;
  stats.decoded.progressive = 156'000;
  EXPECT_THAT(Advice(stats), HasSubstr("make progressive JPEGs baseline (`jpegtran`)"));
  EXPECT_THAT(Advice(stats), Not(HasSubstr("index")));
}

TEST(FirstChange, IsOneThatCostsNothing) {
  EXPECT_EQ(FirstChange(Decoding(41)),
            "Pack the images (`stoker pack` for folders, or the option `cache`).");
  EXPECT_EQ(FirstChange(Storage(41)), "Keep the files in the page cache.");
  LoaderStats copies = Decoding(41);
  copies.waited = {.copy_ns = 41 * kS};
  EXPECT_EQ(FirstChange(copies), "See `stoker doctor` about the device's link.");
  LoaderStats stats = Decoding(41);
  stats.clocked = {.wall_ns = 1000, .cpu_ns = 210};
  EXPECT_EQ(FirstChange(stats), "Keep other programs off the loader's cores.");
}

TEST(FirstChange, IsNotThePageCacheThatIsEmptiedOnPurpose) {
  LoaderStats stats = Storage(41);
  EXPECT_EQ(FirstChange(stats, /*cold=*/true), "Use a faster disk.");
  stats.reader = "pread";
  EXPECT_EQ(FirstChange(stats, /*cold=*/true),
            "Read with io_uring (`stoker doctor` says whether it can).");
}

TEST(FirstChange, NamesTheFunction) {
  LoaderStats stats = Decoding(41);
  stats.waited = {.map_ns = 41 * kS};
  stats.map = "to_gray";
  stats.map_threads = 1;
  EXPECT_EQ(FirstChange(stats), "Make your function to_gray faster.");
}

TEST(FirstChange, IsTheFirstRemedyIfAllCostSomething) {
  LoaderStats stats = Decoding(41);
  stats.decoded = {.packed = stats.decoded.fast};
  EXPECT_EQ(FirstChange(stats), "Add cores.");
}

TEST(FirstChange, IsAmongTheRemediesOfTheAdvice) {
  for (const LoaderStats& stats : {Decoding(41), Decoding(99), Storage(10), Storage(99)}) {
    const std::string first = FirstChange(stats);
    EXPECT_THAT(Advice(stats), HasSubstr(first.substr(1, first.size() - 2)));
  }
}

TEST(FirstChange, IsEmptyIfThereIsNothingToDo) {
  EXPECT_EQ(FirstChange({}), "");
  EXPECT_EQ(FirstChange(Decoding(0)), "");
  EXPECT_EQ(FirstChange(Decoding(2)), "");
}

TEST(Advice, NamesWorkersHeldByOtherLoaders) {
  LoaderStats stats = Decoding(41);
  stats.threads = 8;
  EXPECT_THAT(Advice(stats),
              HasSubstr("has 4. Other loaders have the rest of the 8 workers. Add cores, pack"));
  stats = Decoding(99);
  stats.threads = 8;
  EXPECT_THAT(Advice(stats), HasSubstr("busy 99% of the time. Other loaders have the rest of"));
}

// The tuner takes as few workers as are enough; the rest is unused, and cores are not missing.
TEST(Advice, DoesNotSuggestCoresWhenWorkersAreLeftOver) {
  LoaderStats stats = Decoding(20);
  stats.work_ns = 240 * kS;  // three workers' time
  stats.threads = 8;
  EXPECT_THAT(Advice(stats),
              HasSubstr("needs 3.0 cores on average and has 4, but needs more at times. Pack"));
  stats = Decoding(95);
  stats.threads = 8;
  stats.work_ns = 240 * kS;
  EXPECT_THAT(Advice(stats), HasSubstr("with 4 workers, busy 60% of the time. Pack"));
}

TEST(Advice, SuggestsRaisingAFixedNumberOfWorkers) {
  LoaderStats stats = Decoding(41);
  stats.threads = 8;
  stats.workers_given = true;
  EXPECT_THAT(Advice(stats),
              HasSubstr("has 4. Let the loader have more than 4 of the 8 workers, pack"));
}

TEST(Advice, SuggestsDepthWhenCoresSufficeOnAverage) {
  LoaderStats stats = Decoding(12);
  stats.work_ns = 250 * kS;
  stats.depth_given = true;
  EXPECT_THAT(
      Advice(stats),
      StartsWith("The consumer waited 12% of the time: decoding needs 2.8 cores on average and "
                 "has 4, but needs more at times. Allow more batches in production (depth, now "
                 "6, or memory_budget), add cores"));
  stats.work_ns = 150 * kS;  // less than half of them
  EXPECT_THAT(Advice(stats), Not(HasSubstr("add cores")));
  stats = Decoding(99);
  stats.work_ns = 150 * kS;
  EXPECT_THAT(Advice(stats), HasSubstr("busy 38% of the time. Pack the images"));
  stats.clocked = {.wall_ns = 1000, .cpu_ns = 210};
  EXPECT_THAT(
      Advice(stats),
      HasSubstr("busy 38% of the time, and with a core 21% of that. Keep other programs off "
                "the loader's cores, raise the process's CPU limit, pack the images"));
  EXPECT_EQ(FirstChange(stats), "Keep other programs off the loader's cores.");
}

TEST(Advice, DoesNotSuggestSettingATunedDepth) {
  LoaderStats stats = Decoding(12);
  stats.work_ns = 250 * kS;
  stats.slot_bytes = 10'000'000;
  stats.memory_budget = 1'000'000'000;
  EXPECT_THAT(Advice(stats), HasSubstr("but needs more at times. Add cores"));
  stats.memory_budget = 130'000'000;  // its half: for six batches and a half
  EXPECT_THAT(Advice(stats),
              HasSubstr(" at times. Allow more batches in production (memory_budget), add"));
  stats.memory_budget = 1'000'000'000;
  stats.decisions = {
      {.setting = TunerDecision::Setting::kDepth, .reason = TunerDecision::Reason::kLimit}};
  EXPECT_THAT(Advice(stats),
              HasSubstr(" at times. Allow more batches in production (memory_budget), add"));
}

TEST(Advice, NamesTheWorkThatTakesLongest) {
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

TEST(Advice, NamesSlowStorage) {
  LoaderStats given = Storage(41);
  given.reads_given = true;
  EXPECT_EQ(Advice(given),
            "The consumer waited 41% of the time: storage brings 280 MB/s and should bring 475 "
            "MB/s. Use a faster disk, keep the files in the page cache, or allow more reads at a "
            "time (now 8).");
  EXPECT_THAT(Advice(Storage(5)),
              HasSubstr(" 5.0% of the time: storage is late occasionally. Use"));
  LoaderStats remote = Storage(41);
  remote.reader = "objects";
  EXPECT_THAT(Advice(remote),
              HasSubstr("475 MB/s. Keep what was read on a local disk (the source's `cache`) or "
                        "allow more reads at a time (`reads_in_flight`, now 8)."));
}

TEST(Advice, DoesNotSuggestSettingTunedReads) {
  LoaderStats stats = Storage(41);
  EXPECT_THAT(Advice(stats), Not(HasSubstr("more reads")));
  stats.reader = "pread";
  EXPECT_THAT(Advice(stats), HasSubstr("read with io_uring"));
}

TEST(Advice, NamesCopiesAndOtherWaits) {
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

TEST(Advice, NamesTheProgramsFunction) {
  LoaderStats stats = Decoding(41);
  stats.waited = {.map_ns = 41 * kS};
  stats.map = "to_gray";
  stats.map_threads = 1;
  stats.batches = 1000;
  stats.map_calls = 1500;  // more than were delivered
  stats.stages.map_ns = 135 * kS;
  EXPECT_EQ(Advice(stats),
            "The consumer waited 41% of the time: your function to_gray takes 90 ms for a batch, "
            "on 1 thread, and a step takes 59 ms. Make your function to_gray faster "
            "or call it on more threads.");
  stats = Decoding(100);
  stats.waited = {.map_ns = 100 * kS};
  stats.map = "to_gray";
  stats.map_threads = 2;
  stats.map_calls = stats.batches = 1000;
  stats.stages.map_ns = 200 * kS;
  EXPECT_EQ(Advice(stats),
            "Your function to_gray is the limit, at 2,560 samples/s: a batch takes it 200 ms, and "
            "it has 2 threads. Make your function to_gray faster or call it on more threads.");
  // On the workers.
  stats = Decoding(41);
  stats.map = "to_gray";
  stats.stages = {.decode_ns = 10 * kS, .map_ns = 30 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr("your function to_gray needs "));
  EXPECT_THAT(Advice(stats), HasSubstr("make your function to_gray faster."));
}

TEST(Advice, NamesTheSecondCause) {
  LoaderStats stats = Decoding(40);
  stats.waited = {.storage_ns = 14 * kS, .decode_ns = 26 * kS};
  EXPECT_THAT(Advice(stats), HasSubstr("has 4. Storage is next, with 35% of the wait. Add cores"));
  stats.waited = {.storage_ns = 5 * kS, .decode_ns = 35 * kS};
  EXPECT_THAT(Advice(stats), Not(HasSubstr("next")));
}

TEST(Advice, NamesTheLimitForAConsumerThatOnlyTakesBatches) {
  EXPECT_THAT(Advice(Decoding(99)),
              StartsWith("Decoding is the limit, at 2,560 samples/s with 4 workers, busy 99% of "
                         "the time. Add cores, pack"));
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

// For any counters, the advice has whole sentences and no NaN.
TEST(Advice, IsWellFormedForAnyCounters) {
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
  for (int round = 0; round < testing::Effort(50'000); ++round) {
    LoaderStats stats;
    stats.batches = 2 + some() / 2;
    stats.samples = some();
    stats.bytes_read = some();
    stats.work_ns = some();
    stats.wait_ns = some();
    stats.consumer_ns = some();
    stats.clocked = {.wall_ns = some(), .cpu_ns = some()};
    stats.waited = {some() / 5, some() / 5, some() / 5, some() / 5, some() / 5};
    stats.stages = {some() / 5, some() / 5, some() / 5, some() / 5, some() / 5};
    stats.map = "to_gray";
    stats.map_threads = static_cast<int>(random() % 3);
    stats.map_calls = random() % 3;
    stats.decoded.fast = some() / 4;
    stats.decoded.stale = some() / 4;
    stats.depth = few();
    stats.workers = few();
    stats.threads = few();
    stats.reads = few();
    stats.depth_given = random() % 2 == 0;
    stats.workers_given = random() % 2 == 0;
    stats.reads_given = random() % 2 == 0;
    stats.slot_bytes = some();
    stats.memory_budget = some();
    stats.reader = random() % 2 == 0 ? "none" : "pread";
    stats.crops_at_random = random() % 2 == 0;
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
