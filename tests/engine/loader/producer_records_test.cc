// Samples whose byte ranges are records become the same batches as those of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/producer.h"
#include "io/sources/tfrecord.h"
#include "tests/testing/batches.h"
#include "tests/testing/executors.h"
#include "tests/testing/make_tar.h"
#include "tests/testing/make_tfrecord.h"
#include "tests/testing/photo_folder.h"
#include "tests/testing/temp_folder.h"

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
