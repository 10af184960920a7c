// Samples in tar archives: how members become samples, and the errors of archives that are wrong.
#include "io/sources/tar.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <clocale>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory_budget.h"
#include "io/readers/plain_read.h"
#include "io/sources/input_file.h"
#include "io/sources/shard_index_file.h"
#include "io/sources/shard_pattern.h"
#include "io/sources/tar_members.h"
#include "tests/testing/make_tar.h"
#include "tests/testing/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using stoker::testing::TarEnd;
using stoker::testing::TarFile;
using stoker::testing::TarHeader;
using stoker::testing::TarPaxName;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Source = std::shared_ptr<const SampleSource>;

// Returns the bytes of all samples' images, as a reader reads them.
std::vector<std::string> ImagesOf(const SampleSource& source) {
  std::vector<std::string> images;
  MemoryBudget budget(64 << 20);
  for (uint64_t id = 0; id < source.size(); ++id) {
    const ByteRange range = source.RangeOf(id);
    ReadRequest read;
    read.buffer = GrowingBuffer(budget);
    source.PathOf(range.file, read.path);
    read.offset = range.offset;
    read.length = range.length;
    ReadPlainly(read);
    EXPECT_TRUE(read.status.ok());
    images.emplace_back(reinterpret_cast<const char*>(read.buffer.data()), read.size);
  }
  return images;
}

std::vector<int64_t> LabelsOf(const SampleSource& source) {
  std::vector<int64_t> labels;
  for (uint64_t id = 0; id < source.size(); ++id) labels.push_back(source.LabelOf(id));
  return labels;
}

class TarTest : public ::testing::Test {
 protected:
  std::string Shard(const std::string& bytes, const std::string& name = "a.tar") const {
    return folder_.Write(name, bytes);
  }
  Source Opened(const std::string& bytes, const std::string& image = kTarImages) const {
    Result<Source> source = Tar(Shard(bytes), {.image = image});
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    return source.ok() ? *std::move(source) : nullptr;
  }
  Error Refused(const std::string& bytes, const std::string& image = kTarImages) const {
    const Result<Source> source = Tar(Shard(bytes), {.image = image});
    EXPECT_FALSE(source.ok());
    return source.ok() ? Error{} : source.error();
  }

  const TempFolder folder_;
};

TEST_F(TarTest, GroupsMembersByTheirKeys) {
  const Source source = Opened(TarFile("train/7.cls", "3") + TarFile("train/7.jpg", "image 7") +
                               TarFile("train/7.json", "{}") + TarFile("train/8.JPEG", "image 8") +
                               TarFile("train/8.Cls", " -12\n") + TarEnd());
  EXPECT_EQ(source->size(), 2u);
  EXPECT_THAT(ImagesOf(*source), ElementsAre("image 7", "image 8"));
  EXPECT_THAT(LabelsOf(*source), ElementsAre(3, -12));
  EXPECT_TRUE(source->classes().empty());
  EXPECT_TRUE(source->Skipped().empty());
  EXPECT_EQ(source->Describe(), "tar(" + folder_.path() + "/a.tar)");
}

TEST_F(TarTest, HasNoLabelsWithoutThem) {
  const Source source = Opened(TarFile("1.png", "one") + TarFile("2.webp", "") + TarEnd());
  EXPECT_THAT(ImagesOf(*source), ElementsAre("one", ""));
  EXPECT_FALSE(source->label());
  EXPECT_EQ(source->LabelOf(0), kNoLabel);
}

TEST_F(TarTest, SplitsNamesAsWebDataset) {
  const auto split = [](std::string_view name) {
    const std::optional<MemberName> parts = SplitMemberName(name);
    return parts ? std::string(parts->key) + " " + std::string(parts->extension) : "none";
  };
  EXPECT_EQ(split("a/b.c/d.seg.png"), "a/b.c/d seg.png");
  EXPECT_EQ(split("./a.jpg"), "./a jpg");
  EXPECT_EQ(split("a."), "a ");
  EXPECT_EQ(split("a/__x__.jpg"), "a/__x__ jpg");
  for (const char* none :
       {"", "README", "a.b/c", ".jpg", "a/._b.jpg", "__meta__", "__meta__/a.jpg", "a.jpg/"}) {
    EXPECT_EQ(split(none), "none") << none;
  }
}

