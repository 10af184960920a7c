// Several devices decode the crops of their rows of each batch, and together have the bytes of a
// loader whose workers decode.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "tests/engine/device/device_decoding.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"

namespace stoker {
namespace {

using ::stoker::testing::Bytes;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DeviceDecodeTest;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::kPhotos;
using ::stoker::testing::MakeJpeg;
using ::stoker::testing::Packed;
using ::stoker::testing::RandomJpeg;
using ::stoker::testing::Text;

class DeviceDecodeSplitTest : public DeviceDecodeTest {
 protected:
  LoaderOptions SplitOptions() {
    LoaderOptions options = Options();
    options.batch_size = 12;  // the last batch has 5 rows, which 2 and 3 devices cannot share
    return options;
  }
  static BatchMix Mix() {
    BatchMix mix{.choices = {MixUp{0.4}, CutMix{1}}, .p = {0.5, 0.5}};
    mix.num_classes = 5;
    return mix;
  }

  // Runs a loader of two devices, of which the one in this place fails at its nth such call.
  // Expects the batches of `plain` until then; returns whether it has failed.
  bool Fails(LoaderOptions options, Loader& plain, DeviceCall failing, int nth, size_t place) {
    std::atomic<int> left = nth;
    const auto faulty = std::make_shared<HookedDevice>(device_, [&](DeviceCall call) {
      if (call != failing || left-- != 0) return Status();
      return Status(Error{Code::kUnavailable, "injected"});
    });
    const auto sound = std::make_shared<HookedDevice>(device_);
    options.to_device = {.devices = {sound, sound}, .decodes = true};
    options.to_device->devices[place] = faulty;
    bool failed = false;
    {
      const auto loader = Loader::Open(std::move(options)).value();
      const auto wanted = plain.Iterate(0), got = loader->Iterate();
      for (bool more = true; more && !failed;) {
        const Result<SplitBatch> batch = got->NextOnDevices();
        failed = !batch.ok();
        if (failed) {
          EXPECT_EQ(batch.error().cause, "injected");
        } else {
          more = ExpectSame(wanted->Next(), batch);
        }
      }
    }
    EXPECT_EQ(sound->alive(), 0);
    EXPECT_EQ(faulty->alive(), 0);
    return failed;
  }
};
INSTANTIATE_TEST_SUITE_P(, DeviceDecodeSplitTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceDecodeSplitTest, EachDecodesTheCropsOfItsRows) {
  for (devices_ = 2; devices_ <= 4; ++devices_) {
    SCOPED_TRACE(devices_);
    LoaderOptions options = SplitOptions();
    options.epochs = 3;
    const DecodePaths paths = ExpectSame(options, 3);
    EXPECT_EQ(paths.on_device, 3u * kPhotos);
    EXPECT_EQ(AllLeft(paths), 0u);
  }
}

TEST_P(DeviceDecodeSplitTest, TheLastPartsMayHaveNoRows) {
  devices_ = 7;  // the last batch has one row
  LoaderOptions options = SplitOptions();
  options.batch_size = 28;
  options.epochs = 2;
  EXPECT_EQ(ExpectSame(options, 2).on_device, 2u * kPhotos);
}

// The deferred operations of the device's rows take fewer pages than those of the whole batch, so
// that the crops begin elsewhere on the device than in the batch, although all columns begin alike.
TEST_P(DeviceDecodeSplitTest, OneDeviceMayHaveAllRows) {
  for (devices_ = 1; devices_ <= 2; ++devices_) {
    SCOPED_TRACE(devices_);
    LoaderOptions options = SplitOptions();
    options.batch_size = 28;  // the last batch has one row
    options.transforms = {RandomResizedCrop{.height = 6, .width = 8}, RandomErasing{.p = 1},
                          RandomErasing{.p = 1}, RandomErasing{.p = 1}};
    options.epochs = 2;
    EXPECT_EQ(ExpectSame(options, 2).on_device, 2u * kPhotos);
  }
}

TEST_P(DeviceDecodeSplitTest, WorkersDecodeTheOthers) {
  for (const uint64_t id : {3, 8, 9, 21}) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  for (devices_ = 2; devices_ <= 3; ++devices_) {
    LoaderOptions options = SplitOptions();
    options.transforms = {RandomResizedCrop{.height = 60, .width = 70}, RandomGrayscale{.p = 0.3}};
    options.epochs = 2;
    const DecodePaths paths = ExpectSame(options, 2, /*crop_bytes=*/700);
    EXPECT_EQ(Left(paths, OnWorker::kNotPrepared), 8u);
    EXPECT_GT(Left(paths, OnWorker::kUnsupported), 3u);
    EXPECT_GT(Left(paths, OnWorker::kNoRoom), 0u);
    EXPECT_GT(paths.on_device, 10u);
    EXPECT_EQ(paths.on_device + AllLeft(paths), 2u * kPhotos);
  }
}

// The last row of each part is mixed with the first one of the next part, on another device.
TEST_P(DeviceDecodeSplitTest, WorkersDecodeRowsThatTwoDevicesMix) {
  for (devices_ = 1; devices_ <= 3; ++devices_) {
    SCOPED_TRACE(devices_);
    LoaderOptions options = SplitOptions();
    options.mix = Mix();
    options.epochs = 2;
    const DecodePaths paths = ExpectSame(options, 2);
    const uint64_t shared = devices_ == 1 ? 0 : 2 * 3 * devices_;  // of 3 batches an epoch
    EXPECT_EQ(Left(paths, OnWorker::kUnsupported), shared);
    EXPECT_EQ(AllLeft(paths), shared);
    EXPECT_EQ(paths.on_device, 2 * kPhotos - shared);
  }
}

TEST_P(DeviceDecodeSplitTest, NoRowMayBeDropped) {
  LoaderOptions options = SplitOptions();
  options.to_device = {.devices = {device_, device_}, .decodes = true};
  options.on_bad = BadPolicy::Parse("truncated=drop").value();
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, Code::kInvalidArgument);
  EXPECT_NE(loader.error().cause.find("on_bad is \"truncated=drop\""), std::string::npos)
      << loader.error().ToString();
  options.to_device->devices.pop_back();
  EXPECT_TRUE(Loader::Open(options).ok());
}

TEST_P(DeviceDecodeSplitTest, NothingIsCopiedTwice) {
  std::vector<uint64_t> copied;
  for (devices_ = 1; devices_ <= 3; ++devices_) {
    LoaderOptions options = SplitOptions();
    options.shuffle = false;
    options.transforms = {Resize{.height = 100, .width = 90}};
    options.epochs = 1;
    const auto loader = Open(options);
    const auto iterator = loader->Iterate();
    while (NextOf(*iterator).value()) {
    }
    EXPECT_EQ(loader->Stats().decoded.on_device, uint64_t{kPhotos});
    copied.push_back(loader->CopyStats().copied_bytes);
  }
  // The rows of one device's columns lie on pages of their own, which are copied with them.
  EXPECT_LE(copied[1], copied[0]);
  EXPECT_LE(copied[2], copied[0]);
}

TEST_P(DeviceDecodeSplitTest, TheyTakeAsMuchMemoryAsOne) {
  struct Memory {
    uint64_t on_devices, in_batches;
  };
  std::vector<Memory> memory;
  for (const size_t devices : {1, 2, 4}) {
    devices_ = devices;
    LoaderOptions options = SplitOptions();
    options.batch_size = 64;
    options.depth = 2;
    const auto loader = Open(options);
    EXPECT_TRUE(NextOf(*loader->Iterate()).value());
    memory.push_back({loader->CopyStats().device_bytes, loader->Stats().slot_bytes});
  }
  constexpr uint64_t kPages = 64 << 10;  // what begins on a page of its own
  for (const Memory& of : {memory[1], memory[2]}) {
    EXPECT_NEAR(static_cast<double>(of.on_devices), static_cast<double>(memory[0].on_devices),
                4 * kPages);
    EXPECT_EQ(of.in_batches, memory[0].in_batches);
  }
}

TEST_P(DeviceDecodeSplitTest, AFaultOfEitherEndsTheLoader) {
  for (const uint64_t id : {1, 2, 11, 20}) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  LoaderOptions options = SplitOptions();
  options.shuffle = false;
  options.epochs = 1;
  devices_ = 2;
  const auto plain = Loader::Open(options).value();
  for (const auto failing : {DeviceCall::kCopy, DeviceCall::kDecodeCrops, DeviceCall::kWait}) {
    bool either = true;
    for (int nth = 0; either && !HasFailure(); ++nth) {
      either = false;
      for (const size_t place : {0, 1}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(failing)) + ", " + std::to_string(nth) +
                     ", device " + std::to_string(place));
        const bool failed = Fails(options, *plain, failing, nth, place);
        EXPECT_TRUE(failed || nth > 0);
        either = either || failed;
      }
    }
  }
}

}  // namespace
}  // namespace stoker
