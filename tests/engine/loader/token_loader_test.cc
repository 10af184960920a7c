// Loaders whose batches are filled up to a number of tokens.
#include "engine/arrays/processor.h"
#include "engine/loader/loader.h"
#include "engine/order/token_batches.h"
#include "io/memory/arrays.h"
#include "io/select/weighted.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/listed_files.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stoker {
namespace {

using ::stoker::testing::Effort;
using ::stoker::testing::Fingerprint;
using ::stoker::testing::ListedFiles;
using ::stoker::testing::PhotoFolder;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kBudget = 100;

class TokenLoaderTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPhotos = 83;

  // Photographs with 1 to 40 tokens, which are their labels.
  std::vector<ListedFiles::Sample> Samples() const {
    std::vector<ListedFiles::Sample> samples;
    for (uint64_t id = 0; id < kPhotos; ++id) {
      samples.push_back({photos_.FileOf(id), static_cast<int64_t>(1 + id * 7 % 40)});
    }
    return samples;
  }

  LoaderOptions Options() {
    LoaderOptions options = testing::SmallBatches(std::make_shared<ListedFiles>(Samples()));
    options.batch_size = 0;
    options.batch_tokens = kBudget;
    options.tokens = "label";
    return options;
  }

  static std::string Refused(const LoaderOptions& options) {
    const auto loader = Loader::Open(options);
    return loader.ok() ? "" : loader.error().ToString();
  }

  // The fingerprints of what an iteration has left.
  static std::vector<uint64_t> Rest(Iterator& iterator, std::vector<uint64_t>* ids = nullptr) {
    std::vector<uint64_t> prints;
    while (Batch batch = iterator.Next().value()) {
      int64_t sum = 0;
      for (const int64_t tokens : batch.labels().as<int64_t>()) sum += tokens;
      EXPECT_LE(sum, kBudget);
      prints.push_back(Fingerprint(batch));
      if (ids != nullptr) {
        ids->insert(ids->end(), batch.sample_ids().begin(), batch.sample_ids().end());
      }
    }
    return prints;
  }

  PhotoFolder photos_{kPhotos, 1};
};

TEST_F(TokenLoaderTest, BytesAreTheSameForAnyThreadsAndDepth) {
  std::vector<std::vector<uint64_t>> wanted;
  for (const testing::TestedExecutor executor : testing::ExecutorsUnderTest()) {
    for (const int threads : {1, 2, 7}) {
      for (const int depth : {1, 3}) {
        RuntimeOptions runtime = testing::RuntimeUnderTest(threads);
        testing::SetExecutor(executor, runtime, 5);
        LoaderOptions options = Options();
        options.runtime = Runtime::Create(runtime).value();
        options.depth = depth;
        const auto loader = Loader::Open(options).value();
        for (size_t epoch = 0; epoch < 2; ++epoch) {
          std::vector<uint64_t> ids;
          const std::vector<uint64_t> prints = Rest(*loader->Iterate(), &ids);
          EXPECT_EQ(prints.size(), loader->batches_per_epoch());
          std::ranges::sort(ids);
          EXPECT_EQ(ids.size(), kPhotos);
          EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
          if (wanted.size() == epoch) wanted.push_back(prints);
          ASSERT_EQ(prints, wanted[epoch]) << threads << " threads, depth " << depth;
        }
      }
    }
  }
  EXPECT_NE(wanted[0], wanted[1]);
}

// A slot has room for the most rows that a batch has, not for the most that it might have.
TEST_F(TokenLoaderTest, SlotsHaveRoomForTheMostRows) {
  const auto loader = Loader::Open(Options()).value();
  const uint64_t rows = loader->options().token_batches->most_rows();
  EXPECT_LT(rows, 100u);
  uint64_t most = 0;
  testing::ForEachBatch(*loader, 1, [&](const Batch& batch) {
    most = std::max(most, static_cast<uint64_t>(batch.rows()));
  });
  EXPECT_EQ(most, rows);
  LoaderOptions options = Options();
  options.batch_size = static_cast<uint32_t>(rows);
  options.batch_tokens = 0;
  options.tokens = "";
  const auto by_rows = Loader::Open(options).value();
  testing::ForEachBatch(*by_rows, 1, [](const Batch&) {});
  EXPECT_EQ(loader->Stats().slot_bytes, by_rows->Stats().slot_bytes);
  options = Options();
  options.batch_size = 4;
  const auto few = Loader::Open(options).value();
  EXPECT_EQ(few->options().token_batches->most_rows(), 4u);
  EXPECT_GT(few->batches_per_epoch(), loader->batches_per_epoch());
}

