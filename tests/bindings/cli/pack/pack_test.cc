// `stoker pack` and `stoker unpack`: what goes in comes out, whatever happens in between.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/pack/check_set.h"
#include "bindings/cli/pack/list_set.h"
#include "bindings/cli/pack/pack_folder.h"
#include "bindings/cli/pack/set_folder.h"
#include "bindings/cli/synth/photograph.h"
#include "bindings/cli/unpack/unpack_set.h"
#include "bindings/cli/verify/verify.h"
#include "io/folder/image_folder.h"
#include "io/packed/open_packed.h"
#include "io/packed/packed.h"
#include "io/packed/packed_index.h"
#include "io/select/combine.h"
#include "io/select/subset.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/make_packed.h"
#include "tests/testing/storage/temp_folder.h"
#include "transforms/decode/image_decoder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::BytesOfFile;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using testing::ExitCodeOfChild;
using ::testing::HasSubstr;
using Contents = std::map<std::string, std::string>;  // of a folder's files, by path

std::string PhotoText(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

Contents ContentsOf(const std::string& folder) {
  Contents contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    contents[fs::relative(entry.path(), folder).string()] = BytesOfFile(entry.path());
  }
  return contents;
}

std::vector<uint8_t> PixelsOf(std::vector<uint8_t> png) {
  const size_t size = png.size();
  png.resize(size + kBufferPadding);
  ImageDecoder decoder;
  const Result<ImageInfo> info = decoder.Open(std::span<const uint8_t>(png).first(size));
  if (!info.ok()) return {};
  std::vector<uint8_t> pixels(size_t{3} * static_cast<size_t>(info->size.width) *
                              static_cast<size_t>(info->size.height));
  EXPECT_TRUE(
      decoder.DecodeUnchanged({0, 0, info->size.width, info->size.height}, pixels.data()).ok());
  return pixels;
}

class PackTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kShardBytes = 4000;  // a few photographs

  // Sixteen photographs in two classes, one of them with a folder in it.
  PackTest() {
    for (int i = 0; i < 16; ++i) {
      const PhotographRecipe recipe{.width = 20 + i, .height = 30};
      Photo((i % 3 == 0   ? "cat/"
             : i % 3 == 1 ? "dog/"
                          : "dog/puppies/") +
                std::to_string(i) + ".jpg",
            PhotoText(RenderPhotograph(recipe, 1, static_cast<uint64_t>(i))));
    }
    folder_.Rest();
  }

  void Photo(const std::string& path, const std::string& bytes) const {
    folder_.Write("photos/" + path, bytes);
  }
  std::string Photos() const { return folder_.Path("photos"); }
  std::string Set() const { return folder_.Path("set"); }

  Result<PackReport> Pack(PackOptions options = {}, const PackProgress& progress = {}) const {
    if (options.shard_bytes == PackOptions().shard_bytes) options.shard_bytes = kShardBytes;
    return PackFolder(Photos(), Set(), options, progress);
  }
  Error PackError(const PackOptions& options = {}) const {
    const Result<PackReport> report = Pack(options);
    EXPECT_FALSE(report.ok());
    return report.ok() ? Error{Code::kCancelled, "there is none"} : report.error();
  }
  std::string ListText() const {
    std::string text;
    const PackedIndex index = PackedIndex::Open(Set() + "/index.stoker").value();
    EXPECT_TRUE(WriteSetText(index, [&](std::string_view piece) {
                  text += piece;
                  return Status();
                }).ok());
    return text;
  }
  // That the set is what the folder is, in one way or another.
  void ExpectEqual(const std::string& photos, const std::string& set) const {
    const auto folder = ImageFolder(photos).value();
    const auto opened = Packed(set);
    ASSERT_TRUE(opened.ok()) << opened.error().ToString();
    EXPECT_EQ((*opened)->Fingerprint(), folder->Fingerprint());
    EXPECT_EQ((*opened)->classes(), folder->classes());
    EXPECT_EQ(CheckSet(set)->damaged, 0u);
    const std::string out = folder_.Path("unpacked");
    fs::remove_all(out);
    const Result<UnpackReport> unpacked = UnpackSet(set, out, 3);
    ASSERT_TRUE(unpacked.ok()) << unpacked.error().ToString();
    EXPECT_EQ(ContentsOf(out), ContentsOf(photos));
  }

  testing::TempFolder folder_;
};

