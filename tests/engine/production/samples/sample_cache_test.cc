// A loader's cache: batches, errors and counts are those of a loader without one, whatever is in
// the cache, and later epochs come from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "io/folder/image_folder.h"
#include "io/memory/arrays.h"
#include "io/tar/tar.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/object_server.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Fingerprint;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::RuntimeUnderTest;
using ::stoker::testing::SmallBatches;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kPhotos = 41;
constexpr uint64_t kMiB = 1 << 20;

// The batches of an epoch: fingerprints, or the message of an error.
using Seen = std::vector<std::string>;

Seen EpochOf(Loader& loader) {
  Seen seen;
  const auto iterator = loader.Iterate();
  while (true) {
    const Result<Batch> batch = iterator->Next();
    if (!batch.ok()) {
      seen.push_back(batch.error().Message());
    } else if (*batch) {
      seen.push_back(std::to_string(Fingerprint(*batch)));
    } else {
      return seen;
    }
  }
}

Seen EpochsOf(Loader& loader, int epochs = 3) {
  Seen all;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (std::string& batch : EpochOf(loader)) all.push_back(std::move(batch));
  }
  return all;
}

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class SampleCacheTest : public ::testing::Test {
 protected:
  // Photographs that are packed, one of them progressive and one a PNG, and one that is not.
  SampleCacheTest() {
    photos_.Overwrite(2, Text(testing::MakePng({.width = 90, .height = 70})));
    photos_.Overwrite(
        9, Text(testing::MakeJpeg(
               {.width = 120, .height = 99, .scans = testing::JpegScans::kProgressive})));
    photos_.Overwrite(
        20,
        Text(testing::MakeJpeg({.width = 77, .height = 80, .color = testing::JpegColor::kCmyk})));
    folder_.Rest();
  }
  static constexpr uint64_t kNotPacked = 1;

  CacheChoice InFolder(uint64_t bytes = 64 * kMiB) const { return {bytes, folder_.Path("cache")}; }

  LoaderOptions Options(std::shared_ptr<const SampleSource> source, int threads = 2) const {
    LoaderOptions options = SmallBatches(std::move(source));
    RuntimeOptions runtime = RuntimeUnderTest(threads);
    runtime.memory_budget = 64 * kMiB;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }
  LoaderOptions Options(int threads = 2) const { return Options(photos_.Source(), threads); }

  LoaderOptions Cached(LoaderOptions options) const {
    options.cache = InFolder();
    return options;
  }

  std::vector<std::string> Stored(const std::string& ending) const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.Path("cache"))) {
      if (entry.path().extension() == ending) files.push_back(entry.path().string());
    }
    return files;
  }

  const PhotoFolder photos_{kPhotos, 3};
  const testing::TempFolder folder_;
};

TEST_F(SampleCacheTest, BatchesAreTheSameAndLaterEpochsComeFromIt) {
  const Seen wanted = EpochsOf(*Loader::Open(Options()).value());
  for (const int threads : {1, 4}) {
    std::filesystem::remove_all(folder_.Path("cache"));
    const auto loader = Loader::Open(Cached(Options(threads))).value();
    EXPECT_EQ(EpochsOf(*loader), wanted);
    const CacheCounts counts = loader->Stats().cache;
    EXPECT_EQ(counts.kept, kPhotos);
    EXPECT_EQ(counts.packed, kPhotos - kNotPacked);
    EXPECT_EQ(counts.samples, kPhotos);
    EXPECT_EQ(counts.bytes, counts.kept_bytes);
    EXPECT_EQ(counts.most_bytes, 64 * kMiB);
    EXPECT_EQ(counts.refused + counts.damaged, 0U);
    // The engine prefetches the fourth epoch, and has begun the second before the first had ended.
    EXPECT_GE(counts.misses, kPhotos);
    EXPECT_GE(counts.hits + counts.misses, 3 * kPhotos);
    EXPECT_LE(counts.misses, 2 * kPhotos);
    EXPECT_EQ(loader->TakeCacheWarning(), std::nullopt);
  }
}

TEST_F(SampleCacheTest, OtherLoadersFindWhatOneHasKept) {
  const Seen wanted = EpochsOf(*Loader::Open(Options()).value(), 1);
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(Options())).value(), 1), wanted);
  LoaderOptions again = Cached(Options());
  again.epochs = 1;
  const auto loader = Loader::Open(again).value();
  EXPECT_EQ(EpochsOf(*loader, 1), wanted);
  const LoaderStats stats = loader->Stats();
  EXPECT_EQ(stats.cache.hits, kPhotos);
  EXPECT_EQ(stats.cache.misses, 0U);
  EXPECT_EQ(stats.cache.kept, 0U);
  EXPECT_EQ(stats.bytes_read, 0U);
  EXPECT_EQ(stats.decoded.packed, kPhotos - kNotPacked - 1);  // JPEGs alone are counted
  EXPECT_EQ(stats.decoded.fast, 0U);
  EXPECT_EQ(stats.decoded.progressive, 0U);  // it is packed, too
}