TEST_F(TarTest, IgnoresWhatBelongsToNoSample) {
  const Source source =
      Opened(TarFile("__index__", "x") + TarHeader("a/", 0, '5') + TarFile("a/README", "x") +
             TarFile("a/._1.jpg", "x") + TarFile("a/1.jpg", "one") + TarFile("__x__/2.jpg", "x") +
             TarHeader("a/link", 0, '2', "1.jpg") + TarEnd());
  EXPECT_THAT(ImagesOf(*source), ElementsAre("one"));
}

TEST_F(TarTest, TakesTheImageThatIsPreferred) {
  const std::string both =
      TarFile("1.left.png", "left") + TarFile("1.png", "png") + TarFile("1.jpg", "jpg") + TarEnd();
  EXPECT_THAT(ImagesOf(*Opened(both)), ElementsAre("jpg"));
  EXPECT_THAT(ImagesOf(*Opened(both, "webp;png;jpg")), ElementsAre("png"));
  EXPECT_THAT(ImagesOf(*Opened(both, ".LEFT.png")), ElementsAre("left"));
  for (const char* image : {"", ";", "jpg;", "a/b", "a b"}) {
    EXPECT_THAT(Refused(both, image).cause, HasSubstr("list of extensions")) << image;
  }
}

TEST_F(TarTest, CountsSamplesWithoutAnImage) {
  const Source source = Opened(TarFile("1.gif", "x") + TarFile("2.jpg", "two") +
                               TarFile("3.txt", "x") + TarFile("4.\x1b[31m", "x") +
                               TarFile("5.txt", "x") + TarFile("5.json", "x") + TarEnd());
  EXPECT_EQ(source->size(), 1u);
  const SkippedFiles skipped = source->Skipped();
  EXPECT_EQ(skipped.files(), 4u);
  EXPECT_THAT(skipped.Warning(),
              AllOf(HasSubstr("4 samples are skipped, because they have no image; they begin with "
                              ".gif 1, .txt 2, others 1"),
                    HasSubstr("one is " + folder_.path() + "/a.tar: 1"), HasSubstr("image=")));
}

TEST_F(TarTest, RefusesArchivesWithoutImages) {
  EXPECT_THAT(Refused(TarFile("1.gif", "x") + TarEnd()).cause, HasSubstr(".gif 1"));
  const Error error = Refused(TarEnd());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.file, folder_.path() + "/a.tar");
}

TEST_F(TarTest, ReadsLongNames) {
  const std::string folder(300, 'f');
  const Source source =
      Opened(TarFile(folder + "/1.jpg", "one") + TarFile(folder + "/1.cls", "4") +
             TarPaxName(folder + "/2.jpg") + TarFile("short.jpg", "two") +
             TarPaxName(folder + "/2.cls") + TarFile("short.cls", "5") + TarEnd());
  EXPECT_THAT(ImagesOf(*source), ElementsAre("one", "two"));
  EXPECT_THAT(LabelsOf(*source), ElementsAre(4, 5));
}

// libarchive would convert names to the locale's characters, and normalise their accents.
TEST_F(TarTest, NamesAreTheSameInAnyLocale) {
  const std::string accent = "e\xcc\x81";  // a letter and its accent, as two characters
  const std::string archive =
      Shard(TarPaxName(accent + ".jpg") + TarFile("x.jpg", "one") + TarEnd());
  FileStamp stamp;
  const std::string before = std::setlocale(LC_ALL, nullptr);
  for (const char* locale : {"C", "C.UTF-8"}) {
    ASSERT_NE(std::setlocale(LC_ALL, locale), nullptr);
    EXPECT_EQ(ReadTarMembers(InputFile::Open(archive).value(), stamp).value().names,
              accent + ".jpg")
        << locale;
  }
  std::setlocale(LC_ALL, before.c_str());
}

