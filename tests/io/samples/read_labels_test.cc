// Labels in records, which threads read together, against a plain loop.
#include "io/samples/read_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/read_sample.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using Source = std::shared_ptr<const SampleSource>;

constexpr uint64_t kSamples = 1500;

// Records of several sizes in three files; the label is the number after a column.
class ReadLabelsTest : public ::testing::Test {
 protected:
  ReadLabelsTest() {
    for (uint64_t id = 0; id < kSamples; ++id) {
      const auto number = static_cast<int64_t>(id);
      files_.at(id * files_.size() / kSamples) += testing::TfRecordOf(
          testing::ExampleOf(testing::BytesFeature("image", {std::string(id % 900, 'x')}) +
                             testing::FloatFeature("box", {1, 2}) +
                             testing::IntegerFeature("label", {number * number - 7})));
    }
  }

  Source Open() {
    for (size_t i = 0; i < files_.size(); ++i) {
      folder_.Write(std::to_string(i) + ".tfrecord", files_[i]);
    }
    const TfRecordOptions options{.image = "image", .label = "label", .columns = {"box"}};
    return TfRecord(folder_.path() + "/*.tfrecord", options).value();
  }

  testing::TempFolder folder_;
  std::vector<std::string> files_ = std::vector<std::string>(3);
};

std::vector<uint64_t> RandomIds(size_t count) {
  RandomStream random({1, 2, 3}, 0);
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random.Below(kSamples);
  return ids;
}

// The plain twin of ReadLabels; the label precedes the further columns.
std::vector<int64_t> LabelsOneByOne(const SampleSource& source, const std::vector<uint64_t>& ids) {
  std::vector<int64_t> labels;
  MemoryBudget budget(1 << 20);
  std::vector<uint8_t> rows(LoadedBytes(source.fields()));
  for (const uint64_t id : ids) {
    const ReadRequest read = testing::ReadSample(source, id, budget);
    source.Unpack(id, {read.buffer.data(), read.size}, rows).value();
    std::memcpy(&labels.emplace_back(), rows.data(), sizeof(int64_t));
  }
  return labels;
}

Status Read(const SampleSource& source, const std::vector<uint64_t>& ids,
            std::vector<int64_t>& labels, const Interrupt& interrupt = {}) {
  labels.assign(ids.size(), -1);
  return ReadLabels(source, ids, reinterpret_cast<uint8_t*>(labels.data()), interrupt);
}

TEST_F(ReadLabelsTest, LabelsAreThoseOfTheRecords) {
  const Source source = Open();
  std::vector<int64_t> labels;
  for (const size_t count : {0, 1, 63, 64, 65, 4000}) {
    const std::vector<uint64_t> ids = RandomIds(count);
    ASSERT_TRUE(Read(*source, ids, labels).ok());
    EXPECT_EQ(labels, LabelsOneByOne(*source, ids));
  }
}

TEST_F(ReadLabelsTest, ABadRecordIsNamed) {
  files_[1][files_[1].size() - 6] ^= 1;  // of the record before 1000
  const Source source = Open();
  std::vector<uint64_t> ids = RandomIds(4000);
  for (uint64_t& id : ids) id = id == 999 ? 998 : id;
  std::vector<int64_t> labels;
  EXPECT_TRUE(Read(*source, ids, labels).ok());
  ids[2345] = 999;
  const Error error = Read(*source, ids, labels).error();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_THAT(error.cause, HasSubstr("checksum of the record's data"));
  EXPECT_EQ(error.file, folder_.path() + "/1.tfrecord");
  EXPECT_EQ(error.offset, source->RangeOf(999).offset);
}

// The calling thread asks first after its first record, and reads at least one of 20,000.
TEST_F(ReadLabelsTest, AnInterruptEndsTheReads) {
  const Source source = Open();
  const std::vector<uint64_t> ids = RandomIds(20000);
  std::vector<int64_t> labels;
  int asked = 0;
  const Status status = Read(*source, ids, labels, [&asked] { return ++asked == 1; });
  EXPECT_EQ(status.error().code, Code::kCancelled);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(labels.back(), -1);
  EXPECT_TRUE(Read(*source, ids, labels, [] { return false; }).ok());
}

}  // namespace
}  // namespace stoker