// Each of two ranks keeps its half in the first epoch, and gets other samples in the second.
TEST_F(SampleCacheTest, RanksShareIt) {
  std::vector<Seen> wanted(2), got(2);
  const auto run = [&](uint32_t rank, bool cached) {
    LoaderOptions options = cached ? Cached(Options()) : Options();
    options.rank = rank;
    options.world = 2;
    options.epochs = 4;
    (cached ? got : wanted)[rank] = EpochsOf(*Loader::Open(options).value(), 4);
  };
  for (const uint32_t rank : {0, 1}) run(rank, false);
  std::thread other([&] { run(1, true); });
  run(0, true);
  other.join();
  EXPECT_EQ(got, wanted);
  LoaderOptions whole = Cached(Options());
  whole.epochs = 1;
  const auto loader = Loader::Open(whole).value();
  (void)EpochOf(*loader);
  EXPECT_EQ(loader->Stats().cache.misses, 0U);
}

TEST_F(SampleCacheTest, TransformsAndDecodingAreThoseOfTheFile) {
  LoaderOptions options = Options();
  options.transforms = {Resize{.size = 16}, CenterCrop{.height = 16, .width = 16}};
  options.decode = DecodeSize::kScaled;
  const Seen scaled = EpochsOf(*Loader::Open(options).value());
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(options)).value()), scaled);
  options.exif_orientation = false;
  const Seen upright = EpochsOf(*Loader::Open(options).value());
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(options)).value()), upright);
}

// Damage at the end of a file that crops at the top do not see, and at its start.
TEST_F(SampleCacheTest, DamagedFilesAreWhatTheyAreWithoutIt) {
  photos_.Overwrite(3, "this is no photograph");
  photos_.Overwrite(11, "");
  std::filesystem::resize_file(photos_.FileOf(17), 400);
  for (const uint64_t id : {5, 6, 7, 8}) {
    const std::string file = photos_.FileOf(id);
    std::filesystem::resize_file(file, std::filesystem::file_size(file) * 3 / 4);
  }
  std::filesystem::remove(photos_.FileOf(23));
  for (const char* const policy : {"fail", "substitute", "drop", "truncated=drop,vanished=drop"}) {
    std::filesystem::remove_all(folder_.Path("cache"));
    LoaderOptions options = Options();
    options.on_bad = BadPolicy::Parse(policy).value();
    options.max_bad_fraction = 1;
    const auto plain = Loader::Open(options).value(),
               cached = Loader::Open(Cached(options)).value();
    EXPECT_EQ(EpochsOf(*cached, 5), EpochsOf(*plain, 5)) << policy;
    EXPECT_EQ(cached->Stats().bad.faults, plain->Stats().bad.faults) << policy;
    EXPECT_GT(cached->Stats().cache.hits, 50U) << policy;
  }
  LoaderOptions options = Options();
  options.limits.accept_truncated = true;
  options.on_bad = BadPolicy::Parse("drop").value();
  options.max_bad_fraction = 1;
  const Seen wanted = EpochsOf(*Loader::Open(options).value(), 5);
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(options)).value(), 5), wanted);
}

// A limit that is lowered applies to what is kept, too.
TEST_F(SampleCacheTest, LimitsApplyToWhatIsKept) {
  (void)EpochsOf(*Loader::Open(Cached(Options())).value(), 1);
  LoaderOptions options = Options();
  options.limits.max_pixels = 3000;
  options.on_bad = BadPolicy::Parse("drop").value();
  options.max_bad_fraction = 1;
  const auto plain = Loader::Open(options).value(), cached = Loader::Open(Cached(options)).value();
  EXPECT_EQ(EpochsOf(*cached), EpochsOf(*plain));
  options.on_bad = {};
  const Seen errors = EpochsOf(*Loader::Open(options).value(), 1);
  EXPECT_THAT(errors, Contains(HasSubstr("max_pixels")));
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(options)).value(), 1), errors);
  EXPECT_GT(plain->Stats().bad.dropped, 0U);
  EXPECT_EQ(cached->Stats().bad.dropped, plain->Stats().bad.dropped);
}

