// A loader whose device decodes delivers the bytes of a loader whose workers do, whatever the
// photographs are, on every tested device.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/hash/hash.h"
#include "engine/loader/loader.h"
#include "engine/map/map_function.h"
#include "gpu/staging/piece_copier.h"
#include "io/memory/arrays.h"
#include "io/select/subset.h"
#include "tests/engine/device/device_decoding.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/batch_bytes.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker {
namespace {

using ::stoker::testing::Bytes;
using ::stoker::testing::BytesOf;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DeviceDecodeTest;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::Effort;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::kImageNet;
using ::stoker::testing::kPhotos;
using ::stoker::testing::MakeJpeg;
using ::stoker::testing::MakePng;
using ::stoker::testing::Packed;
using ::stoker::testing::Padded;
using ::stoker::testing::Random;
using ::stoker::testing::RandomJpeg;
using ::stoker::testing::Text;

jpeg::CropIndex::Match MatchOf(const Bytes& record, const Bytes& jpeg) {
  const Bytes padded = Padded(jpeg);
  const auto file = std::span(padded).first(jpeg.size());
  jpeg::FrameHeader header;
  EXPECT_EQ(jpeg::ParseHeader(file, header), Fallback::kNone);
  jpeg::CropIndex index;
  return index.Open(record, file, header);
}

// The index in another format, with a valid checksum.
Bytes InAnotherFormat(Bytes record) {
  constexpr size_t kFormatByte = 25;
  ++record[kFormatByte];
  const uint64_t checksum = Hash64(std::span<const uint8_t>(record).subspan(sizeof(uint64_t)));
  std::memcpy(record.data(), &checksum, sizeof(checksum));
  return record;
}

// Changes a byte of a JPEG's data such that its index still seems to be for it.
void DamageUnnoticed(Bytes& jpeg, const Bytes& record, size_t at) {
  for (;; ++at) {
    Bytes changed = jpeg;
    changed.at(at) ^= 0x10;
    if (changed[at] == 0xFF || jpeg[at] == 0xFF || jpeg[at - 1] == 0xFF) continue;
    if (MatchOf(record, changed) != jpeg::CropIndex::Match::kUsable) continue;
    jpeg = changed;
    return;
  }
}

// Overwrites bytes of all that a cache has stored.
void Damage(const std::string& cache) {
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    if (entry.path().extension() != ".data") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (uint64_t at = 0; at < entry.file_size(); at += 5000) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\x5A').put('\x00').put('\x5A');
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DeviceDecodeTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(DeviceDecodeTest, PackedPhotographsAreDecodedOnTheDevice) {
  const DecodePaths paths = ExpectSame(Options(), /*epochs=*/3);
  EXPECT_GE(paths.on_device, 3u * kPhotos);
  EXPECT_EQ(AllLeft(paths), 0u);
  EXPECT_EQ(paths.packed, 0u) << "a worker has decoded one";
}

TEST_P(DeviceDecodeTest, PlainPhotographsWithAnIndexAreDecodedOnTheDevice) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  LoaderOptions options = Options();
  options.source = With(Indexes());
  const DecodePaths paths = ExpectSame(options, /*epochs=*/3);
  EXPECT_GE(paths.on_device, 3u * kPhotos);
  EXPECT_EQ(AllLeft(paths), 0u);
  EXPECT_EQ(paths.fast, 0u) << "a worker has decoded one";
}

TEST_P(DeviceDecodeTest, BatchesHavePackedAndPlainPhotographs) {
  for (uint64_t id = 0; id < kPhotos; id += 2) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  LoaderOptions options = Options();
  options.source = With(Indexes());
  options.mix = BatchMix{.choices = {MixUp{0.4}, CutMix{1}}, .p = {0.5, 0.5}};
  options.mix->num_classes = 5;
  const DecodePaths paths = ExpectSame(options, /*epochs=*/3);
  EXPECT_GE(paths.on_device, 3u * kPhotos);
  EXPECT_EQ(AllLeft(paths), 0u);
}

TEST_P(DeviceDecodeTest, WorkersDecodePlainPhotographsWithoutAUsableIndex) {
  for (uint64_t id = 0; id < kPhotos; ++id) {
    photos_.Overwrite(id, Text(id == 4 ? MakeJpeg({.scans = testing::JpegScans::kProgressive})
                                       : RandomJpeg(random_)));
  }
  std::vector<Bytes> records = Indexes();
  records[1].clear();
  records[2] = InAnotherFormat(records[2]);
  records[3] = records[5];  // stale
  EXPECT_TRUE(records[4].empty());
  records[6][40] ^= 1;  // damaged
  LoaderOptions options = Options();
  options.source = With(records);
  options.epochs = 2;
  const DecodePaths paths = ExpectSame(options, 2);
  EXPECT_EQ(Left(paths, OnWorker::kNotPrepared), 2u * 5);
  EXPECT_EQ(AllLeft(paths), 2u * 5);
  EXPECT_EQ(paths.on_device, 2u * (kPhotos - 5));
  EXPECT_EQ(paths.stale, 2u);
  EXPECT_EQ(paths.contradicted, 2u * 2);
}

// Each is counted once for each epoch, whoever decodes it.
TEST_P(DeviceDecodeTest, LostEndMarkersAreCounted) {
  const std::vector<uint64_t> lost = {3, 8, 21};
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  for (const uint64_t id : lost) {
    Bytes jpeg = MakeJpeg({.width = 200, .height = 150, .seed = id});
    std::fill(jpeg.end() - 2, jpeg.end(), uint8_t{0});
    photos_.Overwrite(id, Text(jpeg));
  }
  LoaderOptions options = Options();
  options.source = With(Indexes());
  options.epochs = 2;
  for (const uint32_t crop_bytes : {1, 2000, 128 << 10}) {
    SCOPED_TRACE(crop_bytes);
    const DecodePaths paths = ExpectSame(options, 2, crop_bytes);
    EXPECT_EQ(paths.on_device == 2u * kPhotos, crop_bytes == 128 << 10);
    EXPECT_EQ(paths.no_end_marker, 2u * lost.size());
  }
}

// They have changed since they were indexed. Whatever the workers make of them is delivered.
TEST_P(DeviceDecodeTest, WorkersDecodeDamagedPlainPhotographs) {
  const std::vector<uint64_t> damaged = {2, 11, 12, 20};
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  for (const uint64_t id : damaged) {
    photos_.Overwrite(id, Text(MakeJpeg({.width = 300, .height = 200, .quality = 97, .seed = id})));
  }
  const std::vector<Bytes> records = Indexes();
  for (const uint64_t id : damaged) {
    Bytes jpeg = MakeJpeg({.width = 300, .height = 200, .quality = 97, .seed = id});
    DamageUnnoticed(jpeg, records[id], jpeg.size() / 2 + id);
    photos_.Overwrite(id, Text(jpeg));
  }
  LoaderOptions options = Options();
  options.source = With(records);
  options.transforms = {Resize{.height = 50, .width = 60}, kImageNet};
  options.on_bad = BadPolicy::Parse("substitute").value();
  options.epochs = 2;
  const DecodePaths paths = ExpectSame(options, 2);
  EXPECT_GE(Left(paths, OnWorker::kDamaged), 2u * damaged.size());
  EXPECT_EQ(AllLeft(paths), Left(paths, OnWorker::kDamaged));
  EXPECT_GE(paths.on_device, 2u * (kPhotos - damaged.size()));
}

TEST_P(DeviceDecodeTest, AllRecipesGiveTheSameBytes) {
  for (uint64_t id = 0; id < kPhotos; id += 3) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  const auto photos = With(Indexes());
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  for (int n = 0; n < Effort(40); ++n) {
    SCOPED_TRACE(n);
    LoaderOptions options = Options();
    options.source = photos;
    options.dtype = kDTypes[n % 4];
    options.layout = random_.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.shuffle = random_.OneIn(2);
    options.batch_size = static_cast<uint32_t>(random_.Between(1, 20));
    options.seed = static_cast<uint64_t>(n);
    const int height = random_.Between(1, 90), width = random_.Between(1, 90);
    options.transforms.clear();
    if (random_.OneIn(2)) options.transforms.emplace_back(RandomVerticalFlip{});
    if (random_.OneIn(2)) {
      options.transforms.emplace_back(RandomResizedCrop{.height = height, .width = width});
    } else {
      if (random_.OneIn(2)) options.transforms.emplace_back(Resize{.size = 96});
      options.transforms.emplace_back(CenterCrop{.height = height, .width = width});
    }
    if (random_.OneIn(2)) options.transforms.emplace_back(RandomHorizontalFlip{});
    if (random_.OneIn(4)) options.transforms.emplace_back(RandomGrayscale{.p = 0.3});
    if (random_.OneIn(2)) options.transforms.emplace_back(RandomErasing{.p = 0.5});
    if (options.dtype != DType::kU8 && random_.OneIn(2)) {
      options.transforms.emplace_back(kImageNet);
    }
    if (random_.OneIn(3)) {
      options.mix = BatchMix{.choices = {MixUp{0.4}, CutMix{1}}, .p = {0.5, 0.5}};
      options.mix->num_classes = 5;
    }
    ExpectSame(options);
    if (HasFailure()) return;
  }
}

TEST_P(DeviceDecodeTest, WorkersDecodeTheOthers) {
  photos_.Overwrite(3, Text(RandomJpeg(random_)));
  photos_.Overwrite(4, Text(MakeJpeg({.scans = testing::JpegScans::kProgressive})));
  photos_.Overwrite(9, Text(MakePng({.width = 70})));
  LoaderOptions options = Options();
  options.epochs = 2;
  const DecodePaths paths = ExpectSame(options, 2);
  EXPECT_EQ(Left(paths, OnWorker::kNotPrepared), 6u);
  EXPECT_EQ(AllLeft(paths), 6u);
  EXPECT_EQ(paths.on_device, 2u * (kPhotos - 3));
}

TEST_P(DeviceDecodeTest, WorkersDecodeWhatIsChangedAfterwards) {
  LoaderOptions options = Options();
  options.transforms = {RandomResizedCrop{.height = 30, .width = 40}, RandomGrayscale{.p = 0.4}};
  options.epochs = 2;
  const DecodePaths paths = ExpectSame(options, 2);
  EXPECT_GT(Left(paths, OnWorker::kUnsupported), 5u);
  EXPECT_EQ(AllLeft(paths), Left(paths, OnWorker::kUnsupported));
  EXPECT_GT(paths.on_device, 5u);
  EXPECT_EQ(paths.on_device + paths.packed, 2u * kPhotos);
}

TEST_P(DeviceDecodeTest, WorkersDecodeWhatIsScaledDown) {
  photos_.Overwrite(5, Text(Packed(MakeJpeg({.width = 900, .height = 700}))));
  LoaderOptions options = Options();
  options.transforms = {Resize{.height = 20, .width = 24}};
  options.decode = DecodeSize::kScaled;
  options.epochs = 1;
  const DecodePaths paths = ExpectSame(options);
  EXPECT_GT(Left(paths, OnWorker::kUnsupported), 0u);
  EXPECT_EQ(paths.scaled, Left(paths, OnWorker::kUnsupported));
  EXPECT_EQ(paths.on_device + paths.scaled, uint64_t{kPhotos});
}

TEST_P(DeviceDecodeTest, WorkersDecodeWhatHasNoRoom) {
  LoaderOptions options = Options();
  options.epochs = 2;
  for (const uint32_t crop_bytes : {1, 16, 1000, 2000}) {
    SCOPED_TRACE(crop_bytes);
    const DecodePaths paths = ExpectSame(options, 2, crop_bytes);
    EXPECT_EQ(AllLeft(paths), Left(paths, OnWorker::kNoRoom));
    EXPECT_GT(AllLeft(paths), 0u);
    EXPECT_EQ(paths.on_device > 0, crop_bytes >= 1000);
    EXPECT_EQ(paths.on_device + paths.packed, 2u * kPhotos);
  }
}

// The error is that of the workers, which also know which class of faults it belongs to.
TEST_P(DeviceDecodeTest, DamagedPhotographsAreTheErrorsOfTheWorkers) {
  for (const uint64_t id : {2, 11, 12, 20}) {
    Bytes packed = Packed(MakeJpeg({.width = 150, .height = 120, .seed = id}));
    if (id == 20) packed.resize(packed.size() / 2);
    if (id != 20) packed[packed.size() - 400] ^= 4;  // in the last rows, which not all crops read
    photos_.Overwrite(id, Text(packed));
  }
  photos_.Overwrite(17, "no photograph");
  for (const char* policy : {"fail", "substitute", "drop"}) {
    SCOPED_TRACE(policy);
    LoaderOptions options = Options();
    options.on_bad = BadPolicy::Parse(policy).value();
    options.transforms = {Resize{.height = 50, .width = 60}, kImageNet};
    options.epochs = 2;
    const DecodePaths paths = ExpectSame(options, 2);
    EXPECT_GE(Left(paths, OnWorker::kDamaged), 3u);
    EXPECT_GT(paths.on_device, 10u);
  }
}

// Rows move up to where dropped ones were, and mix with those before them, with the places of their
// crops.
TEST_P(DeviceDecodeTest, RowsAreMixedAndBadOnesDropped) {
  for (const uint64_t id : {0, 6, 12, 13, 28}) photos_.Overwrite(id, "no photograph");
  photos_.Overwrite(14, Text(RandomJpeg(random_)));
  Bytes damaged = Packed(MakeJpeg({.width = 150, .height = 120}));
  damaged[damaged.size() - 400] ^= 4;
  photos_.Overwrite(20, Text(damaged));
  for (const bool shuffle : {false, true}) {
    LoaderOptions options = Options();
    options.shuffle = shuffle;
    options.on_bad = BadPolicy::Parse("drop").value();
    options.mix = BatchMix{.choices = {MixUp{0.4}, CutMix{1}}, .p = {0.5, 0.5}};
    options.mix->num_classes = 5;
    options.epochs = 3;
    const DecodePaths paths = ExpectSame(options, 3);
    EXPECT_GT(paths.on_device, 3u * kPhotos / 2);
  }
}

TEST_P(DeviceDecodeTest, ManyBitsAreCopiedInPieces) {
  std::string large[2];
  for (uint64_t seed = 0; seed < 2; ++seed) {
    large[seed] =
        Text(Packed(MakeJpeg({.width = 1200, .height = 900, .quality = 98, .seed = seed})));
  }
  LoaderOptions options = Options();
  std::vector<uint64_t> ids(size_t{2} * options.batch_size);
  std::iota(ids.begin(), ids.end(), 0);
  for (const uint64_t id : ids) photos_.Overwrite(id, large[id % 2]);
  options.source = Subset(options.source, ids).value();
  options.epochs = 1;
  options.transforms = {Resize{.height = 400, .width = 500}};
  const auto hooked = std::make_shared<HookedDevice>(device_);
  options.to_device = {.devices = {hooked}, .buffers = 2, .decodes = true, .crop_bytes = 1 << 20};
  auto loader = Loader::Open(options).value();
  options.to_device.reset();
  auto wanted = Loader::Open(options).value()->Iterate(), got = loader->Iterate();
  for (int i = 0; i < 2; ++i) ExpectSame(wanted->Next(), NextOf(*got));
  EXPECT_EQ(loader->Stats().decoded.on_device, ids.size());
  EXPECT_EQ(AllLeft(loader->Stats().decoded), 0u);
  const std::vector<HookedDevice::Copied> copies = hooked->copies();
  const auto pieces =
      std::ranges::count(copies, PieceCopier::kPieceBytes, &HookedDevice::Copied::bytes);
  EXPECT_GE(pieces, 2);
}

TEST_P(DeviceDecodeTest, OnlyTheBitsAreCopied) {
  LoaderOptions options = Options();
  options.transforms = {Resize{.height = 400, .width = 400}};
  options.epochs = 1;
  auto loader = Open(options);
  auto iterator = loader->Iterate();
  while (iterator->NextOnDevice().value()) {
  }
  const DeviceCopyStats copies = loader->CopyStats();
  EXPECT_EQ(loader->Stats().decoded.on_device, uint64_t{kPhotos});
  EXPECT_EQ(copies.batches, 5u);
  EXPECT_LT(copies.copied_bytes, uint64_t{kPhotos} * 400 * 400 * 3 / 4);
}

TEST_P(DeviceDecodeTest, SeekAndStop) {
  auto plain = Loader::Open(Options()).value()->Iterate();
  auto loader = Open(Options());
  auto iterator = loader->Iterate();
  for (const auto& at : {BatchName{0, 0}, {3, 2}, {1, 3}, {1, 3}, {1, 0, 14}}) {
    plain->Seek(at).value();
    iterator->Seek(at).value();
    for (int i = 0; i < 2; ++i) ExpectSame(plain->Next(), NextOf(*iterator));
  }
  const DeviceBatch kept = iterator->NextOnDevice().value();
  const auto bytes = BytesOf(kept, *device_);
  iterator->Seek({2, 1}).value();
  loader->Stop();
  const Result<DeviceBatch> stopped = iterator->NextOnDevice();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  iterator.reset();
  loader.reset();
  EXPECT_EQ(BytesOf(kept, *device_), bytes) << "the batch outlives the loader";
}

TEST_P(DeviceDecodeTest, AFaultOfTheDeviceEndsTheLoader) {
  LoaderOptions options = Options();
  const auto hooked = std::make_shared<HookedDevice>(device_, [](DeviceCall call) {
    if (call != DeviceCall::kDecodeCrops) return Status();
    return Status(Error{Code::kUnavailable, "the device is lost"});
  });
  options.to_device = {.devices = {hooked}, .decodes = true};
  auto loader = Loader::Open(options).value();
  auto iterator = loader->Iterate();
  for (int i = 0; i < 2; ++i) {
    const Result<DeviceBatch> batch = iterator->NextOnDevice();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().cause, "the device is lost");
  }
}

