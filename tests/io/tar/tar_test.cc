// Samples in tar archives: how members become samples, and the errors of archives that are wrong.
#include "io/tar/tar.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "io/files/input_file.h"
#include "io/shards/shard_index_file.h"
#include "io/shards/shard_pattern.h"
#include "io/tar/tar_index_file.h"
#include "io/tar/tar_members.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/read_sample.h"
#include "tests/testing/samples/shard_index_of.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using stoker::testing::ReadSample;
using stoker::testing::TarEnd;
using stoker::testing::TarFile;
using stoker::testing::TarHeader;
using stoker::testing::TarPaxName;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Source = std::shared_ptr<const SampleSource>;

// Returns the bytes of all samples' images, as a reader reads them.
std::vector<std::string> ImagesOf(const SampleSource& source) {
  std::vector<std::string> images;
  MemoryBudget budget(64 << 20);
  for (uint64_t id = 0; id < source.size(); ++id) {
    const ReadRequest read = ReadSample(source, id, budget);
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
                    HasSubstr("for example in " + folder_.path() + "/a.tar: '1.gif'"),
                    HasSubstr("image=")));
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
}

TEST_F(TarTest, NamesMembersThatLieApart) {
  const std::string images = TarFile("1.jpg", "x") + TarFile("2.jpg", "x");
  const std::string labels = TarFile("1.cls", "1") + TarFile("2.cls", "1");
  for (const bool images_first : {true, false}) {
    const Error error = Refused((images_first ? images + labels : labels + images) + TarEnd());
    const char* places = images_first ? "'1.jpg' is at byte 512, and '1.cls' is at byte 2560"
                                      : "'1.cls' is at byte 512, and '1.jpg' is at byte 2560";
    EXPECT_THAT(error.cause, AllOf(HasSubstr("the sample '1' lie apart"), HasSubstr(places)));
    EXPECT_THAT(error.advice, AllOf(HasSubstr("tar --sort=name -cf"), HasSubstr("must differ")));
  }
  const std::string texts = TarFile("1.txt", "a") + TarFile("2.txt", "b");
  const TarOptions options{.label = "", .columns = {{"text", ".txt"}}};
  EXPECT_THAT(Tar(Shard(images + texts + TarEnd()), options).error().cause,
              HasSubstr("the sample '1' lie apart"));
}

TEST_F(TarTest, NamesTheExtensionThatWasTaken) {
  EXPECT_THAT(Refused(TarFile("v1.0.jpg", "x") + TarEnd()).cause,
              HasSubstr("'v1.0.jpg', whose extension is '0.jpg': all after the first dot "
                        "(image=\"0.jpg\" takes it"));
  EXPECT_THAT(Refused(TarFile("1.gif", "x") + TarEnd()).Message(), Not(HasSubstr("dot")));
  const std::string one = TarFile("1.jpg", "x") + TarFile("1.cls", "1");
  EXPECT_THAT(Refused(one + TarFile("2.jpg", "x") + TarFile("2.a.cls", "1") + TarEnd()).cause,
              HasSubstr("'1' has one; it has only 'a.cls', 'jpg'"));
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

// Writes an index of other content, which shows whether it is used.
void WriteFalseIndex(const std::string& archive) {
  FileStamp stamp;
  TarMembers members = ReadTarMembers(InputFile::Open(archive).value(), stamp).value();
  members.labels.assign(members.labels.size(), 99);
  ASSERT_TRUE(WriteTarIndex(archive, members, stamp).ok());
}

TEST_F(TarTest, KeepsAnIndexInTheCacheFolder) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarFile("1.cls", "1") + TarEnd());
  folder_.Rest();
  EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(1));
  ASSERT_TRUE(fs::exists(testing::ShardIndexOf(archive)));
  EXPECT_EQ(fs::status(testing::ShardIndexOf(archive)).permissions(), fs::perms(0600));
  const fs::directory_iterator files(folder_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "nothing is next to the archive";
  WriteFalseIndex(archive);
  EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(99));
  const fs::path here = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_THAT(LabelsOf(*Tar("a.tar").value()), ElementsAre(99)) << "a relative path";
  fs::current_path(here);
}