TEST_F(SampleCacheTest, ChangedFilesAreReadAgain) {
  LoaderOptions options = Cached(Options());
  options.epochs = 1;
  (void)EpochOf(*Loader::Open(options).value());
  // Files of the same size, and with the old time of modification.
  for (const uint64_t id : {0, 4}) {
    const std::string path = photos_.FileOf(id);
    const auto time = std::filesystem::last_write_time(path);
    std::string bytes = testing::BytesOfFile(photos_.FileOf(id + 1));
    bytes.resize(std::filesystem::file_size(path), '\0');
    photos_.Overwrite(id, bytes);
    std::filesystem::last_write_time(path, time);
  }
  LoaderOptions plain = Options();
  plain.on_bad = BadPolicy::Parse("drop").value();
  plain.max_bad_fraction = 1;
  plain.epochs = 1;
  const auto loader = Loader::Open(Cached(plain)).value();
  EXPECT_EQ(EpochOf(*loader), EpochOf(*Loader::Open(plain).value()));
  EXPECT_EQ(loader->Stats().cache.misses, 2U);
}

TEST_F(SampleCacheTest, DamagedBytesAreReadFromTheFile) {
  LoaderOptions options = Options();
  options.epochs = 3;
  const Seen wanted = EpochsOf(*Loader::Open(options).value());
  const auto loader = Loader::Open(Cached(options)).value();
  Seen got = EpochOf(*loader);
  for (const std::string& path : Stored(".data")) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const uint64_t bytes = std::filesystem::file_size(path);
    for (uint64_t at = 0; at < bytes; at += 5000) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('\x5A').put('\x00').put('\x5A');
    }
  }
  for (std::string& batch : EpochsOf(*loader, 2)) got.push_back(std::move(batch));
  EXPECT_EQ(got, wanted);
  const CacheCounts counts = loader->Stats().cache;
  EXPECT_GT(counts.damaged, 0U);
  EXPECT_GT(counts.kept, kPhotos);  // the damaged ones again
}

TEST_F(SampleCacheTest, ItMayBeRemovedWhileItIsUsed) {
  const Seen wanted = EpochsOf(*Loader::Open(Options()).value());
  const auto loader = Loader::Open(Cached(Options())).value();
  Seen got = EpochOf(*loader);
  std::filesystem::remove_all(folder_.Path("cache"));
  for (std::string& batch : EpochsOf(*loader, 2)) got.push_back(std::move(batch));
  EXPECT_EQ(got, wanted);
}

TEST_F(SampleCacheTest, WarnsIfItCannotBeWritten) {
  const auto loader = Loader::Open(Cached(Options())).value();
  std::filesystem::remove_all(folder_.Path("cache"));
  (void)EpochOf(*loader);
  EXPECT_THAT(loader->TakeCacheWarning().value_or(""), HasSubstr("removed while it was in use"));
  EXPECT_EQ(loader->TakeCacheWarning(), std::nullopt);
  EXPECT_EQ(loader->Stats().cache.kept, 0U);
}

TEST_F(SampleCacheTest, AFullOneKeepsWhatItHas) {
  const testing::TempFolder photos;
  for (int i = 0; i < 24; ++i) {
    photos.Write(
        "p" + std::to_string(i) + ".jpg",
        testing::MakeJpeg(
            {.width = 400, .height = 300, .quality = 95, .seed = static_cast<uint64_t>(i)}));
  }
  const auto source = [&] { return ImageFolder(photos.path()).value(); };
  const Seen wanted = EpochsOf(*Loader::Open(Options(source())).value());
  LoaderOptions options = Options(source());
  options.cache = InFolder(kMiB);
  const auto loader = Loader::Open(options).value();
  EXPECT_EQ(EpochsOf(*loader), wanted);
  const CacheCounts counts = loader->Stats().cache;
  EXPECT_GT(counts.hits, 0U);
  EXPECT_GT(counts.refused, 0U);
  EXPECT_LT(counts.bytes, kMiB);
  EXPECT_LT(counts.samples, 24U);
}

// So little memory that samples, and packing, wait or are given up.
TEST_F(SampleCacheTest, MemoryMayBeShort) {
  const testing::TempFolder photos;
  for (int i = 0; i < 6; ++i) {
    photos.Write(
        "p" + std::to_string(i) + ".jpg",
        testing::MakeJpeg(
            {.width = 1200, .height = 800, .quality = 95, .seed = static_cast<uint64_t>(i)}));
  }
  LoaderOptions options = Options(ImageFolder(photos.path()).value());
  const Seen wanted = EpochsOf(*Loader::Open(options).value());
  RuntimeOptions small = RuntimeUnderTest(2);
  for (const uint64_t budget : {8 * kMiB, 12 * kMiB, 24 * kMiB}) {
    std::filesystem::remove_all(folder_.Path("cache"));
    small.memory_budget = budget;
    options.runtime = Runtime::Create(small).value();
    options.depth = 1;
    const auto loader = Loader::Open(Cached(options)).value();
    EXPECT_EQ(EpochsOf(*loader), wanted) << budget;
    EXPECT_LE(loader->Stats().memory_peak, budget);
  }
}

