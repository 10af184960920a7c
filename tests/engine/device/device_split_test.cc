// A loader that splits its batches among devices (here the same one, several times) has the bytes,
// epochs and states of a loader without a device.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/batch_bytes.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::BytesOf;
using ::stoker::testing::ColumnBytes;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::PhotoFolder;

class DeviceSplitTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  LoaderOptions Options() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16},
                          RandomHorizontalFlip{.p = 0.5}};
    options.batch_size = 8;
    options.shuffle = true;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
    return options;
  }

  std::shared_ptr<Loader> Open(LoaderOptions options, size_t devices) const {
    options.to_device = {.devices = std::vector(devices, device_), .buffers = 3};
    return Loader::Open(std::move(options)).value();
  }

  static Error Refused(LoaderOptions options) {
    const auto opened = Loader::Open(std::move(options));
    return opened.ok() ? Error() : opened.error();
  }

  // The columns of all parts, one after the other.
  ColumnBytes Of(const SplitBatch& batch) const {
    ColumnBytes bytes;
    for (const DeviceBatch& part : batch.parts) {
      const ColumnBytes more = BytesOf(part, *device_);
      bytes.resize(more.size());
      for (size_t c = 0; c < more.size(); ++c) {
        bytes[c].insert(bytes[c].end(), more[c].begin(), more[c].end());
      }
    }
    return bytes;
  }

  std::vector<ColumnBytes> Rest(Iterator& iterator) const {
    std::vector<ColumnBytes> all;
    while (const SplitBatch batch = iterator.NextOnDevices().value()) all.push_back(Of(batch));
    return all;
  }

  // The batches of the plain loader.
  static std::vector<ColumnBytes> Epoch(const LoaderOptions& options, uint64_t epoch) {
    auto iterator = Loader::Open(options).value()->Iterate(epoch);
    std::vector<ColumnBytes> all;
    while (const Batch batch = iterator->Next().value()) all.push_back(BytesOf(batch));
    return all;
  }

  PhotoFolder photos_{41, 3};  // so that the last batch has one row
  const std::shared_ptr<Device> device_ = GetParam().MakeDelayed();  // once or several times
};
INSTANTIATE_TEST_SUITE_P(, DeviceSplitTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceSplitTest, ThePartsAreTheHostLoadersBatches) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32}) {
    for (const int mixed : {0, 1, 2}) {
      LoaderOptions options = Options();
      options.dtype = dtype;
      if (dtype == DType::kF32) options.layout = Layout::kNchw;
      if (dtype == DType::kF16) options.transforms.emplace_back(RandomErasing{.p = 0.5});
      if (mixed == 1) options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
      if (mixed == 2) options.mix = BatchMix{.choices = {CutMix{.alpha = 1}}, .num_classes = 3};
      const std::vector<ColumnBytes> wanted = Epoch(options, 0);
      for (const size_t devices : {2, 4}) {
        auto loader = Open(options, devices);
        EXPECT_EQ(Rest(*loader->Iterate()), wanted)
            << NameOf(dtype) << " on " << devices << ", mixed " << mixed;
        EXPECT_EQ(loader->columns()[0].dtype, dtype);
      }
    }
  }
}

TEST_P(DeviceSplitTest, OperationsAreDeferredAlsoIfRowsAreMixed) {
  for (const bool mixed : {false, true}) {
    LoaderOptions options = Options();
    options.transforms = {RandomResizedCrop{.height = 64, .width = 64}};
    options.dtype = DType::kF32;
    if (mixed) options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
    auto loader = Open(options, 2);
    auto iterator = loader->Iterate();
    while (iterator->NextOnDevices().value()) {
    }
    const DeviceCopyStats stats = loader->CopyStats();
    const uint64_t rows = options.batch_size + (mixed ? 2 : 0);  // one more for each device
    EXPECT_LT(stats.copied_bytes, stats.batches * rows * (64 * 64 * 3 + 500));
  }
}

TEST_P(DeviceSplitTest, StatesAreTheSameAndResume) {
  auto plain = Loader::Open(Options()).value()->Iterate(2);
  auto loader = Open(Options(), 2);
  auto iterator = loader->Iterate(2);
  for (int i = 0; i < 3; ++i) {
    const Batch wanted = plain->Next().value();
    const SplitBatch batch = iterator->NextOnDevices().value();
    EXPECT_EQ(batch.name(), wanted.name());
    EXPECT_EQ(iterator->state(), plain->state());
    EXPECT_EQ(iterator->passed(), plain->passed());
  }
  auto other = Open(Options(), 4)->Iterate();
  ASSERT_TRUE(other->Restore(iterator->state()).ok());
  const std::vector<ColumnBytes> wanted = Epoch(Options(), 2);
  EXPECT_EQ(Rest(*other), std::vector<ColumnBytes>(wanted.begin() + 3, wanted.end()));
}

