// A loader with a device delivers the bytes of a loader without one, on every tested device, and
// ends cleanly.

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "io/memory/arrays.h"
#include "io/ranges/path_source.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batch_bytes.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::BytesOf;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::PhotoFolder;

class DeviceLoaderTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  LoaderOptions Options() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16},
                          RandomHorizontalFlip{.p = 0.5}, Normalize{.mean = {0.5F, 0.4F, 0.3F}}};
    options.dtype = DType::kF16;
    options.layout = Layout::kNchw;
    options.batch_size = 7;
    options.shuffle = true;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
    return options;
  }

  std::shared_ptr<Loader> Open(LoaderOptions options, int buffers = 4) {
    options.to_device = {.devices = {device_}, .buffers = buffers};
    return Loader::Open(std::move(options)).value();
  }

  PhotoFolder photos_{41, 3};
  const std::shared_ptr<Device> device_ = GetParam().MakeDelayed();
};
INSTANTIATE_TEST_SUITE_P(, DeviceLoaderTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceLoaderTest, DeliversTheHostLoadersBatches) {
  auto plain = Loader::Open(Options()).value();
  auto loader = Open(Options());
  EXPECT_EQ(loader->batches_per_epoch(), 6u);
  EXPECT_EQ(loader->columns()[0].row_shape, (std::vector<int64_t>{3, 16, 16}));
  EXPECT_EQ(loader->columns().size(), 2u) << "the work that was left is nobody's";
  for (int epoch = 0; epoch < 3; ++epoch) {
    auto wanted = plain->Iterate(), got = loader->Iterate();
    for (int i = 0; i < 6; ++i) {
      const Batch expected = wanted->Next().value();
      const DeviceBatch batch = got->NextOnDevice().value();
      ASSERT_TRUE(batch) << i;
      EXPECT_EQ(batch.name(), expected.name());
      EXPECT_EQ(batch.images().shape, expected.images().shape);
      EXPECT_EQ(BytesOf(batch, *device_), BytesOf(expected)) << i;
    }
    EXPECT_FALSE(got->NextOnDevice().value()) << "an epoch's end";
  }
  EXPECT_GE(loader->CopyStats().batches, 18u);
  EXPECT_GT(loader->Stats().pinned_bytes, 0u);
}

// The host finishes both of two images.
TEST_P(DeviceLoaderTest, DeliversPairsAsOnTheHost) {
  const testing::PhotoPairs pairs(20, 2);
  LoaderOptions options = Options();
  options.source = pairs.Source();
  auto plain = Loader::Open(options).value();
  auto loader = Open(options);
  EXPECT_EQ(loader->columns().size(), 3u);
  auto wanted = plain->Iterate(), got = loader->Iterate();
  while (const Batch expected = wanted->Next().value()) {
    const DeviceBatch batch = got->NextOnDevice().value();
    ASSERT_TRUE(batch);
    EXPECT_EQ(BytesOf(batch, *device_), BytesOf(expected));
  }
}

// The device finishes the image, and not its mask.
TEST_P(DeviceLoaderTest, DeliversMasksAsOnTheHost) {
  const testing::TempFolder folder;
  FilesOptions files;
  PathTable paths, masks;
  for (uint64_t id = 0; id < 20; ++id) {
    const std::string mask = folder.Path(std::to_string(id) + ".png");
    const std::vector<uint8_t> photo = testing::MakeJpeg({.width = 40, .height = 30, .seed = id});
    const std::vector<uint8_t> png =
        testing::MakePng({.width = 40, .height = 30, .color = 3, .seed = id});
    photos_.Overwrite(id, {photo.begin(), photo.end()});
    std::ofstream(mask, std::ios::binary) << std::string(png.begin(), png.end());
    paths.Add(photos_.FileOf(id));
    masks.Add(mask);
  }
  files.further.push_back({.name = "mask", .fill = 255, .paths = std::move(masks)});
  LoaderOptions options = Options();
  options.source = Files(std::move(paths), std::move(files)).value();
  auto plain = Loader::Open(options).value();
  auto loader = Open(options);
  EXPECT_EQ(loader->columns().size(), 2u);
  auto wanted = plain->Iterate(), got = loader->Iterate();
  while (const Batch expected = wanted->Next().value()) {
    const DeviceBatch batch = got->NextOnDevice().value();
    ASSERT_TRUE(batch);
    EXPECT_EQ(BytesOf(batch, *device_), BytesOf(expected));
  }
}