// The new archive has the size and the time of modification of the old one.
TEST_F(TarTest, IndexesAReplacedArchiveAgain) {
  const auto archive_of = [](const std::string& label) {
    return TarFile("1.jpg", "one") + TarFile("1.cls", label) + TarFile("1.txt", label) + TarEnd();
  };
  const TarOptions options = {.columns = {{"text", ".txt"}}};
  const std::string archive = Shard(archive_of("1"));
  SetTime(archive, 1000);
  folder_.Rest();
  (void)Tar(archive, options).value();
  ASSERT_TRUE(fs::exists(testing::ShardIndexOf(archive, "txt")));
  const std::array<std::function<void(const std::string&)>, 3> ways = {
      [&](const std::string& bytes) { fs::rename(Shard(bytes, "new"), archive); },
      [&](const std::string& bytes) { Shard(bytes); },
      [&](const std::string& bytes) {
        fs::remove(archive);
        Shard(bytes);
      }};
  for (size_t way = 0; way < ways.size(); ++way) {
    for (const bool rests : {true, false}) {
      const std::string label = std::to_string(10 * way + (rests ? 2 : 3));
      ways[way](archive_of(label));
      SetTime(archive, 1000);
      if (rests) folder_.Rest();
      const Source source = Tar(archive, options).value();
      EXPECT_EQ(source->LabelOf(0), std::stoi(label)) << way;
      std::string_view text;
      source->FixedRows(2, std::array<uint64_t, 1>{0}, &text);
      EXPECT_EQ(text, label) << way;
    }
  }
}

// Even if nothing but its label changes, at once, again and again.
TEST_F(TarTest, KeepsNoIndexOfAnArchiveThatHasJustChanged) {
  for (int i = 0; i < 40; ++i) {
    const std::string label = std::to_string(10 + i);
    const std::string archive = Shard(TarFile("1.jpg", "x") + TarFile("1.cls", label) + TarEnd());
    SetTime(archive, 1000);
    EXPECT_EQ(Tar(archive).value()->LabelOf(0), 10 + i);
  }
}

TEST_F(TarTest, GroupsAnewByTheSameIndex) {
  const std::string archive = Shard(TarFile("1.jpg", "jpg") + TarFile("1.png", "png") + TarEnd());
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("jpg"));
  EXPECT_THAT(ImagesOf(*Tar(archive, {.image = "png"}).value()), ElementsAre("png"));
}

TEST_F(TarTest, NeedsNoIndexFile) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarEnd());
  fs::create_directories(testing::ShardIndexOf(archive) + "/in the way");
  EXPECT_THAT(ImagesOf(*Tar(archive).value()), ElementsAre("one"));
}

TEST_F(TarTest, BelievesNoIndexThatOthersMayWriteTo) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarFile("1.cls", "1") + TarEnd());
  const std::string index = testing::ShardIndexOf(archive);
  folder_.Rest();
  WriteFalseIndex(archive);
  const std::string bytes = testing::BytesOfFile(index);
  const auto is_believed = [&](unsigned mode) {
    fs::remove(index);
    folder_.Write(index, bytes);
    fs::permissions(index, fs::perms(mode));
    return Tar(archive).value()->LabelOf(0) == 99;
  };
  EXPECT_TRUE(is_believed(0644));
  EXPECT_TRUE(is_believed(0600));
  for (const unsigned mode : {0664U, 0646U, 0666U}) EXPECT_FALSE(is_believed(mode)) << mode;
  fs::remove(index);
  folder_.Write("elsewhere", bytes);
  fs::create_symlink(folder_.path() + "/elsewhere", index);
  EXPECT_EQ(Tar(archive).value()->LabelOf(0), 1);
}