TEST_F(PackTest, GivesBackEveryFile) {
  Photo("cat/drawing.png", PhotoText(testing::MakePng()));
  Photo("cat/page.webp", PhotoText(testing::MakeWebp()));
  Photo("dog/empty.jpg", "");
  Photo("dog/text.jpg", "no image");
  Photo("dog/odd name\n\xff.jpg", BytesOfFile(Photos() + "/cat/0.jpg").substr(0, 300));
  const Result<PackReport> report = Pack();
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->samples, 21u);
  EXPECT_EQ(report->added, 21u);
  EXPECT_GT(report->shards, 3u);
  uint64_t as_they_are = 0;
  for (const auto& [reason, count] : report->as_they_are) as_they_are += count;
  EXPECT_EQ(as_they_are, 4u);
  EXPECT_EQ(report->packed + as_they_are, 21u);
  EXPECT_EQ(report->equal, 0u);
  ExpectEqual(Photos(), Set());
}

// Its compressed data have a byte too many, as no parameters of zlib make it.
TEST_F(PackTest, APngThatIsNotRestoredToTheByteHasEqualPixels) {
  const std::vector<uint8_t> plain = testing::MakePng({.width = 200, .height = 90});
  const std::vector<uint8_t> odd =
      testing::WithChunk(plain, "IEND", testing::PngChunk("IDAT", std::vector<uint8_t>(1, 7)));
  Photo("cat/odd.png", PhotoText(odd));
  Photo("cat/plain.png", PhotoText(plain));
  const Result<PackReport> report = Pack();
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->packed, 18u);
  EXPECT_EQ(report->equal, 1u);
  EXPECT_EQ(Pack()->equal, 1u) << "a later run says it, too";
  const SetCheck check = CheckSet(Set()).value();
  EXPECT_EQ(check.damaged, 0u);
  EXPECT_EQ(check.equal.count, 1u);
  EXPECT_EQ(check.equal.other_zlib, 0u);
  EXPECT_THAT(ListText(), HasSubstr(" equal "));
  const std::string out = folder_.Path("unpacked");
  const Result<UnpackReport> unpacked = UnpackSet(Set(), out, 2);
  ASSERT_TRUE(unpacked.ok()) << unpacked.error().ToString();
  EXPECT_EQ(unpacked->equal.count, 1u);
  Contents files = ContentsOf(out), wanted = ContentsOf(Photos());
  EXPECT_NE(files["cat/odd.png"], wanted["cat/odd.png"]);
  const std::string& restored = files["cat/odd.png"];
  ASSERT_FALSE(PixelsOf(odd).empty());
  EXPECT_EQ(PixelsOf({restored.begin(), restored.end()}), PixelsOf(odd));
  wanted.erase("cat/odd.png");
  files.erase("cat/odd.png");
  EXPECT_EQ(files, wanted);
}

