// A consumer may hold as many batches as allowed, for as long as it likes.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/production/producer.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker {
namespace {

LoaderOptions Options(const testing::PhotoFolder& photos) {
  LoaderOptions options;
  options.source = photos.Source();
  options.transforms = {Resize{.height = 40, .width = 40}};
  options.batch_size = 4;
  options.shuffle = true;
  options.depth = 2;
  options.runtime = Runtime::Create({.threads = 2}).value();
  return options;
}

struct HeldLabels {
  std::vector<uint64_t> ids;
  const int64_t* labels;
  std::shared_ptr<void> owner;
};

TEST(ProducerLent, AllLabelsOfAnEpochAreHeldUnderASmallBudget) {
  const testing::PhotoFolder photos(61, 4);
  LoaderOptions options = Options(photos);
  options.lent_batches = 1;
  const auto source = options.source;
  auto loader = Producer::Open(options).value();
  std::vector<HeldLabels> held;
  while (Batch batch = loader->Next().value()) {
    held.push_back({{batch.sample_ids().begin(), batch.sample_ids().end()},
                    batch.labels().as<int64_t>().data(),
                    batch.Owner(1)});
  }
  ASSERT_EQ(held.size(), loader->batches_per_epoch());
  EXPECT_EQ(loader->Stats().lent_batches, 0);
  EXPECT_EQ(loader->Stats().lent_bytes, 0u);
  loader.reset();
  options.runtime.reset();
  for (const HeldLabels& batch : held) {
    for (size_t row = 0; row < batch.ids.size(); ++row) {
      EXPECT_EQ(batch.labels[row], source->LabelOf(batch.ids[row]));
    }
  }
}

TEST(ProducerLent, AnOwnedImageCountsAsLent) {
  const testing::PhotoFolder photos(12, 2);
  LoaderOptions options = Options(photos);
  options.lent_batches = 1;
  auto loader = Producer::Open(options).value();
  std::shared_ptr<void> image = loader->Next().value().Owner(0);
  EXPECT_EQ(loader->Stats().lent_bytes, loader->Stats().slot_bytes);
  const Result<Batch> refused = loader->Next();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  image.reset();
  EXPECT_TRUE(loader->Next().ok());
}

TEST(ProducerLent, WithoutALimitAWholeEpochIsHeldAndOutlivesTheLoader) {
  const testing::PhotoFolder photos(61, 4);
  LoaderOptions options = Options(photos);
  options.lent_batches = 0;
  options.epochs = 1;  // so that nothing more is made
  auto loader = Producer::Open(options).value();
  std::vector<Batch> held;
  while (Batch batch = loader->Next().value()) held.push_back(std::move(batch));
  EXPECT_EQ(held.size(), 16u);
  EXPECT_EQ(loader->Stats().lent_batches, 16);
  EXPECT_EQ(loader->Stats().lent_bytes, 16 * loader->Stats().slot_bytes);
  const uint64_t working = options.runtime->budget().used();
  held.pop_back();
  EXPECT_EQ(options.runtime->budget().used(), working) << "lent memory is not working";
  std::vector<int> last;
  for (const Batch& batch : held) last.push_back(batch.images().as<uint8_t>().back());
  loader.reset();
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(held[i].images().as<uint8_t>().back(), last[i]);
  }
}

}  // namespace
}  // namespace stoker