// The copies of rows that workers have decoded, of the block after them, and of labels on the
// device.
TEST_P(DeviceDecodeTest, EachFailedCopyEndsTheLoader) {
  for (const uint64_t id : {1, 2, 5, 16, 20}) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  LoaderOptions options = Options();
  options.shuffle = false;
  options.epochs = 1;
  const auto plain = Loader::Open(options).value();
  int nth = 0;
  for (bool failed = true; failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    failed = false;
    std::atomic<int> left = nth;
    const auto hooked = std::make_shared<HookedDevice>(device_, [&left](DeviceCall call) {
      if (call != DeviceCall::kCopy || left-- != 0) return Status();
      return Status(Error{Code::kUnavailable, "injected"});
    });
    options.to_device = {.devices = {hooked}, .decodes = true};
    {
      auto loader = Loader::Open(options).value();
      auto wanted = plain->Iterate(0), got = loader->Iterate();
      for (bool more = true; more && !failed;) {
        const Result<SplitBatch> batch = NextOf(*got);
        failed = !batch.ok();
        if (failed) {
          EXPECT_EQ(batch.error().cause, "injected");
        } else {
          more = ExpectSame(wanted->Next(), batch);
        }
      }
    }
    EXPECT_EQ(hooked->alive(), 0);
  }
  // For each of 5 batches the block and the labels; and the neighbours among the rows above.
  EXPECT_EQ(nth, 5 * 2 + 4 + 1);
}