TEST_F(PackTest, ExactStoresThePngThatIsNotRestored) {
  const std::vector<uint8_t> odd =
      testing::WithChunk(testing::MakePng({.width = 200, .height = 90}), "IEND",
                         testing::PngChunk("IDAT", std::vector<uint8_t>(1, 7)));
  Photo("cat/odd.png", PhotoText(odd));
  const Result<PackReport> report = Pack({.exact = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->packed, 17u);
  EXPECT_EQ(report->equal, 0u);
  ExpectEqual(Photos(), Set());
}

TEST_F(PackTest, ExactRefusesASetThatWasPackedWithout) {
  const std::vector<uint8_t> odd =
      testing::WithChunk(testing::MakePng({.width = 200, .height = 90}), "IEND",
                         testing::PngChunk("IDAT", std::vector<uint8_t>(1, 7)));
  ASSERT_TRUE(Pack().ok());
  EXPECT_TRUE(Pack({.exact = true}).ok()) << "all come back to the byte";
  Photo("cat/odd.png", PhotoText(odd));
  ASSERT_TRUE(Pack({.append = true}).ok());
  for (const bool append : {false, true}) {
    const Error error = PackError({.append = append, .exact = true});
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_THAT(error.cause, HasSubstr("begun without --exact"));
    EXPECT_THAT(error.cause, HasSubstr("'cat/odd.png'"));
  }
}

// The index has another checksum or size, as if zlib had compressed otherwise.
TEST_F(PackTest, PngsOfAnotherVersionOfZlibAreRestoredToEqualPixels) {
  const std::vector<uint8_t> png = testing::MakePng({.width = 200, .height = 90});
  Photo("cat/00.png", PhotoText(png));
  ASSERT_EQ(Pack()->equal, 0u);
  const std::string path = Set() + "/index.stoker", out = folder_.Path("unpacked");
  const PackedIndex index = PackedIndex::Open(path).value();
  for (const bool is_size : {false, true}) {
    std::vector<packed_set::Sample> samples = index.samples();
    const auto sample =
        std::ranges::find(samples, packed_set::Form::kPackedPng, &packed_set::Sample::form);
    ASSERT_NE(sample, samples.end());
    (is_size ? sample->file_bytes : sample->file_crc) += 1;
    ASSERT_TRUE(WritePackedIndex(path, index.list(), index.shards(), samples).ok());
    fs::remove_all(out);
    const Result<UnpackReport> unpacked = UnpackSet(Set(), out);
    ASSERT_TRUE(unpacked.ok()) << unpacked.error().ToString();
    EXPECT_EQ(unpacked->files, 17u);
    EXPECT_EQ(unpacked->equal.count, 1u);
    EXPECT_EQ(unpacked->equal.other_zlib, 1u);
    EXPECT_THAT(unpacked->equal.Text(),
                HasSubstr("again: 1 that came back to the byte with another version"));
    const SetCheck check = CheckSet(Set()).value();
    EXPECT_EQ(check.damaged, 1u) << "the shard says otherwise";
    EXPECT_EQ(check.equal.other_zlib, 1u);
  }
}

// Older versions of stoker refuse sets with packed PNGs, and read all others.
TEST_F(PackTest, OnlySetsWithPackedPngsHaveTheNewVersion) {
  const auto version = [this](const char* name) { return int{BytesOfFile(Set() + name)[8]}; };
  ASSERT_TRUE(Pack().ok());
  EXPECT_EQ(version("/index.stoker"), 2);
  EXPECT_EQ(version("/00000.stoker"), 2);
  Photo("cat/00.png", PhotoText(testing::MakePng({.width = 200, .height = 90})));
  const Result<PackReport> report = Pack({.append = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(version("/index.stoker"), 4);
  EXPECT_EQ(version("/00000.stoker"), 2) << "shards are never changed";
  std::string last = std::to_string(report->shards - 1);
  last.insert(0, 5 - last.size(), '0');
  EXPECT_EQ(version(("/" + last + ".stoker").c_str()), 4);
}

TEST_F(PackTest, KnowsSizesAndOrientations) {
  ASSERT_TRUE(Pack().ok());
  const auto source = Packed(Set()).value();
  std::string name;
  source->NameOf(1, name);
  ASSERT_EQ(name, "cat/12.jpg");
  const ImageFacts facts = source->FactsOf(1);
  EXPECT_EQ(facts.file_bytes, fs::file_size(Photos() + "/cat/12.jpg"));
  EXPECT_EQ(facts.width, 32u);
  EXPECT_EQ(facts.height, 30u);
  EXPECT_EQ(facts.format, 1u);
}

TEST_F(PackTest, PixelsAreThoseOfTheFolder) {
  ASSERT_TRUE(Pack().ok());
  const auto source = Packed(Set()).value();
  const VerifyReport report = Verify(*source).value();
  EXPECT_EQ(report.checked, 16u);
  EXPECT_TRUE(report.bad.empty());
}

// As an index does that another version has made, which read the EXIF otherwise.
TEST_F(PackTest, PixelsDoNotDependOnTheOrientationInTheIndex) {
  for (int i = 0; i < 4; ++i) {
    const PhotographRecipe recipe{.width = 64, .height = 400};
    Photo("cat/tall" + std::to_string(i) + ".jpg",
          PhotoText(RenderPhotograph(recipe, 1, static_cast<uint64_t>(i))));
  }
  ASSERT_TRUE(Pack().ok());
  const std::string path = Set() + "/" + packed_set::kIndexName;
  const auto index = OpenPackedIndex(Set()).value();
  std::vector<packed_set::Sample> samples = index->samples();
  for (packed_set::Sample& sample : samples) sample.orientation = 3;  // rows from the other end
  ASSERT_TRUE(WritePackedIndex(path, index->list(), index->shards(), samples).ok());
  const auto turned = Packed(Set()).value();
  ASSERT_EQ(turned->FactsOf(0).orientation, 3);
  const auto epoch = [](const Result<std::shared_ptr<const SampleSource>>& source) {
    LoaderOptions options = testing::SmallBatches(source.value());
    options.transforms = {RandomCrop{.height = 16, .width = 16}};
    return testing::TakeEpoch(*Producer::Open(std::move(options)).value());
  };
  EXPECT_EQ(epoch(turned), epoch(ImageFolder(Photos())));
}

TEST_F(PackTest, DoesNotDependOnThreads) {
  ASSERT_TRUE(Pack({.threads = 1}).ok());
  const Contents one = ContentsOf(Set());
  for (const int threads : {2, 7}) {
    fs::remove_all(Set());
    ASSERT_TRUE(Pack({.threads = threads}).ok());
    EXPECT_EQ(ContentsOf(Set()), one) << threads;
  }
}

TEST_F(PackTest, PacksNothingTwice) {
  ASSERT_TRUE(Pack().ok());
  const Contents before = ContentsOf(Set());
  EXPECT_EQ(Pack()->added, 0u);
  EXPECT_EQ(ContentsOf(Set()), before);
  // The same photograph with another time is read, and found to be the same.
  fs::last_write_time(Photos() + "/cat/0.jpg", fs::file_time_type::clock::now());
  EXPECT_EQ(Pack()->added, 0u);
  EXPECT_EQ(ContentsOf(Set()), before);
  Photo("cat/0.jpg", "another one");
  const Error error = PackError();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.file, Photos() + "/cat/0.jpg");
  EXPECT_THAT(error.cause, HasSubstr("has another sample under this path"));
  EXPECT_EQ(ContentsOf(Set()), before);
}

// ---- Interrupted, and continued

// A time of modification in the future says nothing about a later change.
TEST_F(PackTest, NoticesAReplacedPhotographWithATimeInTheFuture) {
  const std::string path = Photos() + "/cat/0.jpg";
  const auto future = fs::file_time_type::clock::now() + std::chrono::hours(100'000);
  fs::last_write_time(path, future);
  folder_.Rest();
  ASSERT_TRUE(Pack().ok());
  std::string other = BytesOfFile(path);
  other.back() ^= 1;
  Photo("cat/0.jpg", other);
  fs::last_write_time(path, future);
  EXPECT_THAT(PackError().cause, HasSubstr("has another sample under this path"));
}

TEST_F(PackTest, ContinuesWhereItWasInterrupted) {
  ASSERT_TRUE(Pack({.threads = 1}).ok());
  const Contents whole = ContentsOf(Set());
  for (const uint64_t last : {1, 8, 9, 16}) {
    fs::remove_all(Set());
    const Result<PackReport> stopped =
        Pack({.threads = 1}, [last](uint64_t done, uint64_t) { return done < last; });
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.error().code, Code::kCancelled);
    EXPECT_FALSE(fs::exists(Set() + "/index.stoker"));
    EXPECT_FALSE(Packed(Set()).ok());
    ASSERT_TRUE(Pack({.threads = 1}).ok());
    EXPECT_EQ(ContentsOf(Set()), whole);
  }
}

// As kill(1) does.
TEST_F(PackTest, ContinuesWhereItWasKilled) {
  ASSERT_TRUE(Pack({.threads = 1}).ok());
  const Contents whole = ContentsOf(Set());
  fs::remove_all(Set());
  EXPECT_EQ(ExitCodeOfChild([&] {
              (void)Pack({.threads = 1}, [](uint64_t done, uint64_t) {
                if (done > 8) _exit(42);
                return true;
              }).ok();
              return 0;
            }),
            42);
  const Contents left = ContentsOf(Set());
  EXPECT_FALSE(left.empty());
  EXPECT_FALSE(left.contains("index.stoker"));
  const Result<PackReport> report = Pack({.threads = 1});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_LT(report->added, 16u);
  EXPECT_EQ(ContentsOf(Set()), whole);
}

TEST_F(PackTest, RemovesWhatAKilledRunLeft) {
  ASSERT_TRUE(Pack().ok());
  folder_.Write("set/.stoker-0123456789abcdef.part", "half a shard");
  ASSERT_TRUE(Pack().ok());
  EXPECT_FALSE(fs::exists(Set() + "/.stoker-0123456789abcdef.part"));
}

// A file may have so many bytes, as if the disk were full.
TEST_F(PackTest, AFullDiskIsAnErrorAfterWhichItContinues) {
  EXPECT_EQ(ExitCodeOfChild([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{.rlim_cur = kShardBytes / 2, .rlim_max = kShardBytes / 2};
              setrlimit(RLIMIT_FSIZE, &limit);
              const Result<PackReport> report = Pack();
              if (report.ok()) return 1;
              const Error& error = report.error();
              return error.file.starts_with(Set() + "/00000.stoker") &&
                             error.cause.find("cannot write") != std::string::npos
                         ? 42
                         : 2;
            }),
            42);
  EXPECT_TRUE(fs::is_empty(Set()));
  ASSERT_TRUE(Pack().ok());
  ExpectEqual(Photos(), Set());
}

TEST_F(PackTest, APhotographThatCannotBeReadEndsIt) {
  fs::create_symlink("/nowhere/1.jpg", Photos() + "/dog/link.jpg");
  const Error error = PackError();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.file, Photos() + "/dog/link.jpg");
  fs::remove(Photos() + "/dog/link.jpg");
  ASSERT_TRUE(Pack().ok());
  ExpectEqual(Photos(), Set());
}

TEST_F(PackTest, RefusesFilesThatAreTooLarge) {
  Photo("dog/large.jpg", "");
  if (truncate((Photos() + "/dog/large.jpg").c_str(), int64_t{1} << 32) != 0) {
    GTEST_SKIP() << "this file system has no such large files";
  }
  const Error error = PackError();
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.file, Photos() + "/dog/large.jpg");
}