TEST_F(TokenLoaderTest, ResumesAtEveryBatch) {
  const auto loader = Loader::Open(Options()).value();
  (void)Rest(*loader->Iterate());
  auto whole = loader->Iterate();
  std::vector<std::string> states = {whole->state()};
  std::vector<uint64_t> prints;
  while (Batch batch = whole->Next().value()) {
    prints.push_back(Fingerprint(batch));
    states.push_back(whole->state());
  }
  const std::vector<uint64_t> third = Rest(*loader->Iterate());
  for (size_t i = 0; i < states.size(); ++i) {
    const auto other = Loader::Open(Options()).value();
    auto rest = other->Iterate();
    ASSERT_TRUE(rest->Restore(states[i]).ok());
    const std::vector<uint64_t> wanted(prints.begin() + static_cast<ptrdiff_t>(i), prints.end());
    EXPECT_EQ(Rest(*rest), i == prints.size() ? third : wanted) << "batch " << i;
    if (i != prints.size()) {
      EXPECT_EQ(Rest(*other->Iterate()), third);
    }
  }
}

// Any number of ranks continues where any other has stopped: each sample comes once.
TEST_F(TokenLoaderTest, OtherWorldsContinue) {
  std::mt19937 random(9);
  const std::vector<uint32_t> worlds = {1, 2, 3, 8};
  for (int round = 0; round < Effort(24); ++round) {
    std::vector<uint64_t> ids;
    std::string state;
    for (bool ends = false; !ends;) {
      LoaderOptions options = Options();
      options.world = worlds[random() % worlds.size()];
      const int steps = 1 + static_cast<int>(random() % 3);
      std::string next;
      ends = true;
      for (options.rank = 0; options.rank < options.world; ++options.rank) {
        const auto loader = Loader::Open(options);
        if (!loader.ok()) continue;  // more ranks than batches
        auto iterator = (*loader)->Iterate();
        if (!state.empty()) {
          ASSERT_TRUE(iterator->Restore(state).ok());
        }
        for (int step = 0; step < steps; ++step) {
          Batch batch = iterator->Next().value();
          if (!batch) break;
          ids.insert(ids.end(), batch.sample_ids().begin(), batch.sample_ids().end());
        }
        if (options.rank != 0) continue;
        next = iterator->state();
        ends = iterator->position()->index == (*loader)->batches_from(iterator->position()->start);
      }
      state = next;
    }
    std::ranges::sort(ids);
    EXPECT_EQ(ids.size(), kPhotos);
    EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
  }
}

// A function of rows in C++ is told the shape of rows when the loader is opened.
TEST_F(TokenLoaderTest, RefusesToPadRowsThatAreMappedOrOfOneSize) {
  class Rows final : public MapFunction {
   public:
    std::string Describe() const override { return "of_rows"; }
  };
  LoaderOptions options;
  options.source = std::make_shared<ListedFiles>(Samples());
  options.batch_size = 4;
  options.padding = RowPadding::kLongest;
  EXPECT_THAT(Refused(options), HasSubstr("padding is \"longest\", and there is no processor, "
                                          "whose rows it pads. Leave out padding."));
  options.processor = Processor::Create({}).value();
  EXPECT_THAT(Refused(options), HasSubstr("all rows of this processor have the same size"));
  ProcessorRecipe qwen{.family = ProcessorFamily::kQwen, .sizing = Sizing::kPixels};
  qwen.min_pixels = qwen.max_pixels = 56 * 56;
  qwen.patch = {14, 14};
  qwen.merge = qwen.temporal = 2;
  options.processor = Processor::Create({.recipe = qwen}).value();
  EXPECT_EQ(Refused(options), "");
  options.map = std::make_shared<Rows>();
  EXPECT_THAT(Refused(options),
              HasSubstr("'of_rows' is called with rows, whose size with padding is that of their "
                        "batch. Let it be called with batches, or leave padding out"));
}

