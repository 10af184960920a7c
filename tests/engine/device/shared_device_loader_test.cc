// Iterations of a loader on a device, the host being one: the plain loader's bytes, epochs and
// places.
#include "engine/device/shared_device_loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "engine/loader/cursor.h"
#include "tests/testing/effort.h"
#include "tests/testing/executors.h"
#include "tests/testing/photo_folder.h"

namespace stoker {
namespace {

using ::stoker::testing::PhotoFolder;
using Bytes = std::vector<uint8_t>;

void Add(std::span<const Column> columns, Bytes& bytes) {
  for (const Column& column : columns) {
    const auto* from = static_cast<const uint8_t*>(column.data);
    bytes.insert(bytes.end(), from, from + column.bytes());
  }
}

class SharedDeviceLoaderTest : public ::testing::Test {
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

  std::shared_ptr<SharedDeviceLoader> Open(LoaderOptions options, int buffers = 3) {
    return SharedDeviceLoader::Open(std::move(options), {.device = host_, .buffers = buffers}, {})
        .value();
  }

  static Bytes Of(const DeviceBatch& batch) {
    EXPECT_TRUE(batch.Wait().ok());
    Bytes bytes;
    Add(batch.columns(), bytes);
    return bytes;
  }

  static std::vector<Bytes> Rest(DeviceCursor& cursor) {
    std::vector<Bytes> all;
    while (const DeviceBatch batch = cursor.Next().value()) all.push_back(Of(batch));
    return all;
  }

  // What the plain loader makes.
  static std::vector<Bytes> Epoch(const LoaderOptions& options, uint64_t epoch) {
    auto loader = Loader::Open(options).value();
    EXPECT_TRUE(loader->Seek(epoch).ok());
    std::vector<Bytes> all;
    while (const Batch batch = loader->Next().value()) Add(batch.columns(), all.emplace_back());
    return all;
  }

  PhotoFolder photos_{41, 3};
  const std::shared_ptr<Device> host_ = Device::Open({DeviceName::Kind::kHost, 0}).value();
};

TEST_F(SharedDeviceLoaderTest, HasThePlainLoadersBytes) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const bool mixed : {false, true}) {
      LoaderOptions options = Options();
      options.dtype = dtype;
      if (dtype == DType::kF32) options.layout = Layout::kNchw;
      if (dtype == DType::kF16) options.transforms.emplace_back(RandomErasing{.p = 0.5});
      if (mixed) options.mix = BatchMix{.choices = {MixUp{.alpha = 1}}, .num_classes = 3};
      auto shared = Open(options);
      const auto epochs = static_cast<uint64_t>(testing::Effort(3));
      for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
        EXPECT_EQ(Rest(*shared->Iterate()), Epoch(options, epoch)) << NameOf(dtype) << mixed;
      }
      EXPECT_EQ(shared->columns()[0].dtype, dtype);
      EXPECT_EQ(shared->columns().size(), 2u);
    }
  }
}