TEST_P(DeviceLoaderTest, ColumnsShareOneSlab) {
  auto loader = Open(Options());
  const DeviceBatch batch = loader->Iterate()->NextOnDevice().value();
  // Images and labels lie on pages of their own, and so do the deferred operations.
  EXPECT_EQ(loader->CopyStats().copied_bytes % loader->CopyStats().batches, 0u);
  EXPECT_EQ(loader->Stats().slot_bytes % 4096, 0u) << "no column has memory elsewhere";
}

TEST_P(DeviceLoaderTest, SeekDropsPrefetchedBatches) {
  auto plain = Loader::Open(Options()).value()->Iterate();
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  for (const auto& at : {BatchName{0, 0}, {3, 2}, {1, 5}, {1, 5}, {1, 0, 14}, {1, 2, 14}}) {
    plain->Seek(at).value();
    iterator->Seek(at).value();
    for (int i = 0; i < 2; ++i) {
      const Batch expected = plain->Next().value();
      const DeviceBatch batch = iterator->NextOnDevice().value();
      ASSERT_EQ(static_cast<bool>(batch), static_cast<bool>(expected));
      if (batch) {
        EXPECT_EQ(batch.name(), expected.name());
        EXPECT_EQ(BytesOf(batch, *device_), BytesOf(expected));
      }
    }
  }
  EXPECT_EQ(iterator->Seek({0, 7}).error().code, Code::kInvalidArgument);
  EXPECT_TRUE(iterator->Seek({0, 0}).ok());
}

TEST_P(DeviceLoaderTest, ARefusedSeekDropsNothing) {
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  EXPECT_EQ(iterator->NextOnDevice().value().index(), 0u);
  EXPECT_EQ(iterator->Seek({0, 99'999}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(iterator->NextOnDevice().value().index(), 1u);
}

TEST_P(DeviceLoaderTest, BatchesOutliveTheLoader) {
  auto loader = Open(Options());
  DeviceBatch batch = loader->Iterate()->NextOnDevice().value();
  const auto bytes = BytesOf(batch, *device_);
  loader.reset();
  EXPECT_EQ(BytesOf(batch, *device_), bytes);
}

TEST_P(DeviceLoaderTest, StopWakesABlockedNext) {
  for (int round = 0; round < 5; ++round) {
    auto loader = Open(Options(), /*buffers=*/2);
    auto iterator = loader->Iterate();
    std::thread stopper([&] { loader->Stop(); });
    while (true) {
      const Result<DeviceBatch> batch = iterator->NextOnDevice();
      if (batch.ok() && !*batch) iterator = loader->Iterate();
      if (batch.ok()) continue;
      EXPECT_EQ(batch.error().code, Code::kCancelled);
      break;
    }
    stopper.join();
  }
}

TEST_P(DeviceLoaderTest, ABadSampleIsAnErrorAndTheNextBatchFollows) {
  photos_.Overwrite(0, "no photograph");
  LoaderOptions options = Options();
  options.shuffle = false;
  auto loader = Open(options);
  auto iterator = loader->Iterate();
  const Result<DeviceBatch> first = iterator->NextOnDevice();
  ASSERT_FALSE(first.ok());
  EXPECT_FALSE(first.error().file.empty());
  EXPECT_EQ(iterator->NextOnDevice().value().index(), 1u);
}

TEST_P(DeviceLoaderTest, DeliversArraysUnchanged) {
  std::vector<float> values(40);
  std::iota(values.begin(), values.end(), 0.0F);
  LoaderOptions options;
  options.source = Arrays({{.name = "x",
                            .dtype = DType::kF32,
                            .row_shape = {4},
                            .data = values.data(),
                            .samples = 10}},
                          nullptr)
                       .value();
  options.batch_size = 4;
  options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
  auto plain = Loader::Open(options).value();
  auto loader = Open(options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto wanted = plain->Iterate(), got = loader->Iterate();
    for (int i = 0; i < 4; ++i) {
      const Batch expected = wanted->Next().value();
      const DeviceBatch batch = got->NextOnDevice().value();
      ASSERT_EQ(static_cast<bool>(batch), static_cast<bool>(expected));
      if (batch) {
        EXPECT_EQ(BytesOf(batch, *device_), BytesOf(expected)) << i;
      }
    }
  }
}

TEST_P(DeviceLoaderTest, RefusesBadOptions) {
  LoaderOptions options = Options();
  options.to_device.emplace();
  const auto none = Loader::Open(options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  EXPECT_EQ(none.error().cause, "devices is empty");
  options.to_device = {.devices = {device_}, .buffers = 1};
  const auto one = Loader::Open(options);
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().code, Code::kInvalidArgument);
  EXPECT_NE(one.error().cause.find("buffers"), std::string::npos);
}

}  // namespace
}  // namespace stoker