TEST_F(TarTest, SamplesOfSeveralShardsAreInOrder) {
  std::vector<std::string> images;
  std::vector<int64_t> labels;
  for (int shard = 0; shard < 20; ++shard) {
    std::string archive;
    for (int i = 0; i < shard % 4; ++i) {  // some are empty
      images.push_back(std::to_string(shard) + " " + std::to_string(i));
      labels.push_back(100 * shard + i);
      archive += TarFile(std::to_string(i) + ".jpg", images.back()) +
                 TarFile(std::to_string(i) + ".cls", std::to_string(labels.back()));
    }
    Shard(archive + TarEnd(), (shard < 10 ? "s0" : "s") + std::to_string(shard) + ".tar");
  }
  const std::string pattern = folder_.path() + "/s{00..19}.tar";
  const Source one = Tar(pattern, {.threads = 1}).value();
  EXPECT_EQ(ImagesOf(*one), images);
  EXPECT_EQ(LabelsOf(*one), labels);
  for (const int threads : {1, 4, 64}) {  // from the indexes, now
    const Source again = Tar(folder_.path() + "/s*.tar", {.threads = threads}).value();
    EXPECT_EQ(ImagesOf(*again), images);
    EXPECT_EQ(again->Fingerprint(), one->Fingerprint());
  }
  const Source listed = TarArchives(ExpandShards(pattern).value()).value();
  EXPECT_EQ(ImagesOf(*listed), images);
  EXPECT_EQ(listed->Describe(), "tar(" + folder_.path() + "/s00.tar and 19 more)");
  EXPECT_EQ(TarArchives({}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Tar(pattern, {.threads = 257}).error().code, Code::kInvalidArgument);
}

// ---- Faults of an archive

TEST_F(TarTest, RefusesDuplicates) {
  const Error error = Refused(TarFile("1.jpg", "one") + TarFile("1.JPG", "two") + TarEnd());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.offset, 3 * kTarBlock);
  EXPECT_THAT(error.cause, AllOf(HasSubstr("'1'"), HasSubstr("'jpg'")));
}

TEST_F(TarTest, RefusesLabelsForSomeSamplesOnly) {
  const std::string with = TarFile("1.jpg", "x") + TarFile("1.cls", "1");
  const std::string without = TarFile("2.jpg", "x");
  const Error error = Refused(with + without + TarEnd());
  EXPECT_EQ(error.offset, 5 * kTarBlock);
  EXPECT_THAT(error.cause, HasSubstr("'2' has no label (.cls), and '1' has one"));
  EXPECT_THAT(Refused(without + with + TarEnd()).cause, HasSubstr("'1' has a label"));
  // Images, then their labels: no sample has both.
  EXPECT_THAT(Refused(TarFile("1.jpg", "x") + TarFile("2.jpg", "x") + TarFile("1.cls", "1") +
                      TarFile("2.cls", "1") + TarEnd())
                  .advice,
              HasSubstr("side by side"));
}

TEST_F(TarTest, RefusesLabelsForSomeShardsOnly) {
  Shard(TarFile("1.jpg", "x") + TarFile("1.cls", "1") + TarEnd(), "0.tar");
  Shard(TarEnd(), "1.tar");
  Shard(TarFile("2.jpg", "x") + TarEnd(), "2.tar");
  const Error error = Tar(folder_.path() + "/{0..2}.tar").error();
  EXPECT_EQ(error.file, folder_.path() + "/2.tar");
  EXPECT_THAT(error.cause, HasSubstr("'2' has no label (.cls), and '1' in "));
}

TEST_F(TarTest, RefusesLabelsThatAreNoIntegers) {
  const std::string too_long = std::string(64, '0') + "1";
  for (const std::string& label :
       {std::string(), std::string(" "), std::string("cat"), std::string("1.5"), std::string("1 2"),
        std::string("+-1"), std::string("9223372036854775808"), std::string("0x10"), too_long}) {
    const Error error = Refused(TarFile("1.jpg", "x") + TarFile("1.cls", label) + TarEnd());
    EXPECT_EQ(error.code, Code::kInvalidArgument) << label;
    EXPECT_EQ(error.offset, 3 * kTarBlock);
    EXPECT_THAT(error.cause, HasSubstr("'1.cls' is not an integer")) << label;
  }
  for (const char* label : {"-9223372036854775808", "9223372036854775807", "+7", "\t7\r\n"}) {
    Opened(TarFile("1.jpg", "x") + TarFile("1.cls", label) + TarEnd());
  }
}