// Slots that cannot be pinned are mapped one by one, with their crops.
TEST_P(DeviceDecodeTest, CropsLieInPageableMemoryToo) {
  const auto refuses = std::make_shared<HookedDevice>(device_, [](DeviceCall call) -> Status {
    if (call != DeviceCall::kPin) return {};
    return Error{Code::kUnavailable, "not here"};
  });
  LoaderOptions options = Options();
  options.epochs = 2;
  const auto plain = Loader::Open(options).value();
  options.to_device = {.devices = {refuses}, .decodes = true};
  const auto loader = Loader::Open(options).value();
  EXPECT_NE(loader->TakeWarning().value_or("").find("could not be pinned"), std::string::npos);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const auto wanted = plain->Iterate(), got = loader->Iterate();
    while (ExpectSame(wanted->Next(), NextOf(*got))) {
    }
  }
  EXPECT_EQ(loader->Stats().decoded.on_device, 2u * kPhotos);
  EXPECT_EQ(loader->Stats().pinned_bytes, 0u);
}

// The cache finds the damage by a checksum. Then the file is read, packed and kept again.
TEST_P(DeviceDecodeTest, PhotographsThatAreDamagedInTheCacheAreReadFromTheirFiles) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, Text(RandomJpeg(random_)));
  const testing::TempFolder folder;
  folder.Rest();
  LoaderOptions options = Options();
  options.epochs = 3;
  const auto plain = Loader::Open(options).value();
  options.cache = {.bytes = 64 << 20, .folder = folder.Path("cache")};
  const auto loader = Open(options);
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto wanted = plain->Iterate(), got = loader->Iterate();
    while (ExpectSame(wanted->Next(), NextOf(*got))) {
    }
    if (epoch == 0) Damage(folder.Path("cache"));
  }
  const LoaderStats stats = loader->Stats();
  EXPECT_GT(stats.cache.damaged, 0u);
  EXPECT_GT(stats.cache.kept, uint64_t{kPhotos}) << "the damaged ones again";
  EXPECT_EQ(stats.decoded.on_device, 3u * kPhotos) << "also those that were damaged";
}