TEST_F(SharedDeviceLoaderTest, TheNextEpochIsOnItsWayWhenTheLastOneEnds) {
  auto shared = Open(Options());
  EXPECT_EQ(Rest(*shared->Iterate()).size(), kPerEpoch);
  for (int i = 0; i < 2000 && shared->StageStats().batches < kPerEpoch + 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(shared->StageStats().batches, kPerEpoch + 3) << "as many as the ring has room for";
  const auto wanted = Epoch(Options(), 1);
  auto next = shared->Iterate();
  EXPECT_EQ(Of(next->Next().value()), wanted[0]);
  EXPECT_LE(shared->StageStats().batches, kPerEpoch + 4) << "none of them was made again";
}

TEST_F(SharedDeviceLoaderTest, PlacesAreThoseOfWhatWasDelivered) {
  auto shared = Open(Options());
  const auto wanted = Epoch(Options(), 2);
  auto cursor = shared->Iterate(2, /*repeat=*/true);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t n = 0; n < kPerEpoch; ++n) {
      EXPECT_EQ(cursor->position(), (BatchName{2, n}));
      EXPECT_EQ(Of(cursor->Next().value()), wanted[n]);
    }
    EXPECT_EQ(cursor->position(), (BatchName{2, kPerEpoch}));
    EXPECT_FALSE(cursor->Next().value());
    ASSERT_TRUE(cursor->Seek({2, 0}).ok());
  }
  ASSERT_TRUE(cursor->Seek({2, 4}).ok());
  EXPECT_EQ(Rest(*cursor), std::vector<Bytes>(wanted.begin() + 4, wanted.end()));
  EXPECT_EQ(cursor->Seek({2, kPerEpoch + 1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(shared->host().epochs().next(), 0u) << "a named epoch is not taken";
}

TEST_F(SharedDeviceLoaderTest, AnEpochOfWhichNothingWasTakenIsGivenBack) {
  auto shared = Open(Options());
  EXPECT_EQ(Rest(*shared->Iterate()).size(), kPerEpoch);
  shared->Stop();
  {
    auto cursor = shared->Iterate();
    EXPECT_EQ(cursor->Next().error().code, Code::kCancelled);
    EXPECT_EQ(shared->host().epochs().next(), 2u);
  }
  EXPECT_EQ(shared->host().epochs().next(), 1u);
}

TEST_F(SharedDeviceLoaderTest, OptionsThatMakeNoSenseAreRefusedBeforeAnythingIsPinned) {
  const auto open = [this](std::shared_ptr<Device> device, int buffers) {
    const auto opened =
        SharedDeviceLoader::Open(Options(), {.device = std::move(device), .buffers = buffers}, {});
    return opened.ok() ? std::string() : opened.error().cause;
  };
  EXPECT_NE(open(nullptr, 3).find("device is null"), std::string::npos);
  for (const int buffers : {-5, 0, 1, 65, 1'000'000}) {
    EXPECT_NE(open(host_, buffers).find("buffers is " + std::to_string(buffers)),
              std::string::npos);
  }
}

TEST_F(SharedDeviceLoaderTest, PinnedBytesAreThoseThatArePinned) {
  auto shared = Open(Options());
  const uint64_t one = shared->host().Stats().pinned_bytes;
  EXPECT_GT(one, 0u);
  {
    auto a = shared->Iterate(0), b = shared->Iterate(1);
    EXPECT_TRUE(a->Next().value());
    EXPECT_TRUE(b->Next().value());
    EXPECT_EQ(shared->host().Stats().pinned_bytes, 2 * one);
  }
  shared->Stop();
  EXPECT_EQ(shared->host().Stats().pinned_bytes, 0u);
}

TEST_F(SharedDeviceLoaderTest, CursorsSideBySide) {
  auto shared = Open(Options());
  auto one = shared->Iterate(0), other = shared->Iterate(1);
  const auto first = Epoch(Options(), 0), second = Epoch(Options(), 1);
  for (uint64_t n = 0; n < kPerEpoch; ++n) {
    EXPECT_EQ(Of(one->Next().value()), first[n]);
    EXPECT_EQ(Of(other->Next().value()), second[n]);
  }
  // One ring stays, for whoever comes next.
  const uint64_t ring = shared->StageStats().device_bytes;
  one.reset();
  other.reset();
  EXPECT_EQ(shared->StageStats().device_bytes, ring);
  EXPECT_EQ(shared->StageStats().batches >= 2 * kPerEpoch, true);
}

TEST_F(SharedDeviceLoaderTest, ABadSampleTakesThePlaceOfItsBatchAlsoOfTheLastOne) {
  LoaderOptions options = Options();
  options.shuffle = false;
  options.source = photos_.Source();
  photos_.Overwrite(8, "no photograph");
  photos_.Overwrite(40, "no photograph");
  auto shared = Open(options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto cursor = shared->Iterate();
    for (uint64_t n = 0; n < kPerEpoch; ++n) {
      EXPECT_EQ(cursor->Next().ok(), n != 1 && n != 5) << n;
      EXPECT_EQ(cursor->position()->index, n + 1);
    }
    EXPECT_FALSE(cursor->Next().value());
  }
}

TEST_F(SharedDeviceLoaderTest, HoldingAllBuffersIsAnErrorThatPassesNothing) {
  auto shared = Open(Options());
  auto cursor = shared->Iterate();
  std::vector<DeviceBatch> held;
  for (int n = 0; n < 3; ++n) held.push_back(cursor->Next().value());
  EXPECT_EQ(cursor->Next().error().code, Code::kResourceExhausted);
  EXPECT_EQ(cursor->position(), (BatchName{0, 3}));
  held.clear();
  EXPECT_EQ(Rest(*cursor).size(), 3u);
  // Also where all of them are held at the end of an epoch.
  auto next = shared->Iterate();
  for (uint64_t n = 0; n < kPerEpoch; ++n) {
    if (held.size() == 3) held.erase(held.begin());
    held.push_back(next->Next().value());
  }
  EXPECT_FALSE(next->Next().value());
  auto third = shared->Iterate();
  EXPECT_EQ(third->Next().error().code, Code::kResourceExhausted);
  held.clear();
  EXPECT_EQ(Rest(*third), Epoch(Options(), 2));
}

TEST_F(SharedDeviceLoaderTest, StopEndsWaitsAndThreads) {
  auto shared = Open(Options());
  auto cursor = shared->Iterate();
  std::vector<DeviceBatch> kept;
  kept.push_back(cursor->Next().value());
  std::thread other([&] {
    Result<DeviceBatch> batch = cursor->Next();
    while (batch.ok()) batch = *batch ? cursor->Next() : (cursor = shared->Iterate())->Next();
    EXPECT_EQ(batch.error().code, Code::kCancelled);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  shared->Stop();
  other.join();
  EXPECT_EQ(cursor->Next().error().code, Code::kCancelled);
  EXPECT_EQ(shared->Iterate()->Next().error().code, Code::kCancelled);
  const Bytes bytes = Of(kept[0]);
  cursor.reset();
  shared.reset();
  EXPECT_EQ(bytes, Epoch(Options(), 0)[0]);
  EXPECT_EQ(Of(kept[0]), bytes) << "batches outlive the loader";
}

TEST_F(SharedDeviceLoaderTest, AnIdleEngineGivesItsMemoryBack) {
  LoaderOptions options = Options();
  auto plain = SharedLoader::Open(options).value();
  EXPECT_GT(plain->Stats().memory_used, 0u);
  plain->LetIdleGo();
  EXPECT_EQ(plain->Stats().memory_used, 0u);
  auto cursor = plain->Iterate();
  EXPECT_TRUE(cursor->Next().value()) << "another is opened when it is wanted";
  plain->LetIdleGo();
  EXPECT_TRUE(cursor->Next().value()) << "one that is in use stays";
  EXPECT_GE(plain->Stats().batches, 2u);
}

}  // namespace
}  // namespace stoker