// Where the file system keeps no times of changes, parts of the content are compared.
TEST_F(TarTest, ComparesContentWhereStampsAreNoProof) {
  constexpr std::array<char, 8> kMagic = {'T', 'E', 'S', 'T'};
  const std::string path = Shard(std::string(100'000, 'x'));
  const InputFile shard = InputFile::Open(path).value();
  FileStamp stamp = shard.Stamp().value();
  EXPECT_EQ(shard.ContentHash(stamp).value() != 0, !stamp.is_proof());
  stamp.inode = 0;
  ShardIndexHeader header{
      .magic = kMagic, .shard = stamp, .content = shard.ContentHash(stamp).value()};
  std::vector<uint8_t> index(sizeof(header));
  std::memcpy(index.data(), &header, sizeof(header));
  ASSERT_TRUE(SignShardIndex(index, stamp));
  const auto is_valid = [&] {
    const auto bytes = ReadShardIndex(shard, kMagic, stamp);
    return bytes.has_value() && !bytes->empty();
  };
  const std::string place = folder_.Write(ShardIndexPath(path, stamp), index);
  fs::permissions(place, fs::perms(0600));
  EXPECT_TRUE(is_valid());
  for (const size_t at : {size_t{0}, size_t{25'000}, size_t{50'000}, size_t{99'999}}) {
    std::string changed(100'000, 'x');
    changed[at] = 'y';
    Shard(changed);  // in place: `shard` reads it
    EXPECT_FALSE(is_valid()) << at;
  }
  Shard(std::string(100'000, 'x'));
  EXPECT_TRUE(is_valid());
}

TEST(HashOfParts, ReadsASmallFileWholeAndOnce) {
  for (const size_t bytes : {0, 1, 16 << 10, 80 << 10, (80 << 10) + 1}) {
    std::string content(bytes, 'x');
    size_t reads = 0;
    const auto hash = [&] {
      reads = 0;
      return HashOfParts(bytes,
                         [&](uint64_t offset, std::span<uint8_t> to) -> Result<size_t> {
                           ++reads;
                           content.copy(reinterpret_cast<char*>(to.data()), to.size(), offset);
                           return to.size();
                         })
          .value();
    };
    const uint64_t before = hash();
    EXPECT_EQ(reads, bytes > 80 << 10 ? 5U : 1U) << bytes;
    for (size_t at = 0; at < bytes && reads == 1; at += 997) {
      content[at] = 'y';
      EXPECT_NE(hash(), before) << at;
      content[at] = 'x';
    }
  }
}

// Gives the process a cache folder, or none.
class ShardIndexFolder : public TarTest {
 protected:
  ~ShardIndexFolder() override { setenv("XDG_CACHE_HOME", cache_.c_str(), 1); }

  // The labels of an archive that is opened twice, and whether an index was kept.
  bool KeepsIndex() const {
    const std::string archive = Shard(TarFile("1.jpg", "x") + TarFile("1.cls", "7") + TarEnd());
    folder_.Rest();
    for (int i = 0; i < 2; ++i) EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(7));
    return fs::exists(testing::ShardIndexOf(archive));
  }
  std::string Index(const std::string& name) const {
    return folder_.Path("c/stoker/index/" + name);
  }

 private:
  const std::string cache_ =
      std::getenv("XDG_CACHE_HOME") == nullptr ? "" : std::getenv("XDG_CACHE_HOME");
};

TEST_F(ShardIndexFolder, NeedNotBeThere) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_FALSE(KeepsIndex());
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_FALSE(KeepsIndex());
  EXPECT_FALSE(fs::exists("relative"));
  setenv("HOME", folder_.path().c_str(), 1);
  EXPECT_TRUE(KeepsIndex()) << "in ~/.cache";
  EXPECT_TRUE(fs::exists(folder_.path() + "/.cache/stoker/index"));
  setenv("XDG_CACHE_HOME", folder_.Write("file", "in the way").c_str(), 1);
  EXPECT_FALSE(KeepsIndex());
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

TEST_F(ShardIndexFolder, IsMadeForItsOwnerOnly) {
  setenv("XDG_CACHE_HOME", folder_.Path("c").c_str(), 1);
  const mode_t before = umask(0);
  EXPECT_TRUE(KeepsIndex());
  umask(before);
  for (const char* folder : {"c", "c/stoker", "c/stoker/index"}) {
    EXPECT_EQ(fs::status(folder_.Path(folder)).permissions(), fs::perms(0700)) << folder;
  }
}

TEST_F(ShardIndexFolder, LosesWhatNobodyUses) {
  setenv("XDG_CACHE_HOME", folder_.Path("c").c_str(), 1);
  EXPECT_TRUE(KeepsIndex());
  const auto days_ago = [](int days) {
    return fs::file_time_type::clock::now() - std::chrono::hours(24 * days + 1);
  };
  const std::string used = testing::ShardIndexOf(folder_.path() + "/a.tar");
  const std::string temporary = ".stoker-0123456789abcdef.part";
  fs::last_write_time(used, days_ago(89));
  for (const auto& [name, days] : std::vector<std::pair<std::string, int>>{
           {"old.stoker-index", 90}, {"newer.stoker-index", 89}, {"other", 900}, {temporary, 1}}) {
    fs::last_write_time(folder_.Write("c/stoker/index/" + name, ""), days_ago(days));
  }
  fs::create_directory(Index("folder.stoker-index"));
  fs::last_write_time(Index("folder.stoker-index"), days_ago(900));
  EXPECT_EQ(Tar(folder_.path() + "/a.tar").value()->size(), 1U);
  EXPECT_GT(fs::last_write_time(used), days_ago(1)) << "it was used";
  const auto write = [&] {
    (void)Tar(Shard(TarFile("1.jpg", "x") + TarEnd(), "b.tar")).value();
    folder_.Rest();
    (void)Tar(folder_.path() + "/b.tar").value();
  };
  write();
  EXPECT_TRUE(fs::exists(Index("old.stoker-index"))) << "it was swept today";
  fs::last_write_time(Index(".swept"), days_ago(1));
  write();
  EXPECT_FALSE(fs::exists(Index("old.stoker-index")));
  EXPECT_FALSE(fs::exists(Index(temporary)));
  for (const char* name : {"newer.stoker-index", "other", "folder.stoker-index"}) {
    EXPECT_TRUE(fs::exists(Index(name))) << name;
  }
  EXPECT_TRUE(fs::exists(used));
}

TEST_F(ShardIndexFolder, HasAnIndexForEachStampUnderAPath) {
  constexpr std::array<char, 8> kMagic = {'T', 'E', 'S', 'T'};
  const std::string path = Shard("x");
  const InputFile shard = InputFile::Open(path).value();
  const FileStamp ours{.bytes = 1, .changed_ns = 5, .inode = 7};
  const FileStamp theirs{.bytes = 1, .changed_ns = 5, .inode = 8};
  for (const FileStamp& stamp : {ours, theirs}) {
    ASSERT_TRUE(WriteShardIndex(path, PackShardIndex(kMagic, stamp, {}, {})).ok());
  }
  for (const FileStamp& stamp : {ours, theirs}) {
    EXPECT_FALSE(ReadShardIndex(shard, kMagic, stamp).value_or(std::vector<uint8_t>()).empty());
  }
  EXPECT_EQ(ShardIndexPath("/a/./b/../c.tar", ours), ShardIndexPath("/a/c.tar", ours));
  EXPECT_EQ(ShardIndexPath("./c.tar", ours), ShardIndexPath("c.tar", ours));
}

TEST_F(TarTest, IndexesAnewWhenTheIndexIsDamaged) {
  const std::string archive = Shard(TarFile("1.jpg", "one") + TarFile("1.cls", "1") + TarEnd());
  folder_.Rest();
  (void)Tar(archive).value();
  const std::string index = testing::BytesOfFile(testing::ShardIndexOf(archive));
  for (size_t at = 0; at < index.size(); ++at) {
    std::string damaged = index;
    damaged[at] ^= 1;
    folder_.Write(testing::ShardIndexOf(archive), damaged);
    EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(1));
    EXPECT_EQ(testing::BytesOfFile(testing::ShardIndexOf(archive)), index) << "it is mended";
    folder_.Write(testing::ShardIndexOf(archive), index.substr(0, at));
    EXPECT_THAT(LabelsOf(*Tar(archive).value()), ElementsAre(1));
  }
}

}  // namespace
}  // namespace stoker
