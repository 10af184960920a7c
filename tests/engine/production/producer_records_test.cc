// Samples whose byte ranges are records become the same batches as samples in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/production/producer.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::SmallBatches;
using ::stoker::testing::TakeEpoch;
using ::testing::HasSubstr;

class ProducerRecords : public ::testing::Test {
 protected:
  static constexpr int kPhotos = 37;

  // The photographs' records, in the folder's order.
  std::vector<std::string> Records() const {
    std::vector<std::string> records;
    const auto source = photos_.Source();
    std::string path;
    for (uint64_t id = 0; id < source->size(); ++id) {
      source->PathOf(source->RangeOf(id).file, path);
      records.push_back(testing::ImageRecord(testing::BytesOfFile(path), source->LabelOf(id)));
    }
    return records;
  }

  // Writes the records into three files.
  std::shared_ptr<const SampleSource> SourceOf(const std::vector<std::string>& records) const {
    std::vector<std::string> shards(3);
    for (size_t i = 0; i < records.size(); ++i) shards[i * 3 / records.size()] += records[i];
    for (size_t i = 0; i < 3; ++i) folder_.Write("train-" + std::to_string(i), shards[i]);
    return TfRecord(folder_.path() + "/train-?").value();
  }

  const PhotoFolder photos_{kPhotos, 3};
  const testing::TempFolder folder_;
};

TEST_F(ProducerRecords, GiveTheSameBatchesAsFiles) {
  const auto wanted = TakeEpoch(*Producer::Open(SmallBatches(photos_.Source())).value());
  const auto records = SourceOf(Records());
  EXPECT_EQ(TakeEpoch(*Producer::Open(SmallBatches(records)).value()), wanted);
  LoaderOptions mixed = SmallBatches(photos_.Source()), ours = SmallBatches(records);
  mixed.mix = ours.mix = BatchMix{.choices = {MixUp{}}, .num_classes = 3};
  EXPECT_EQ(TakeEpoch(*Producer::Open(std::move(ours)).value()),
            TakeEpoch(*Producer::Open(std::move(mixed)).value()));
}

// A budget for few samples: records whose images find no memory are read and unpacked again.
TEST_F(ProducerRecords, MemoryMayBeShort) {
  LoaderOptions options = SmallBatches(SourceOf(Records()));
  const auto wanted = TakeEpoch(*Producer::Open(options).value());
  RuntimeOptions small = RuntimeUnderTest(2);
  small.memory_budget = 6 << 20;
  options.runtime = Runtime::Create(small).value();
  options.depth = 1;
  EXPECT_EQ(TakeEpoch(*Producer::Open(std::move(options)).value()), wanted);
}

// Strings of records outlive the buffers that records are read into, and the loader.
TEST_F(ProducerRecords, StringsAreTheBatchesOwn) {
  const auto photos = photos_.Source();
  const auto text_of = [](uint64_t id) {
    return id % 5 == 0 ? std::string() : std::string(id * 37, 'x') + std::to_string(id);
  };
  std::vector<std::string> records;
  std::string path;
  for (uint64_t id = 0; id < photos->size(); ++id) {
    photos->PathOf(photos->RangeOf(id).file, path);
    records.push_back(testing::TfRecordOf(
        testing::ExampleOf(testing::BytesFeature("image/encoded", {testing::BytesOfFile(path)}) +
                           testing::IntegerFeature("image/class/label", {photos->LabelOf(id)}) +
                           testing::BytesFeature("text", {text_of(id)}))));
  }
  records[3][40] ^= 1;  // its batch is an error
  (void)SourceOf(records);
  LoaderOptions options =
      SmallBatches(TfRecord(folder_.path() + "/train-?", {.columns = {"text"}}).value());
  options.drop_remainder = true;
  std::vector<Batch> kept;
  std::vector<std::shared_ptr<void>> owners;
  std::vector<std::pair<std::span<const std::string_view>, std::vector<uint64_t>>> columns;
  const auto check = [&](std::span<const std::string_view> texts, std::span<const uint64_t> ids) {
    ASSERT_EQ(texts.size(), ids.size());
    for (size_t row = 0; row < ids.size(); ++row) EXPECT_EQ(texts[row], text_of(ids[row]));
  };
  {
    auto loader = Producer::Open(options).value();
    int failed = 0;
    for (int i = 0; i < 40; ++i) {  // several epochs: slots are used again
      Result<Batch> batch = loader->Next();
      if (!batch.ok() || !*batch) {
        failed += batch.ok() ? 0 : 1;
        continue;
      }
      const auto texts = batch->columns()[2].as<std::string_view>();
      check(texts, batch->sample_ids());
      if (i % 6 == 0) {
        owners.push_back(batch->Owner(2));
        columns.emplace_back(
            texts, std::vector<uint64_t>(batch->sample_ids().begin(), batch->sample_ids().end()));
      } else if (i % 6 == 1) {
        kept.push_back(std::move(*batch));
      }
    }
    EXPECT_GT(failed, 0);
  }
  for (const auto& [texts, ids] : columns) check(texts, ids);
  for (const Batch& batch : kept) {
    check(batch.columns()[2].as<std::string_view>(), batch.sample_ids());
  }
}

TEST_F(ProducerRecords, DamageIsTheErrorOfItsBatch) {
  std::vector<std::string> records = Records();
  records[5][40] ^= 1;  // its checksum
  records[20] = testing::ImageRecord("no photograph", 1);
  LoaderOptions options = SmallBatches(SourceOf(records));
  options.shuffle = false;
  const auto& source = *options.source;
  const uint64_t fifth = source.RangeOf(5).offset, twentieth = source.RangeOf(20).offset;
  auto loader = Producer::Open(options).value();
  const Result<Batch> first = loader->Next();
  ASSERT_FALSE(first.ok());
  EXPECT_THAT(first.error().cause, HasSubstr("checksum of the record's data"));
  EXPECT_EQ(first.error().file, folder_.path() + "/train-0");
  EXPECT_EQ(first.error().offset, fifth);
  EXPECT_EQ(loader->Next().value().rows(), 8);
  const Result<Batch> third = loader->Next();
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().file, folder_.path() + "/train-1");
  EXPECT_EQ(third.error().offset, twentieth + records[20].find("no photograph"))
      << "the image's place, not the record's";
  EXPECT_EQ(loader->Next().value().rows(), 8);
}

}  // namespace
}  // namespace stoker