// A program's buckets are as valid as those that are parsed, and a function of rows is refused.
TEST_F(TokenLoaderTest, RefusesBucketsOfWrongNumbers) {
  class Rows final : public MapFunction {
   public:
    std::string Describe() const override { return "of_rows"; }
  };
  LoaderOptions options;
  options.source = std::make_shared<ListedFiles>(Samples());
  options.batch_size = 0;
  options.batch_tokens = 1000;
  ProcessorRecipe naflex{.family = ProcessorFamily::kNaFlex, .sizing = Sizing::kPatches};
  naflex.patch = {16, 16};
  naflex.padded_rows = 256;
  options.processor = Processor::Create({.recipe = naflex}).value();
  options.buckets = {.all = {{64}, {32, 0}}};
  EXPECT_EQ(Refused(options), "");
  const Buckets wrong[] = {{.all = {{0}}},
                           {.all = {{64, NAN}}},
                           {.all = {{64, -1}}},
                           {.all = {{64, 0}}},
                           {.all = {{~0u}}},
                           {.all = {{64}}, .multiple = 0},
                           {.all = std::vector<Buckets::Bucket>(Buckets::kMost + 1, {1})}};
  for (const Buckets& buckets : wrong) {
    options.buckets = buckets;
    EXPECT_THAT(Refused(options), HasSubstr("buckets is \"" + buckets.ToString() + "\""));
  }
  options.buckets = {.all = {{64}}};
  options.map = std::make_shared<Rows>();
  EXPECT_THAT(Refused(options),
              HasSubstr("'of_rows' is called with rows, whose size with buckets"));
  options.map = nullptr;
  options.processor = Processor::Create({}).value();  // one size
  const std::string no_lengths = "there are buckets, and no processor resizes images to a number";
  EXPECT_THAT(Refused(options), HasSubstr(no_lengths));
  options.batch_tokens = 0;
  EXPECT_THAT(Refused(options), HasSubstr(no_lengths)) << "not that there is no batch_size";
  options.processor = nullptr;
  options.batch_tokens = 1000;
  EXPECT_THAT(Refused(options), HasSubstr(no_lengths));
}

// Buckets pad rows of a recipe that does not. A length that is never drawn needs no room.
TEST_F(TokenLoaderTest, RowsInBucketsHaveAMask) {
  for (const ProcessorFamily family : {ProcessorFamily::kNaFlex, ProcessorFamily::kPlain}) {
    LoaderOptions options;
    options.source = std::make_shared<ListedFiles>(Samples());
    options.batch_size = 0;
    options.batch_tokens = 7;
    ProcessorRecipe recipe{.family = family, .sizing = Sizing::kPatches};
    recipe.patch = {16, 16};
    options.processor = Processor::Create({.recipe = recipe}).value();
    options.buckets = {.all = {{1}, {4, 0}}};
    const auto loader = Loader::Open(options).value();
    testing::ForEachBatch(*loader, 1, [&](const Batch& batch) {
      const Column& mask = *batch.column("pixel_attention_mask");
      EXPECT_EQ(mask.shape, (std::vector<int64_t>{batch.rows(), 1}));
      EXPECT_THAT(mask.as<int32_t>(), Each(1));
      const Column* const shapes = batch.column("spatial_shapes");
      ASSERT_EQ(shapes != nullptr, family == ProcessorFamily::kNaFlex);
      if (shapes == nullptr) return;
      EXPECT_EQ(shapes->shape, (std::vector<int64_t>{batch.rows(), 2}));
      EXPECT_THAT(shapes->as<int64_t>(), Each(1));
    });
  }
}