// Readers keep archives open, so what they read may be of a file that has been replaced since.
TEST_F(SampleCacheTest, ArchivesOnThisMachineAreReadEachTime) {
  std::string archive;
  for (uint64_t id = 0; id < kPhotos; ++id) {
    archive += testing::TarFile("s" + std::to_string(1000 + id) + ".jpg",
                                testing::BytesOfFile(photos_.FileOf(id)));
  }
  const std::string path = folder_.Write("a.tar", archive + testing::TarEnd());
  LoaderOptions options = Options(Tar(path).value());
  const Seen wanted = EpochsOf(*Loader::Open(options).value());
  const auto loader = Loader::Open(Cached(options)).value();
  EXPECT_EQ(EpochsOf(*loader), wanted);
  EXPECT_EQ(loader->Stats().cache.kept, 0U);
  EXPECT_THAT(loader->TakeCacheWarning().value_or(""), HasSubstr("in archives on this machine"));
}

// Which of a record's features is the image is not part of a key.
TEST_F(SampleCacheTest, RefusesRecords) {
  const std::string path =
      folder_.Write("a.tfrecord", testing::ImageRecord(testing::BytesOfFile(photos_.FileOf(0)), 1));
  const auto loader = Loader::Open(Cached(Options(TfRecord(path).value())));
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, Code::kUnimplemented);
  EXPECT_THAT(loader.error().Message(), HasSubstr("are records"));
}

TEST_F(SampleCacheTest, KeepsObjects) {
  std::string archive;
  for (uint64_t id = 0; id < kPhotos; ++id) {
    archive += testing::TarFile("s" + std::to_string(1000 + id) + ".jpg",
                                testing::BytesOfFile(photos_.FileOf(id)));
  }
  archive += testing::TarEnd();
  testing::ObjectServer server(
      [&](const testing::ObjectServer::Get& get) { return server.Part(archive, get); });
  const auto open = [&] { return Tar(server.url() + "/a.tar").value(); };
  LoaderOptions options = Options(open());
  options.epochs = 3;
  const Seen wanted = EpochsOf(*Loader::Open(options).value());
  EXPECT_EQ(EpochsOf(*Loader::Open(Cached(options)).value()), wanted);
  options.source = open();
  const auto loader = Loader::Open(Cached(options)).value();
  const uint64_t before = server.requests();
  EXPECT_EQ(EpochsOf(*loader), wanted);
  EXPECT_EQ(server.requests(), before);
}

TEST_F(SampleCacheTest, RefusesSamplesWithoutFiles) {
  std::vector<uint8_t> pixels(size_t{4} * 8 * 8 * 3);
  LoaderOptions options = Options();
  options.source = Arrays({{.name = "image",
                            .dtype = DType::kU8,
                            .row_shape = {8, 8, 3},
                            .data = pixels.data(),
                            .samples = 4}},
                          nullptr)
                       .value();
  const auto arrays = Loader::Open(Cached(options));
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.error().code, Code::kInvalidArgument);
  EXPECT_THAT(arrays.error().Message(), HasSubstr("in memory already"));
}

TEST_F(SampleCacheTest, FoldersThatCannotBeUsedAreErrors) {
  LoaderOptions options = Options();
  options.cache = {kMiB, folder_.Write("file", "no folder")};
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_THAT(loader.error().Message(), HasSubstr(folder_.Path("file")));
}

TEST_F(SampleCacheTest, MoreMemoryThanThereIsIsAnError) {
  LoaderOptions options = Options();
  options.cache = CacheChoice::Parse("ram:1000TB").value();
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, Code::kResourceExhausted);
  EXPECT_THAT(loader.error().Message(), HasSubstr("/stoker-"));
}

// Other tests may use the folder at the same time.
TEST_F(SampleCacheTest, KeepsSamplesInMemory) {
  const Seen wanted = EpochsOf(*Loader::Open(Options()).value());
  LoaderOptions options = Options();
  options.cache = CacheChoice::Parse("ram:16MiB").value();
  const auto loader = Loader::Open(options).value();
  EXPECT_EQ(EpochsOf(*loader), wanted);
  EXPECT_GE(loader->Stats().cache.hits, kPhotos);
  EXPECT_EQ(loader->Stats().cache.place, "ram:16MiB");
}

// Loaders end while samples are being looked up, read and kept.
TEST_F(SampleCacheTest, EndsAtAnyMoment) {
  const LoaderOptions options = Cached(Options(4));
  for (int round = 0; round < 30; ++round) {
    const auto loader = Loader::Open(options).value();
    const auto iterator = loader->Iterate();
    for (int i = 0; i <= round % 7; ++i) ASSERT_TRUE(iterator->Next().ok());
  }
}

}  // namespace
}  // namespace stoker