// ---- Adding photographs

TEST_F(PackTest, AppendsNewPhotographsOfTheFolder) {
  ASSERT_TRUE(Pack().ok());
  const Contents before = ContentsOf(Set());
  Photo("cat/new.jpg", BytesOfFile(Photos() + "/cat/0.jpg"));
  Photo("ant/1.png", PhotoText(testing::MakePng()));  // a class before all others
  const Error error = PackError();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.file, Set());
  EXPECT_THAT(error.cause, HasSubstr("has 2 samples that it has not"));
  EXPECT_EQ(ContentsOf(Set()), before);
  const Result<PackReport> report = Pack({.append = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->added, 2u);
  EXPECT_EQ(report->samples, 18u);
  ExpectEqual(Photos(), Set());
  for (const auto& [name, bytes] : before) {
    if (name == "index.stoker") continue;
    EXPECT_EQ(BytesOfFile(Set() + "/" + name), bytes) << name;
  }
}

TEST_F(PackTest, AppendsAnotherFolder) {
  ASSERT_TRUE(Pack().ok());
  const auto open = Packed(Set()).value();
  folder_.Write("more/cat/zebra.jpg", "z");
  folder_.Write("more/cow/1.jpg", "c");
  const Result<PackReport> refused = PackFolder(folder_.Path("more"), Set());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().cause, HasSubstr("has 16 samples that are not in"));
  ASSERT_TRUE(PackFolder(folder_.Path("more"), Set(), {.append = true}).ok());
  EXPECT_EQ(open->size(), 16u) << "a set that is open stays as it is";
  Photo("cat/zebra.jpg", "z");
  Photo("cow/1.jpg", "c");
  ExpectEqual(Photos(), Set());
  // Once more changes nothing, and neither does the whole folder.
  EXPECT_EQ(PackFolder(folder_.Path("more"), Set(), {.append = true})->added, 0u);
  EXPECT_EQ(Pack()->added, 0u);
}

