#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bindings/cli/bench/reads/ceilings.h"
#include "tests/testing/samples/listed_files.h"

namespace stoker {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A run of 400 images a second, which waits for decoding, on a machine without a device.
Ceilings MadeUp() {
  Ceilings ceilings;
  ceilings.workers = 2;
  ceilings.image_bytes = 150'528;
  ceilings.storage = {.images_per_second = 4000, .bytes_per_second = 4.2e9};
  ceilings.decode = {.images_per_second = 500, .bytes_per_second = 7.5e7};
  ceilings.decode_seconds = 0.004;
  ceilings.memory = {.images_per_second = 100'000, .bytes_per_second = 15e9};
  ceilings.copy.why_not = "no device: there is no driver";
  BenchReport& run = ceilings.run;
  run.options.loader.source = std::make_shared<testing::ListedFiles>(
      std::vector<testing::ListedFiles::Sample>{{"a.jpg", 7}});
  run.options.loader.batch_size = 64;
  run.images = 1200;
  run.seconds = 3.5;
  run.batches = run.loader.batches = 100;
  run.batches_after_first = 99;
  run.images_after_first = 1188;
  run.seconds_after_first = 2.97;
  run.loader.depth = 8;
  run.loader.samples = run.loader.decoded.fast = 1200;
  run.loader.wait_ns = run.loader.waited.decode_ns = 3'500'000'000;
  run.loader.work_ns = run.loader.stages.decode_ns = 5'900'000'000;
  run.loader.workers = run.loader.threads = 2;
  run.loader.clocked = {.wall_ns = 1000, .cpu_ns = 960};
  return ceilings;
}

TEST(CeilingsReport, TextComparesTheRunWithEachPart) {
  const std::string text = CeilingsText(MadeUp());
  EXPECT_THAT(text, HasSubstr("\n  storage          4,000      10 %   4.2 GB/s, "));
  EXPECT_THAT(text, HasSubstr("\n  decode             500      80 %   2 workers on bytes in "
                              "memory, 4.0 ms of CPU a sample\n"));
  EXPECT_THAT(text, HasSubstr("\n  memory         100,000     0.4 %   15.0 GB/s, 2 workers "));
  EXPECT_THAT(text, HasSubstr("\n  copy                 -         -   no device: there is no "));
  // 1,188 / 2.97 s: the rate is that of its own line, and of the advice.
  EXPECT_THAT(text, HasSubstr("\n  the run            400             1,188 samples in 2.97 s "
                              "after the first batch; workers had a core 96 % of their time\n"));
  EXPECT_THAT(text, HasSubstr("Decoding is the limit, at 400 samples/s with 2 workers"));
  EXPECT_THAT(text, HasSubstr("\n  To change first: Pack the images ("));
}

TEST(CeilingsReport, TextSaysWhatWasCached) {
  Ceilings ceilings = MadeUp();
  EXPECT_THAT(CeilingsText(ceilings), Not(HasSubstr("page cache")));
  ceilings.cached = 1;
  EXPECT_THAT(CeilingsText(ceilings), HasSubstr("; 100 % came from the page cache\n"));
  ceilings.cached = 0.25;
  EXPECT_THAT(CeilingsText(ceilings),
              HasSubstr("; 25 % came from the page cache; try --cold, too"));
  ceilings.run.options.cold = true;
  EXPECT_THAT(CeilingsText(ceilings), HasSubstr("; 25 % came from the page cache\n"));
}

TEST(CeilingsReport, TellsNoRateOfFewBatches) {
  Ceilings ceilings = MadeUp();
  ceilings.run.loader.depth = 40;
  EXPECT_THAT(CeilingsText(ceilings),
              HasSubstr("\n  decode             500         -   2 workers"));
  EXPECT_THAT(
      CeilingsText(ceilings),
      HasSubstr("\n  the run              -             1,200 samples in 3.50 s, 100 batches: "
                "too few to tell a rate\n"));
  const json report = json::parse(CeilingsJson(ceilings));
  EXPECT_EQ(report["images_per_second"], nullptr);
  EXPECT_EQ(report["alone"]["decode"]["images_per_second"], 500);
  EXPECT_EQ(report["alone"]["decode"]["reached"], nullptr);
  ceilings = MadeUp();
  ceilings.run.options.cold = true;  // each epoch fills the loader again
  ceilings.run.options.epochs = 5;
  EXPECT_FALSE(RunRate(ceilings.run));
  ceilings.run.options.epochs = 4;
  EXPECT_EQ(RunRate(ceilings.run), 400);
}

TEST(CeilingsReport, TellsOfBadSamples) {
  Ceilings ceilings = MadeUp();
  EXPECT_THAT(CeilingsText(ceilings), Not(HasSubstr("bad samples")));
  ceilings.run.loader.bad.dropped = 3;
  ceilings.run.warning = "the index is of other files";
  EXPECT_THAT(CeilingsText(ceilings), HasSubstr("\n  bad samples    0 substituted, 3 dropped ("));
  EXPECT_THAT(CeilingsText(ceilings),
              HasSubstr("\n  crop index     the index is of other files\n"));
}

TEST(CeilingsReport, JsonHasTheSame) {
  Ceilings ceilings = MadeUp();
  ceilings.copy = {.images_per_second = 200'000, .bytes_per_second = 30e9};
  ceilings.device = "cuda:0";
  ceilings.storage = {.why_not = "the samples are behind URLs"};
  ceilings.interrupted = true;
  const json report = json::parse(CeilingsJson(ceilings));
  const json& alone = report["alone"];
  EXPECT_EQ(alone["storage"]["why_not"], "the samples are behind URLs");
  EXPECT_EQ(alone["storage"].size(), 1);
  EXPECT_TRUE(report["interrupted"].get<bool>());
  EXPECT_EQ(alone["decode"]["images_per_second"], 500);
  EXPECT_DOUBLE_EQ(alone["decode"]["reached"], 0.8);
  EXPECT_EQ(alone["copy"]["device"], "cuda:0");
  EXPECT_DOUBLE_EQ(alone["copy"]["reached"], 0.002);
  EXPECT_EQ(report["batch_bytes"], 64 * 150'528);
  EXPECT_THAT(report["first_change"], HasSubstr("Pack the images"));
  EXPECT_EQ(report["run"]["images"], 1200);
}

TEST(CeilingsReport, SaysThatNothingIsToBeChanged) {
  Ceilings ceilings = MadeUp();
  ceilings.run.loader.consumer_ns = ceilings.run.loader.wait_ns * 100;
  EXPECT_THAT(CeilingsText(ceilings), HasSubstr("The consumer is the limit"));
  EXPECT_THAT(CeilingsText(ceilings), Not(HasSubstr("To change first")));
  EXPECT_EQ(json::parse(CeilingsJson(ceilings))["first_change"], nullptr);
}

}  // namespace
}  // namespace stoker