TEST_F(TokenLoaderTest, RefusesStatesOfOtherBatches) {
  const auto loader = Loader::Open(Options()).value();
  auto iterator = loader->Iterate();
  ASSERT_TRUE(iterator->Next().value());
  const std::string state = iterator->state();
  EXPECT_THAT(state, HasSubstr(R"("batch_tokens":"100","tokens":"label")"));
  EXPECT_THAT(state, HasSubstr(R"("token batches":")"));
  const auto refused = [&](const LoaderOptions& options) {
    const Result<BatchName> place = Loader::Open(options).value()->PlaceOf(state);
    return place.ok() ? "" : place.error().Message();
  };
  LoaderOptions other = Options();
  EXPECT_EQ(refused(other), "");
  other.batch_tokens = 90;
  EXPECT_THAT(refused(other), HasSubstr(": batch_tokens was 100 and is 90. Give this"));
  other = Options();
  other.batch_size = 5;
  EXPECT_THAT(refused(other), HasSubstr(": batch_size was 0 and is 5. "));
  other = Options();
  other.batch_size = 8;
  other.batch_tokens = 0;
  other.tokens = "";
  EXPECT_THAT(refused(other), HasSubstr("batch_tokens was 100 and is 0"));
  const std::string by_rows = Loader::Open(other).value()->StateAt({0, 1});
  EXPECT_THAT(loader->PlaceOf(by_rows).error().Message(),
              HasSubstr("batch_tokens was 0 and is 100"));

  // The same files; one has another number of tokens. ListedFiles has no fingerprint.
  std::vector<ListedFiles::Sample> samples = Samples();
  samples[5].label += 3;
  other = Options();
  other.source = std::make_shared<ListedFiles>(samples);
  EXPECT_THAT(refused(other),
              HasSubstr(": samples have other numbers of tokens: the batches' hash was "));
}

// The options of an open loader, which have its batches, may be changed for another one.
TEST_F(TokenLoaderTest, OptionsOfALoaderMakeOtherBatches) {
  LoaderOptions options = Loader::Open(Options()).value()->options();
  const uint64_t before = options.token_batches->batches(false);
  options.batch_tokens = 2 * kBudget;
  EXPECT_LT(Loader::Open(options).value()->batches_per_epoch(), before);
}

TEST_F(TokenLoaderTest, BadSamplesKeepBatchesWithinTheBudget) {
  photos_.Overwrite(3, "no photograph");
  photos_.Overwrite(40, "no photograph");
  for (const OnBad action : {OnBad::kSubstitute, OnBad::kDrop}) {
    LoaderOptions options = Options();
    options.on_bad = BadPolicy::Parse(action == OnBad::kDrop ? "drop" : "substitute").value();
    options.max_bad_fraction = 1;
    std::vector<uint64_t> ids;
    (void)Rest(*Loader::Open(options).value()->Iterate(), &ids);  // checks the sums
    EXPECT_EQ(ids.size(), action == OnBad::kDrop ? kPhotos - 2 : kPhotos);
    EXPECT_THAT(ids, Not(::testing::Contains(3)));
  }
}

// Sample 0 has 1 token, and no other has as few: the row of a substitute is dropped.
TEST_F(TokenLoaderTest, DropsABadSampleThatNoneCanReplace) {
  std::vector<ListedFiles::Sample> samples = Samples();
  for (uint64_t id = 1; id < kPhotos; ++id)
    samples[id].label = std::max<int64_t>(2, samples[id].label);
  photos_.Overwrite(0, "no photograph");
  LoaderOptions options = Options();
  options.source = std::make_shared<ListedFiles>(samples);
  options.on_bad = BadPolicy::Parse("substitute").value();
  options.max_bad_fraction = 1;
  const auto loader = Loader::Open(options).value();
  std::vector<uint64_t> ids;
  (void)Rest(*loader->Iterate(), &ids);
  std::ranges::sort(ids);
  EXPECT_EQ(ids.size(), kPhotos - 1);
  EXPECT_EQ(ids.front(), 1u);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
  EXPECT_EQ(loader->Stats().bad.dropped, 1u);
}

TEST_F(TokenLoaderTest, MemoryErrorsNameWhatLimitsRows) {
  LoaderOptions options = Options();
  RuntimeOptions runtime = testing::RuntimeUnderTest(1);
  runtime.memory_budget = 64 << 10;
  options.runtime = Runtime::Create(runtime).value();
  EXPECT_THAT(Refused(options),
              AllOf(HasSubstr("; one batch has "),
                    HasSubstr(" rows. Give batch_size, the most rows of a batch,"),
                    Not(HasSubstr("lower batch_size"))));
  runtime.memory_budget = 1 << 10;
  options.runtime = Runtime::Create(runtime).value();
  EXPECT_THAT(Refused(options), HasSubstr("planning batches of 83 samples may take 5312 bytes"));
}

TEST_F(TokenLoaderTest, ErrorsSayWhatToDo) {
  LoaderOptions options = Options();
  options.tokens = "length";
  EXPECT_EQ(Refused(options),
            "INVALID_ARGUMENT: tokens is 'length', and a list has no such column. Give one of "
            "'label'.");
  options.tokens = "image";
  EXPECT_EQ(Refused(options),
            "INVALID_ARGUMENT: tokens is 'image', which has no single integer for each sample of "
            "a list. Give a column of integers.");
  options.tokens = "";
  EXPECT_EQ(Refused(options),
            "UNIMPLEMENTED: batch_tokens is 100, and no column has the tokens of samples. Give "
            "tokens, the name of a column of integers, or a processor, whose patches count.");
  options = Options();
  options.batch_tokens = 39;
  EXPECT_EQ(Refused(options),
            "INVALID_ARGUMENT: " + photos_.FileOf(17) +
                ": sample 17 has 40 tokens in column 'label', and batch_tokens is 39 (and 1 more "
                "sample is outside 0 to batch_tokens). Leave such samples out, "
                "or set batch_tokens to 40 or more.");
  std::vector<ListedFiles::Sample> samples = Samples();
  samples[2].label = -2;
  options = Options();
  options.source = std::make_shared<ListedFiles>(samples);
  EXPECT_EQ(Refused(options), "INVALID_ARGUMENT: " + photos_.FileOf(2) +
                                  ": sample 2 has -2 tokens in column 'label', and batch_tokens "
                                  "is 100. Give numbers from 0 on.");
  options = Options();
  options.batch_size = 1;
  EXPECT_THAT(Refused(options), AllOf(HasSubstr("batch_size is 1, so that each batch would have"),
                                      HasSubstr(". Leave batch_size out, for no limit of rows,")));
  options.batch_tokens = 0;
  EXPECT_THAT(Refused(options), HasSubstr("tokens is 'label', and there is no batch_tokens"));
  options.tokens = "";
  options.batch_size = 0;
  EXPECT_THAT(Refused(options), HasSubstr("batch_size is 0, and there is no batch_tokens"));
  options = Options();
  options.to_device =
      DeviceOptions{.devices = {Device::Open({DeviceName::Kind::kHost, 0}).value()}};
  EXPECT_THAT(Refused(options), HasSubstr("UNIMPLEMENTED: batch_tokens makes batches of any"));
  options = Options();
  options.source = Repeated(options.source, 100).value();
  EXPECT_THAT(Refused(options), HasSubstr("UNIMPLEMENTED: batch_tokens needs each sample once"));
  options = Options();
  options.drop_remainder = true;
  options.batch_tokens = 100'000;
  EXPECT_THAT(Refused(options), HasSubstr("the only batch is not full"));
}

// The number of tokens may be any integer of a row in memory.
TEST(TokenArrays, AnyIntegersCount) {
  std::vector<float> values(30);
  const std::vector<int32_t> small(30, 7);
  const std::vector<uint64_t> large(30, 7);
  const std::vector<float> reals(30, 7);
  const std::vector<uint8_t> flags(30, 1);
  const auto batches = [&](DType dtype, const void* tokens) {
    LoaderOptions options;
    options.source =
        Arrays({{"value", DType::kF32, {}, values.data(), 30}, {"n", dtype, {}, tokens, 30}}, {})
            .value();
    options.batch_size = 0;
    options.batch_tokens = 70;
    options.tokens = "n";
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(1)).value();
    const auto loader = Loader::Open(options);
    return loader.ok() ? (*loader)->batches_per_epoch() : 0;
  };
  EXPECT_EQ(batches(DType::kI32, small.data()), 3u);
  EXPECT_EQ(batches(DType::kU64, large.data()), 3u);
  EXPECT_EQ(batches(DType::kF32, reals.data()), 0u);
  EXPECT_EQ(batches(DType::kBool, flags.data()), 0u);
}

}  // namespace
}  // namespace stoker