// The ring, with its memory for crops and samples, is the parent's. (ThreadSanitizer does not
// follow a program of several threads into a fork.)
TEST_P(DeviceDecodeTest, AForkedChildMayLetGoOfTheLastBatch) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks with threads";
#endif
  const auto hooked = std::make_shared<HookedDevice>(device_);
  LoaderOptions options = Options();
  options.to_device = {.devices = {hooked}, .decodes = true};
  auto loader = Loader::Open(options).value();
  DeviceBatch kept = loader->Iterate()->NextOnDevice().value();
  const auto bytes = BytesOf(kept, *device_);
  loader.reset();  // the batch alone keeps the ring
  const int alive = hooked->alive();
  const pid_t child = fork();
  if (child == 0) {
    kept.Release();
    _exit(hooked->alive() == alive ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the child has freed what is the parent's";
  EXPECT_EQ(BytesOf(kept, *device_), bytes);
  kept.Release();
  EXPECT_EQ(hooked->alive(), 0);
}

TEST_P(DeviceDecodeTest, TheDevicesMemoryIsCountedAndFreed) {
  const auto hooked = std::make_shared<HookedDevice>(device_);
  uint64_t without = 0;
  for (const bool decodes : {false, true}) {
    LoaderOptions options = Options();
    options.to_device = {.devices = {hooked}, .decodes = decodes};
    auto loader = Loader::Open(options).value();
    EXPECT_TRUE(*loader->Iterate()->NextOnDevice());
    const uint64_t bytes = loader->CopyStats().device_bytes;
    if (!decodes) without = bytes;
    // Four batches' crops, and the samples of one; 16 rows at least.
    if (decodes) {
      EXPECT_GT(bytes, without + (4 + 4) * 16 * (128 << 10));
    }
  }
  EXPECT_EQ(hooked->alive(), 0);
}

TEST_P(DeviceDecodeTest, WithoutMemoryTheAdviceNamesTheRoomForCrops) {
  RuntimeOptions small = testing::RuntimeUnderTest(2);
  small.memory_budget = 1 << 20;
  for (const bool decodes : {false, true}) {
    LoaderOptions options = Options();
    options.runtime = Runtime::Create(small).value();
    options.to_device = {.devices = {device_}, .decodes = decodes};
    const auto loader = Loader::Open(options);
    ASSERT_FALSE(loader.ok());
    EXPECT_EQ(loader.error().code, Code::kResourceExhausted);
    const std::string advice = loader.error().Advice();
    EXPECT_EQ(advice.find("crop_bytes") != std::string::npos, decodes) << advice;
  }
}

TEST_P(DeviceDecodeTest, RefusesLoadersOfWhichItCouldDecodeNothing) {
  class Map final : public MapFunction {
    std::string Describe() const override { return "to_gray"; }
  };
  DeviceOptions to{.devices = {device_}, .decodes = true};
  const auto refused = [&](LoaderOptions options, const char* why) {
    options.to_device = to;
    const auto loader = Loader::Open(std::move(options));
    ASSERT_FALSE(loader.ok()) << why;
    EXPECT_EQ(loader.error().code, Code::kInvalidArgument);
    EXPECT_NE(loader.error().cause.find(why), std::string::npos) << loader.error().ToString();
    EXPECT_NE(loader.error().advice.find("to_device(…, decode=\"workers\")"), std::string::npos);
  };
  LoaderOptions options = Options();
  options.map = std::make_shared<Map>();
  refused(options, "to_gray");
  options = Options();
  options.views = {options.transforms, options.transforms};
  options.transforms.clear();
  refused(options, "views");
  std::vector<uint8_t> pixels(10 * 8 * 8 * 3);
  options = Options();
  options.source = Arrays({{.name = "image",
                            .dtype = DType::kU8,
                            .row_shape = {8, 8, 3},
                            .data = pixels.data(),
                            .samples = 10}},
                          nullptr)
                       .value();
  refused(options, "in memory");
  const auto with = [&](Transform transform) {
    options = Options();
    options.dtype = DType::kU8;
    options.transforms = {Resize{.height = 30, .width = 30}, std::move(transform)};
    return options;
  };
  refused(with(ColorJitter{{0.5, 1.5}, {1, 1}, {1, 1}, {0, 0}}), "transforms[1], ColorJitter");
  refused(with(RandomGrayscale{.p = 1}), "transforms[1], RandomGrayscale");
  refused(with(PadTo{40, 40}), "transforms[1], PadTo");
  options.transforms = {
      RandomResizedCrop{.height = 30, .width = 30, .interpolation = Interpolation::kBicubic}};
  refused(options, "transforms[0], RandomResizedCrop: a device that decodes images does not");
  options = Options();
  to.crop_bytes = 0;
  refused(options, "crop_bytes is 0; it must be between 1 and 268435456");
  to.crop_bytes = (1U << 28) + 1;
  refused(options, "crop_bytes is 268435457; it must be");
}

TEST_P(DeviceDecodeTest, RealPhotographsHaveTheSameBytes) {
  const auto paths = testing::Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  for (uint64_t id = 0; id < kPhotos; ++id) {
    photos_.Overwrite(id, Text(Packed(testing::ReadFile(paths[id * paths.size() / kPhotos]))));
  }
  LoaderOptions options = Options();
  options.transforms[0] = RandomResizedCrop{.height = 224, .width = 224};
  options.epochs = 2;
  DecodePaths paths_taken = ExpectSame(options, 2);
  EXPECT_EQ(paths_taken.on_device, 2u * kPhotos);
  options.transforms = {Resize{.size = 256}, CenterCrop{.height = 224, .width = 224}, kImageNet};
  paths_taken = ExpectSame(options, 2);
  EXPECT_EQ(paths_taken.on_device, 2u * kPhotos);
}

}  // namespace
}  // namespace stoker
