// Iterations of a loader on a device (the host counts as one) have the bytes, epochs and positions
// of a loader without a device.
#include "engine/loader/loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::DeviceCall;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PhotoFolder;
using Bytes = std::vector<uint8_t>;

void Add(std::span<const Column> columns, Bytes& bytes) {
  for (const Column& column : columns) {
    const auto* from = static_cast<const uint8_t*>(column.data);
    bytes.insert(bytes.end(), from, from + column.bytes());
  }
}

class DeviceIterationsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPerEpoch = 6;

  LoaderOptions Options() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16},
                          RandomHorizontalFlip{.p = 0.5}};
    options.batch_size = 7;
    options.shuffle = true;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
    return options;
  }

  std::shared_ptr<Loader> Open(LoaderOptions options, int buffers = 3) {
    options.to_device = {.devices = {host_}, .buffers = buffers};
    return Loader::Open(std::move(options)).value();
  }

  static Bytes Of(const DeviceBatch& batch) {
    EXPECT_TRUE(batch.Wait().ok());
    Bytes bytes;
    Add(batch.columns(), bytes);
    return bytes;
  }

  static std::vector<Bytes> Rest(Iterator& iterator) {
    std::vector<Bytes> all;
    while (const DeviceBatch batch = iterator.NextOnDevice().value()) all.push_back(Of(batch));
    return all;
  }

  // The batches of the plain loader.
  static std::vector<Bytes> Epoch(const LoaderOptions& options, uint64_t epoch) {
    auto iterator = Loader::Open(options).value()->Iterate(epoch);
    std::vector<Bytes> all;
    while (const Batch batch = iterator->Next().value()) Add(batch.columns(), all.emplace_back());
    return all;
  }

  PhotoFolder photos_{41, 3};
  const std::shared_ptr<Device> host_ = Device::Open({DeviceName::Kind::kHost, 0}).value();
};

TEST_F(DeviceIterationsTest, DeliversTheHostLoadersBytes) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const bool mixed : {false, true}) {
      LoaderOptions options = Options();
      options.dtype = dtype;
      if (dtype == DType::kF32) options.layout = Layout::kNchw;
      if (dtype == DType::kF16) options.transforms.emplace_back(RandomErasing{.p = 0.5});
      if (mixed) options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
      auto loader = Open(options);
      const auto epochs = static_cast<uint64_t>(testing::Effort(3));
      for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        EXPECT_EQ(Rest(*loader->Iterate()), Epoch(options, epoch)) << NameOf(dtype) << mixed;
      }
      EXPECT_EQ(loader->columns()[0].dtype, dtype);
      EXPECT_EQ(loader->columns().size(), 2u);
    }
  }
}

