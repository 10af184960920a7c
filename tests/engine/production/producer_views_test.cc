// Loaders that make several views of each image.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/production/producer.h"
#include "engine/production/producer_parts.h"
#include "io/memory/arrays.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::ExecutorsUnderTest;
using testing::PhotoFolder;
using testing::RuntimeUnderTest;
using testing::TakeEpoch;

class ProducerViews : public ::testing::Test {
 protected:
  static constexpr uint32_t kBatch = 8;

  LoaderOptions Options(const RuntimeOptions& runtime = RuntimeUnderTest(3)) {
    LoaderOptions options;
    options.source = photos_.Source();
    options.views = {{RandomResizedCrop{.height = 24, .width = 20}, RandomHorizontalFlip{}},
                     {RandomResizedCrop{.height = 12, .width = 40}},
                     {RandomResizedCrop{.height = 12, .width = 40}}};
    options.batch_size = kBatch;
    options.shuffle = true;
    options.seed = 5;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  PhotoFolder photos_{29, 3};
};

TEST_F(ProducerViews, RowsAreThoseOfEachViewsPlan) {
  for (const testing::TestedExecutor executor : ExecutorsUnderTest()) {
    RuntimeOptions runtime = RuntimeUnderTest(3);
    testing::SetExecutor(executor, runtime);
    const LoaderOptions options = Options(runtime);
    const Plan plan = *PlanOf(options, {}).value();
    MemoryBudget budget(64 << 20);
    const auto loader = Producer::Open(options).value();
    ASSERT_EQ(loader->columns().size(), 4u);
    EXPECT_EQ(loader->columns()[2].name, "image_1");
    EXPECT_EQ(loader->columns()[3].name, "image_2");
    while (const Batch batch = loader->Next().value()) {
      for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
        std::vector<uint8_t> file = testing::ReadFile(photos_.FileOf(batch.sample_ids()[row]));
        const size_t size = file.size();
        file.resize(size + kBufferPadding);
        for (uint32_t view = 0; view < 3; ++view) {
          const Plan& alone = plan.view(view);
          const auto workspace = alone.MakeWorkspace(budget);
          std::vector<uint8_t> wanted(alone.row_bytes());
          StageTimes times;
          ASSERT_TRUE(alone
                          .Apply(std::span(file).first(size),
                                 {options.seed, 0, batch.position() + row, view}, *workspace,
                                 wanted.data(), times)
                          .ok());
          const Column& column = batch.columns()[view == 0 ? 0 : 1 + view];
          const auto* const made = static_cast<const uint8_t*>(column.data);
          ASSERT_EQ(std::memcmp(made + row * wanted.size(), wanted.data(), wanted.size()), 0)
              << "view " << view << " of row " << row;
        }
      }
    }
  }
}

TEST_F(ProducerViews, DoNotDependOnThreadsDepthOrMemory) {
  LoaderOptions options = Options(RuntimeUnderTest(1));
  const std::vector<uint64_t> wanted = TakeEpoch(*Producer::Open(options).value());
  for (int threads = 2; threads <= 4; ++threads) {
    RuntimeOptions runtime = RuntimeUnderTest(threads);
    runtime.memory_budget = 48 << 20;
    options.runtime = Runtime::Create(runtime).value();
    options.depth = threads;
    EXPECT_EQ(TakeEpoch(*Producer::Open(options).value()), wanted);
  }
}

TEST_F(ProducerViews, ImagesAloneHaveNoLabels) {
  const std::vector<uint8_t> pixels(3 * 30 * 40 * 3, 7);
  LoaderOptions options = Options();
  ArrayColumn column;
  column.name = "x";
  column.data = pixels.data();
  column.samples = 3;
  column.row_stride = 30 * 40 * 3;
  column.row_shape = {30, 40, 3};
  options.source = Arrays({column}, nullptr).value();
  const auto loader = Producer::Open(options).value();
  std::vector<std::string> names;
  for (const ColumnSpec& made : loader->columns()) names.push_back(made.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "x_1", "x_2"}));
  const Batch batch = loader->Next().value();
  EXPECT_EQ(batch.columns()[2].as<uint8_t>()[5], 7);
}

TEST_F(ProducerViews, RefusesWhatViewsCannotHave) {
  const auto refusal = [&](auto change) {
    LoaderOptions options = Options();
    change(options);
    const auto loader = Producer::Open(options);
    return loader.ok() ? "accepted" : loader.error().ToString();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) { o.transforms = {CenterCrop{4, 4}}; }), "both"));
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) {
                    o.views[1].emplace_back(PadTo{99, 99});
                  }),
                  "views[1]: PadTo"));
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) { o.mix = BatchMix{.choices = {MixUp{}}}; }),
                  "MixUp cannot be used with several views"));
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) { o.views.resize(65, o.views[0]); }), "65 views"));
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) { o.views.resize(1); }), "there is one view"));
  EXPECT_TRUE(has(refusal([](LoaderOptions& o) { o.views[0].resize(256, RandomVerticalFlip{}); }),
                  "258 transforms"));
}

}  // namespace
}  // namespace stoker