TEST_F(TarTest, RefusesLinksAndSparseFiles) {
  const std::string one = TarFile("1.jpg", "x");
  for (const char type : {'1', '2', '3', '4', '6'}) {
    const Error error = Refused(one + TarHeader("2.jpg", 0, type, "1.jpg") + TarEnd());
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_EQ(error.offset, 3 * kTarBlock);
    const bool is_link = type == '1' || type == '2';
    EXPECT_THAT(error.advice, HasSubstr(is_link ? "--dereference" : "without it"));
  }
}

TEST_F(TarTest, RefusesArchivesThatAreCutOff) {
  const std::string whole = TarFile("1.jpg", std::string(700, 'x')) + TarFile("1.cls", "1") +
                            TarFile("2.jpg", std::string(100, 'y')) + TarFile("2.cls", "2");
  EXPECT_THAT(LabelsOf(*Opened(whole + TarEnd())), ElementsAre(1, 2));
  for (size_t bytes = 0; bytes < whole.size() + kTarBlock; bytes += 97) {
    const Error error = Refused((whole + TarEnd()).substr(0, bytes));
    EXPECT_EQ(error.code, Code::kDataLoss) << bytes << ": " << error.ToString();
    EXPECT_EQ(error.file, folder_.path() + "/a.tar");
    ASSERT_TRUE(error.offset.has_value());
    EXPECT_LE(*error.offset, bytes);
    EXPECT_GE(*error.offset + 4 * kTarBlock, bytes) << error.ToString();
  }
  const Error header = Refused((whole + TarEnd()).substr(0, 3 * kTarBlock + 100));
  EXPECT_EQ(header.offset, 3 * kTarBlock);
  EXPECT_THAT(header.cause, HasSubstr("cut off: its 1636 bytes end inside the header"));
  const Error error = Refused(whole);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.offset, whole.size());
  EXPECT_THAT(error.advice, HasSubstr("truncate -s +1024"));
  EXPECT_EQ(Opened(whole + std::string(kTarBlock, '\0'))->size(), 2u);
}

TEST_F(TarTest, RefusesArchivesThatWereJoined) {
  const std::string one = TarFile("1.jpg", "x") + TarEnd(), two = TarFile("2.jpg", "x") + TarEnd();
  const Error error = Refused(one + two);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.offset, one.size());
  EXPECT_THAT(error.cause, HasSubstr("joined"));
  EXPECT_EQ(Opened(one + std::string(1 << 20, '\0'))->size(), 1u);  // any padding is allowed
}

TEST_F(TarTest, RefusesDamagedHeaders) {
  std::string bytes = TarFile("1.jpg", "x") + TarFile("2.jpg", "x") + TarEnd();
  bytes[2 * kTarBlock] ^= 1;  // the second name
  const Error error = Refused(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.offset, 2 * kTarBlock);
  EXPECT_THAT(Refused(std::string(2000, 'x')).cause, HasSubstr("not an intact tar archive"));
}

TEST_F(TarTest, RefusesCompressedArchives) {
  for (const auto& [magic, name] :
       {std::pair{"\x1f\x8b\x08", "gzip"}, std::pair{"\x28\xb5\x2f\xfd", "zstd"},
        std::pair{"BZh91AY", "bzip2"}, std::pair{"\xfd\x37\x7a\x58\x5a", "xz"}}) {
    const Error error = Refused(magic + std::string(2000, 'x'));
    EXPECT_EQ(error.code, Code::kUnimplemented);
    EXPECT_THAT(error.cause, HasSubstr(std::string("compressed by ") + name));
    EXPECT_THAT(error.advice, HasSubstr("Decompress it"));
  }
  // A sound archive may begin with the same bytes.
  EXPECT_EQ(Opened(TarFile("BZh.jpg", "x") + TarEnd())->size(), 1u);
}

TEST_F(TarTest, NamesTheFirstShardThatFails) {
  for (int i = 0; i < 40; ++i) {
    const bool bad = i == 13 || i > 20;
    Shard((bad ? "?" : "") + TarFile("1.jpg", "x") + TarEnd(), std::to_string(i) + ".tar");
  }
  for (int run = 0; run < 5; ++run) {
    const Error error = Tar(folder_.path() + "/{0..39}.tar", {.threads = 8}).error();
    EXPECT_EQ(error.file, folder_.path() + "/13.tar");
  }
  const Error missing = Tar(folder_.path() + "/{40..41}.tar").error();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_EQ(missing.file, folder_.path() + "/40.tar");
  EXPECT_EQ(Tar(folder_.path()).error().code, Code::kInvalidArgument);
}