TEST_F(DeviceIterationsTest, PrefetchesTheNextEpoch) {
  auto loader = Open(Options());
  EXPECT_EQ(Rest(*loader->Iterate()).size(), kPerEpoch);
  for (int i = 0; i < 2000 && loader->CopyStats().batches < kPerEpoch + 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(loader->CopyStats().batches, kPerEpoch + 3) << "as many as the ring has room for";
  const auto wanted = Epoch(Options(), 1);
  auto next = loader->Iterate();
  EXPECT_EQ(Of(next->NextOnDevice().value()), wanted[0]);
  EXPECT_LE(loader->CopyStats().batches, kPerEpoch + 4) << "none of them was made again";
}

TEST_F(DeviceIterationsTest, PositionFollowsDelivery) {
  auto loader = Open(Options());
  const auto wanted = Epoch(Options(), 2);
  auto iterator = loader->Iterate(2, /*repeat=*/true);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t n = 0; n < kPerEpoch; ++n) {
      EXPECT_EQ(iterator->position(), (BatchName{2, n}));
      EXPECT_EQ(Of(iterator->NextOnDevice().value()), wanted[n]);
    }
    EXPECT_EQ(iterator->position(), (BatchName{2, kPerEpoch}));
    EXPECT_FALSE(iterator->NextOnDevice().value());
    ASSERT_TRUE(iterator->Seek({2, 0}).ok());
  }
  ASSERT_TRUE(iterator->Seek({2, 4}).ok());
  EXPECT_EQ(Rest(*iterator), std::vector<Bytes>(wanted.begin() + 4, wanted.end()));
  EXPECT_EQ(iterator->Seek({2, kPerEpoch + 1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(loader->epochs().next(), 0u) << "a named epoch is not taken";
}

TEST_F(DeviceIterationsTest, AnUnusedEpochIsReturned) {
  auto loader = Open(Options());
  EXPECT_EQ(Rest(*loader->Iterate()).size(), kPerEpoch);
  loader->Stop();
  {
    auto iterator = loader->Iterate();
    EXPECT_EQ(iterator->NextOnDevice().error().code, Code::kCancelled);
    EXPECT_EQ(loader->epochs().next(), 1u) << "also while the iteration lives";
  }
  EXPECT_EQ(loader->epochs().next(), 1u);
}

TEST_F(DeviceIterationsTest, RefusesBadOptionsBeforePinning) {
  const auto open = [this](std::shared_ptr<Device> device, int buffers) {
    LoaderOptions options = Options();
    options.to_device = {.devices = {std::move(device)}, .buffers = buffers};
    const auto opened = Loader::Open(options);
    return opened.ok() ? std::string() : opened.error().cause;
  };
  EXPECT_NE(open(nullptr, 3).find("device is null"), std::string::npos);
  for (const int buffers : {-5, 0, 1, 65, 1'000'000}) {
    EXPECT_NE(open(host_, buffers).find("buffers is " + std::to_string(buffers)),
              std::string::npos);
  }
}

TEST_F(DeviceIterationsTest, StatsCountPinnedBytes) {
  auto loader = Open(Options());
  const uint64_t one = loader->Stats().pinned_bytes;
  EXPECT_GT(one, 0u);
  {
    auto a = loader->Iterate(0), b = loader->Iterate(1);
    EXPECT_TRUE(a->NextOnDevice().value());
    EXPECT_TRUE(b->NextOnDevice().value());
    EXPECT_EQ(loader->Stats().pinned_bytes, 2 * one);
  }
  loader->Stop();
  EXPECT_EQ(loader->Stats().pinned_bytes, 0u);
}

TEST_F(DeviceIterationsTest, MemoryThatCannotBePinnedIsAWarning) {
  const auto refuses = std::make_shared<HookedDevice>(host_, [](DeviceCall call) -> Status {
    if (call != DeviceCall::kPin) return {};
    return Error{Code::kUnavailable, "not here"};
  });
  LoaderOptions options = Options();
  options.to_device = {.devices = {refuses}, .buffers = 3};
  auto loader = Loader::Open(std::move(options)).value();
  EXPECT_EQ(refuses->count(DeviceCall::kPin), 2) << "of what is mapped, and of the device's own";
  EXPECT_EQ(loader->Stats().pinned_bytes, 0u);
  const std::optional<std::string> warning = loader->TakeWarning();
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("could not be pinned: not here; not here. "), std::string::npos);
  EXPECT_EQ(Rest(*loader->Iterate(0)), Epoch(Options(), 0));
  auto one = loader->Iterate(0), other = loader->Iterate(1);  // memory for one more
  EXPECT_EQ(Of(one->NextOnDevice().value()), Epoch(Options(), 0)[0]);
  EXPECT_EQ(Of(other->NextOnDevice().value()), Epoch(Options(), 1)[0]);
  EXPECT_GT(refuses->count(DeviceCall::kPin), 2);
  EXPECT_FALSE(loader->TakeWarning()) << "only once";
}

TEST_F(DeviceIterationsTest, InterleavedIteratorsAreIndependent) {
  auto loader = Open(Options());
  auto one = loader->Iterate(0), other = loader->Iterate(1);
  const auto first = Epoch(Options(), 0), second = Epoch(Options(), 1);
  for (uint64_t n = 0; n < kPerEpoch; ++n) {
    EXPECT_EQ(Of(one->NextOnDevice().value()), first[n]);
    EXPECT_EQ(Of(other->NextOnDevice().value()), second[n]);
  }
  // One ring stays for the next iteration.
  const uint64_t ring = loader->CopyStats().device_bytes;
  one.reset();
  other.reset();
  EXPECT_EQ(loader->CopyStats().device_bytes, ring);
  EXPECT_EQ(loader->CopyStats().batches >= 2 * kPerEpoch, true);
}

TEST_F(DeviceIterationsTest, ABadSampleFailsOnlyItsBatch) {
  LoaderOptions options = Options();
  options.shuffle = false;
  options.source = photos_.Source();
  photos_.Overwrite(8, "no photograph");
  photos_.Overwrite(40, "no photograph");
  auto loader = Open(options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto iterator = loader->Iterate();
    for (uint64_t n = 0; n < kPerEpoch; ++n) {
      EXPECT_EQ(iterator->NextOnDevice().ok(), n != 1 && n != 5) << n;
      EXPECT_EQ(iterator->position()->index, n + 1);
    }
    EXPECT_FALSE(iterator->NextOnDevice().value());
  }
}

TEST_F(DeviceIterationsTest, HoldingAllBuffersIsAnErrorThatSkipsNothing) {
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  std::vector<DeviceBatch> held;
  for (int n = 0; n < 3; ++n) held.push_back(iterator->NextOnDevice().value());
  EXPECT_EQ(iterator->NextOnDevice().error().code, Code::kResourceExhausted);
  EXPECT_EQ(iterator->position(), (BatchName{0, 3}));
  held.clear();
  EXPECT_EQ(Rest(*iterator).size(), 3u);
  // This holds also if all of them are held at the end of an epoch.
  auto next = loader->Iterate();
  for (uint64_t n = 0; n < kPerEpoch; ++n) {
    if (held.size() == 3) held.erase(held.begin());
    held.push_back(next->NextOnDevice().value());
  }
  EXPECT_FALSE(next->NextOnDevice().value());
  auto third = loader->Iterate();
  EXPECT_EQ(third->NextOnDevice().error().code, Code::kResourceExhausted);
  held.clear();
  EXPECT_EQ(Rest(*third), Epoch(Options(), 2));
}

TEST_F(DeviceIterationsTest, StopEndsWaitsAndThreads) {
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  std::vector<DeviceBatch> kept;
  kept.push_back(iterator->NextOnDevice().value());
  std::thread other([&] {
    Result<DeviceBatch> batch = iterator->NextOnDevice();
    while (batch.ok())
      batch = *batch ? iterator->NextOnDevice() : (iterator = loader->Iterate())->NextOnDevice();
    EXPECT_EQ(batch.error().code, Code::kCancelled);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  loader->Stop();
  other.join();
  EXPECT_EQ(iterator->NextOnDevice().error().code, Code::kCancelled);
  EXPECT_EQ(loader->Iterate()->NextOnDevice().error().code, Code::kCancelled);
  const Bytes bytes = Of(kept[0]);
  iterator.reset();
  loader.reset();
  EXPECT_EQ(bytes, Epoch(Options(), 0)[0]);
  EXPECT_EQ(Of(kept[0]), bytes) << "batches outlive the loader";
}

TEST_F(DeviceIterationsTest, RefusesHostAccessToADeviceLoader) {
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  EXPECT_EQ(iterator->Next().error().code, Code::kFailedPrecondition);
  EXPECT_EQ(iterator->Append({0, 0}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(loader->BatchAt({0, 0}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(loader->epochs().next(), 0u) << "no epoch is taken by what is refused";
  EXPECT_EQ(Rest(*iterator), Epoch(Options(), 0));
  auto plain = Loader::Open(Options()).value()->Iterate();
  EXPECT_EQ(plain->NextOnDevice().error().code, Code::kFailedPrecondition);
  EXPECT_TRUE(plain->Next().value());
}

}  // namespace
}  // namespace stoker