TEST_F(PackTest, AnInterruptedAppendKeepsTheSet) {
  ASSERT_TRUE(Pack().ok());
  const uint64_t before = Packed(Set()).value()->Fingerprint();
  for (int i = 0; i < 8; ++i) Photo("dog/z" + std::to_string(i) + ".jpg", std::string(3000, 'z'));
  const Result<PackReport> stopped =
      Pack({.threads = 1, .append = true}, [](uint64_t done, uint64_t) { return done < 24; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(Packed(Set()).value()->Fingerprint(), before);
  ASSERT_TRUE(Pack({.append = true}).ok());
  ExpectEqual(Photos(), Set());
}

TEST_F(PackTest, RefusesFlatFoldersBesideClasses) {
  ASSERT_TRUE(Pack().ok());
  const Contents before = ContentsOf(Set());
  folder_.Write("flat/1.jpg", "1");
  const Result<PackReport> report = PackFolder(folder_.Path("flat"), Set(), {.append = true});
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().cause, HasSubstr("has class folders"));
  EXPECT_EQ(ContentsOf(Set()), before);
  ASSERT_TRUE(PackFolder(folder_.Path("flat"), folder_.Path("flat-set")).ok());
  ExpectEqual(folder_.Path("flat"), folder_.Path("flat-set"));
}

// What was in a shard that is lost is packed anew, and the index with it.
TEST_F(PackTest, PacksALostShardAnew) {
  ASSERT_TRUE(Pack({.threads = 1}).ok());
  fs::remove(Set() + "/00001.stoker");
  EXPECT_EQ(Packed(Set()).error().code, Code::kNotFound);
  ASSERT_TRUE(Pack({.append = true}).ok());
  ExpectEqual(Photos(), Set());
  fs::remove(Set() + "/index.stoker");
  EXPECT_EQ(Pack()->added, 0u);
  ExpectEqual(Photos(), Set());
}

// ---- What is read of it

TEST_F(PackTest, ALoaderReadsTheRowsOfItsCrops) {
  for (int i = 0; i < 16; ++i) {
    const PhotographRecipe recipe{.width = 150, .height = 300 + i};
    Photo("tall/" + std::to_string(i) + ".jpg",
          PhotoText(RenderPhotograph(recipe, 1, static_cast<uint64_t>(i))));
  }
  Photo("tall/as-it-is.png", PhotoText(testing::MakePng()));
  ASSERT_TRUE(Pack().ok());
  const auto set = Packed(Set()).value();
  uint64_t all = 0;
  for (uint64_t id = 0; id < set->size(); ++id) all += set->RangeOf(id).length;
  const auto producer_of = [](const std::shared_ptr<const SampleSource>& source) {
    LoaderOptions options = testing::SmallBatches(source);
    options.epochs = 1;  // reads nothing ahead
    return Producer::Open(std::move(options)).value();
  };
  const auto wanted = testing::TakeEpoch(*producer_of(ImageFolder(Photos()).value()));
  const auto producer = producer_of(set);
  EXPECT_EQ(testing::TakeEpoch(*producer), wanted);
  EXPECT_LT(producer->Stats().bytes_read, all * 9 / 10);
  // Sources that are made of it read no more.
  std::vector<uint64_t> ids(set->size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto subset = producer_of(Subset(set, ids).value());
  EXPECT_EQ(testing::TakeEpoch(*subset), wanted);
  EXPECT_EQ(subset->Stats().bytes_read, producer->Stats().bytes_read);
  const auto combined = producer_of(Combine({set}).value());
  EXPECT_EQ(testing::TakeEpoch(*combined), wanted);
  EXPECT_EQ(combined->Stats().bytes_read, producer->Stats().bytes_read);
}

// ---- Where a set may be

TEST_F(PackTest, WritesIntoNothingElse) {
  folder_.Write("set/notes.txt", "mine");
  const Error error = PackError();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.cause, HasSubstr("something else in it ('notes.txt')"));
  EXPECT_THAT(ContentsOf(Set()), ElementsAre(::testing::Pair("notes.txt", "mine")));
  const Result<PackReport> inside = PackFolder(Photos(), Photos() + "/set");
  ASSERT_FALSE(inside.ok());
  EXPECT_THAT(inside.error().cause, HasSubstr("would lie in the folder that is packed"));
  EXPECT_FALSE(fs::exists(Photos() + "/set"));
  EXPECT_FALSE(PackFolder(Photos(), Photos()).ok());
}

TEST_F(PackTest, OneProcessAtATime) {
  const Result<SetFolder> other = SetFolder::Open(Set());
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(PackError().code, Code::kFailedPrecondition);
}

// ---- Damage

TEST_F(PackTest, FindsEveryDamagedPhotograph) {
  ASSERT_TRUE(Pack({.threads = 1}).ok());
  const auto source = Packed(Set()).value();
  for (const uint64_t id : {3, 9}) {
    const ByteRange range = source->RangeOf(id);
    std::string path;
    source->PathOf(range.file, path);
    std::string shard = BytesOfFile(path);
    shard[range.offset + range.length / 2] ^= 1;
    folder_.Write(fs::relative(path, folder_.path()), shard);
  }
  EXPECT_EQ(Verify(*source)->bad.size(), 2u) << "it decodes all";
  const SetCheck check = CheckSet(Set()).value();
  EXPECT_EQ(check.samples, 16u);
  EXPECT_EQ(check.damaged, 2u);
  ASSERT_EQ(check.first.size(), 2u);
  EXPECT_THAT(check.first[0].cause, EndsWith("(cat/3.jpg)"));
  const SetCheck short_list = CheckSet(Set(), {.threads = 3, .most_listed = 1}).value();
  EXPECT_EQ(short_list.damaged, 2u);
  ASSERT_EQ(short_list.first.size(), 1u);
  EXPECT_EQ(short_list.first[0].cause, check.first[0].cause);
  const Result<UnpackReport> unpacked = UnpackSet(Set(), folder_.Path("out"));
  ASSERT_FALSE(unpacked.ok());
  EXPECT_EQ(unpacked.error().code, Code::kDataLoss);
}

// The record is sound, but it is not the file that the set says it has.
TEST_F(PackTest, ComparesRestoredFiles) {
  fs::create_directory(Set());
  testing::MakePackedSet(Set(), {{"a/1.jpg", "one"}, {"a/2.jpg", "two"}});
  const PackedIndex index = PackedIndex::Open(Set() + "/index.stoker").value();
  for (int lie = 0; lie < 3; ++lie) {
    std::vector<packed_set::Sample> samples = index.samples();
    if (lie == 0) samples[1].file_crc ^= 1;
    if (lie == 1) samples[1].file_bytes += 1;
    if (lie == 2) samples[1].form = static_cast<packed_set::Form>(9);
    ASSERT_TRUE(
        WritePackedIndex(Set() + "/index.stoker", index.list(), index.shards(), samples).ok());
    EXPECT_EQ(CheckSet(Set())->damaged, 2u) << "the shard says otherwise, and the file is another";
    fs::remove_all(folder_.Path("out"));
    const Result<UnpackReport> unpacked = UnpackSet(Set(), folder_.Path("out"));
    ASSERT_FALSE(unpacked.ok());
    EXPECT_EQ(unpacked.error().code, lie == 2 ? Code::kUnimplemented : Code::kDataLoss);
  }
}

TEST_F(PackTest, UnpacksIntoNewFoldersOnly) {
  ASSERT_TRUE(Pack().ok());
  folder_.Write("out/there", "before");
  const Result<UnpackReport> report = UnpackSet(Set(), folder_.Path("out"));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kInvalidArgument);
  EXPECT_THAT(ContentsOf(folder_.Path("out")), ElementsAre(::testing::Pair("there", "before")));
}

TEST_F(PackTest, AnInterruptedUnpackSaysWhatToRemove) {
  ASSERT_TRUE(Pack().ok());
  const Result<UnpackReport> report =
      UnpackSet(Set(), folder_.Path("out"), 1, [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kCancelled);
  EXPECT_EQ(report.error().file, folder_.Path("out"));
  EXPECT_EQ(report.error().advice, "Remove this folder before you unpack again");
}

TEST_F(PackTest, ListsPhotographs) {
  ASSERT_TRUE(Pack().ok());
  const PackedIndex index = PackedIndex::Open(Set() + "/index.stoker").value();
  std::string text, json;
  ASSERT_TRUE(WriteSetText(index, [&](std::string_view piece) {
                text += piece;
                return Status();
              }).ok());
  ASSERT_TRUE(WriteSetJson("packed(set)", index, [&](std::string_view piece) {
                json += piece;
                return Status();
              }).ok());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 17);
  EXPECT_THAT(text, HasSubstr("cat/12.jpg\n"));
  EXPECT_THAT(json, HasSubstr("\"path\":\"dog/puppies/2.jpg\",\"label\":1,"));
}

}  // namespace
}  // namespace stoker