// Whichever byte of the headers changes, the result is samples or an error, and no sample outside
// the archive.
TEST_F(TarTest, SurvivesAnyDamage) {
  const std::string sound = TarFile(std::string(120, 'n') + ".jpg", "x") + TarPaxName("2.jpg") +
                            TarFile("x.jpg", "y") + TarEnd();
  for (size_t at = 0; at < sound.size(); at += 7) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] + 1 + at % 255);
    FileStamp stamp;
    const Result<TarMembers> members = ReadTarMembers(InputFile::Open(Shard(bytes)).value(), stamp);
    if (!members.ok()) {
      EXPECT_FALSE(members.error().file.empty());
      continue;
    }
    for (const TarMembers::Member& member : members->members) {
      EXPECT_LE(member.offset, bytes.size());
      EXPECT_LE(member.length, bytes.size() - member.offset);
    }
  }
}

// ---- The index files

void SetTime(const std::string& path, int64_t seconds) {
  const std::array<timespec, 2> times{timespec{seconds, 5}, timespec{seconds, 5}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
}

TEST_F(TarTest, KeepsAnIndex) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarEnd());
  SetTime(archive, 1000);
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("one"));
  ASSERT_TRUE(fs::exists(ShardIndexPath(archive)));
  // The index is trusted only while size and time are the same.
  Shard(TarFile("2.gif", "two") + TarEnd());
  SetTime(archive, 1000);
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("two"));
  SetTime(archive, 1001);
  EXPECT_FALSE(Tar(archive).ok());
  Shard(TarFile("3.jpg", "three") + TarEnd() + std::string(kTarBlock, '\0'));
  SetTime(archive, 1001);
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("three"));
}

TEST_F(TarTest, GroupsAnewByTheSameIndex) {
  const std::string archive = Shard(TarFile("1.jpg", "jpg") + TarFile("1.png", "png") + TarEnd());
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("jpg"));
  EXPECT_THAT(ImagesOf(*Tar(archive, {.image = "png"}).value()), ElementsAre("png"));
}

TEST_F(TarTest, NeedsNoIndexFile) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarEnd());
  fs::create_directories(ShardIndexPath(archive) + "/in the way");
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("one"));
}

// The archive has no image, but an index says that it has one.
TEST_F(TarTest, BelievesNoIndexThatOthersMayWriteTo) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarEnd());
  const std::string index = ShardIndexPath(archive);
  SetTime(archive, 1000);
  ASSERT_TRUE(Tar(archive).ok());
  const std::string bytes = testing::BytesOfFile(index);
  EXPECT_EQ(fs::status(index).permissions() & fs::perms(0022), fs::perms::none);
  Shard(TarFile("2.gif", "two") + TarEnd());
  SetTime(archive, 1000);
  const auto is_believed = [&](unsigned mode) {
    fs::remove(index);
    folder_.Write("a.tar.stoker-index", bytes);
    fs::permissions(index, fs::perms(mode));
    return Tar(archive).ok();
  };
  EXPECT_TRUE(is_believed(0644));
  EXPECT_TRUE(is_believed(0600));
  for (const unsigned mode : {0664U, 0646U, 0666U}) EXPECT_FALSE(is_believed(mode)) << mode;
  fs::remove(index);
  folder_.Write("elsewhere", bytes);
  fs::create_symlink(folder_.path() + "/elsewhere", index);
  EXPECT_FALSE(Tar(archive).ok());
}

TEST_F(TarTest, IndexesAnewWhenTheIndexIsDamaged) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarFile("1.cls", "1") + TarEnd());
  (void)Tar(archive).value();
  const std::string index = testing::BytesOfFile(ShardIndexPath(archive));
  for (size_t at = 0; at < index.size(); ++at) {
    std::string damaged = index;
    damaged[at] ^= 1;
    folder_.Write("a.tar.stoker-index", damaged);
    EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(1));
    EXPECT_EQ(testing::BytesOfFile(ShardIndexPath(archive)), index) << "it is mended";
    folder_.Write("a.tar.stoker-index", index.substr(0, at));
    EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(1));
  }
}

}  // namespace
}  // namespace stoker