TEST_P(DeviceSplitTest, ABadSampleFailsItsWholeBatch) {
  LoaderOptions options = Options();
  options.shuffle = false;
  photos_.Overwrite(14, "no photograph");
  auto loader = Open(options, 2);
  auto iterator = loader->Iterate();
  for (uint64_t n = 0; n < 6; ++n) {
    EXPECT_EQ(iterator->NextOnDevices().ok(), n != 1) << n;
    EXPECT_EQ(iterator->position()->index, n + 1);
  }
  EXPECT_FALSE(iterator->NextOnDevices().value());
}

TEST_P(DeviceSplitTest, ABatchThatLosesAllItsRowsIsLeftOut) {
  LoaderOptions options = Options();
  options.shuffle = false;
  options.on_bad = BadPolicy::Parse("drop").value();
  options.max_bad_fraction = 1;
  for (size_t i = 8; i < 16; ++i) photos_.Overwrite(i, "no photograph");
  photos_.Overwrite(17, "no photograph");
  auto loader = Open(options, 2);
  EXPECT_EQ(Rest(*loader->Iterate()), Epoch(options, 0));
  EXPECT_EQ(Epoch(options, 0).size(), 5U);
}

// Compares the loader without a device with loaders that have one device and several.
TEST_P(DeviceSplitTest, RowsAreMixedWithTheLastOneThatIsLeft) {
  LoaderOptions options = Options();
  options.shuffle = false;
  options.dtype = DType::kF32;
  options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
  options.on_bad = BadPolicy::Parse("drop").value();
  options.max_bad_fraction = 1;
  // The last row of the first batch, the first and the last of the second, and all but two, three
  // and one of the three batches after it.
  for (const size_t i :
       {7, 8, 15, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 31, 32, 33, 34, 35, 36, 38, 39}) {
    photos_.Overwrite(i, "no photograph");
  }
  const std::vector<ColumnBytes> wanted = Epoch(options, 0);
  for (const size_t devices : {1, 2, 4}) {
    EXPECT_EQ(Rest(*Open(options, devices)->Iterate()), wanted) << devices;
  }
}

TEST_P(DeviceSplitTest, AMixedLastBatchMayHaveFewerRowsThanDevices) {
  for (const int last : {2, 3}) {
    const PhotoFolder photos(16 + last, 3);
    LoaderOptions options = Options();
    options.source = photos.Source();
    options.dtype = DType::kF32;
    options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
    const std::vector<ColumnBytes> wanted = Epoch(options, 0);
    ASSERT_EQ(wanted.size(), 3U);
    for (const size_t devices : {1, 4}) {
      EXPECT_EQ(Rest(*Open(options, devices)->Iterate()), wanted) << devices << ", " << last;
    }
  }
}

TEST_P(DeviceSplitTest, StopEndsItAndPartsStayValid) {
  auto loader = Open(Options(), 2);
  auto iterator = loader->Iterate();
  const SplitBatch batch = iterator->NextOnDevices().value();
  const ColumnBytes bytes = Of(batch);
  loader->Stop();
  EXPECT_EQ(iterator->NextOnDevices().error().code, Code::kCancelled);
  iterator.reset();
  EXPECT_EQ(loader->Stats().pinned_bytes, 0U);
  loader.reset();
  EXPECT_EQ(Of(batch), bytes);
  EXPECT_EQ(bytes, Epoch(Options(), 0)[0]);
}

TEST_P(DeviceSplitTest, RefusesWhatCannotBeSplit) {
  LoaderOptions options = Options();
  options.to_device = {.devices = std::vector(3, device_)};
  const Error unequal = Refused(options);
  EXPECT_EQ(unequal.code, Code::kInvalidArgument);
  EXPECT_EQ(unequal.cause, "a batch of 8 rows cannot be split among 3 devices in equal parts");
  EXPECT_EQ(unequal.advice, "Give a multiple of 3");
  options.to_device = {.devices = {device_, nullptr}};
  EXPECT_EQ(Refused(options).cause, "device is null");
  if (device_->name().kind == DeviceName::Kind::kCuda) {
    options.to_device = {.devices = {device_, Device::Open({}).value()}};
    EXPECT_EQ(Refused(options).cause, "batches cannot be split among cuda:0 and host");
  }
}

TEST_P(DeviceSplitTest, ErrorsAdviseTheFunctionThatWorks) {
  const auto loader = Open(Options(), 2);
  const auto iterator = loader->Iterate();
  const Error one = iterator->NextOnDevice().error();
  EXPECT_EQ(one.code, Code::kFailedPrecondition);
  EXPECT_EQ(one.cause, "this loader splits its batches among 2 devices");
  EXPECT_EQ(one.advice, "Take them by NextOnDevices");
  EXPECT_EQ(iterator->Next().error().advice,
            "Take them by NextOnDevices, or open a loader without to_device");
  EXPECT_EQ(loader->BatchAt({0, 0}).error().advice, "Iterate, and take them by NextOnDevices");
  EXPECT_EQ(Open(Options(), 1)->Iterate()->Next().error().advice,
            "Take them by NextOnDevice, or open a loader without to_device");
}

}  // namespace
}  // namespace stoker
