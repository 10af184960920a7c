#include "core/system/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "tests/testing/process/child_process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::ExitCodeOfChild;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Origin = OutputFile::Origin;
using Temporary = OutputFile::Temporary;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

mode_t ModeOf(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

constexpr uid_t kNobody = 65534;
constexpr int kSkip = 77;

// Drops root's rights for good, with all groups. In a user namespace the groups may not exist.
bool BecomeNobody() {
  const gid_t group = kNobody;
  return setgroups(1, &group) == 0 && setgid(kNobody) == 0 && setuid(kNobody) == 0;
}

// Runs in a folder of its own, with both kinds of temporary files.
class OutputFileTest : public ::testing::TestWithParam<Temporary> {
 protected:
  OutputFileTest() {
    std::string name = (fs::temp_directory_path() / "stoker-output-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  fs::path At(const std::string& name) const { return folder_ / name; }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }
  Status Replace(const fs::path& path, std::string_view text,
                 Origin origin = Origin::kGiven) const {
    Result<OutputFile> file = OutputFile::Open(path, origin, GetParam());
    if (!file.ok()) return std::move(file).error();
    if (Status status = file->Write(Bytes(text)); !status.ok()) return status;
    return file->Commit(OutputFile::Sync::kToDisk);
  }

  fs::path folder_;
};

INSTANTIATE_TEST_SUITE_P(EachKind, OutputFileTest,
                         ::testing::Values(Temporary::kUnnamed, Temporary::kNamed),
                         [](const auto& kind) {
                           return kind.param == Temporary::kNamed ? "Named" : "Unnamed";
                         });

TEST_P(OutputFileTest, NewFileFollowsTheUmask) {
  const mode_t before = umask(027);
  const Status status = Replace(At("new"), "text");
  umask(before);
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_EQ(ReadFile(At("new")), "text");
  EXPECT_EQ(ModeOf(At("new")), 0640U);
  EXPECT_THAT(Names(), ElementsAre("new"));
}

TEST_P(OutputFileTest, ReplacesAFileAndKeepsItsModeAndOwner) {
  Put("file", "a longer text than the new one");
  ASSERT_EQ(chmod(At("file").c_str(), 0604), 0);
  const bool given_away = geteuid() == 0 && chown(At("file").c_str(), 12, 34) == 0;
  ASSERT_TRUE(given_away || geteuid() != 0 || errno == EINVAL);  // a user namespace lacks 12
  ASSERT_TRUE(Replace(At("file"), "new").ok());
  EXPECT_EQ(ReadFile(At("file")), "new");
  EXPECT_EQ(ModeOf(At("file")), 0604U);
  struct stat info {};
  ASSERT_EQ(stat(At("file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, given_away ? 12U : geteuid());
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_P(OutputFileTest, DropsGroupPermissionsWithTheGroup) {
  Put("file", "old");
  ASSERT_EQ(chmod(At("file").c_str(), 0640), 0);
  if (geteuid() != 0 || chown(At("file").c_str(), kNobody, 34) != 0) {
    GTEST_SKIP() << "may not give files away";
  }
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const int code = ExitCodeOfChild([&] {
    if (!BecomeNobody()) return kSkip;
    return Replace(At("file"), "new").ok() ? 0 : 1;
  });
  if (code == kSkip) GTEST_SKIP() << "may not become another user";
  ASSERT_EQ(code, 0);
  EXPECT_EQ(ReadFile(At("file")), "new");
  EXPECT_EQ(ModeOf(At("file")), 0600U);
}

TEST_P(OutputFileTest, WithoutCommitNothingChanges) {
  Put("file", "old");
  {
    OutputFile file = OutputFile::Open(At("file"), Origin::kGiven, GetParam()).value();
    ASSERT_TRUE(file.Write(Bytes("new")).ok());
    const OutputFile moved = std::move(file);
  }
  EXPECT_EQ(ReadFile(At("file")), "old");
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_P(OutputFileTest, OverwriteReplacesWrittenBytes) {
  OutputFile file = OutputFile::Open(At("file"), Origin::kGiven, GetParam()).value();
  ASSERT_TRUE(file.Write(Bytes("0123456789")).ok());
  ASSERT_TRUE(file.Overwrite(2, Bytes("ab")).ok());
  ASSERT_TRUE(file.Write(Bytes("!")).ok());
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(ReadFile(At("file")), "01ab456789!");
}

TEST_P(OutputFileTest, LeavesTheUsersPartFilesAlone) {
  Put("file.part", "mine");
  Put("precious", "precious");
  fs::create_symlink("precious", At("file2.part"));
  ASSERT_TRUE(Replace(At("file"), "one").ok());
  ASSERT_TRUE(Replace(At("file2"), "two").ok());
  EXPECT_EQ(ReadFile(At("file.part")), "mine");
  EXPECT_EQ(ReadFile(At("precious")), "precious");
  EXPECT_THAT(Names(),
              UnorderedElementsAre("file", "file.part", "file2", "file2.part", "precious"));
}

TEST_P(OutputFileTest, FollowsLinksAndKeepsThem) {
  fs::create_directory(At("far"));
  Put("far/file", "old");
  fs::create_symlink("far/file", At("link"));
  fs::create_symlink(At("link"), At("link to link"));
  fs::create_symlink("far/none yet", At("dangling"));
  ASSERT_TRUE(Replace(At("link to link"), "new").ok());
  ASSERT_TRUE(Replace(At("dangling"), "made").ok());
  EXPECT_EQ(ReadFile(At("far/file")), "new");
  EXPECT_EQ(ReadFile(At("far/none yet")), "made");
  EXPECT_TRUE(fs::is_symlink(At("link")) && fs::is_symlink(At("link to link")) &&
              fs::is_symlink(At("dangling")));
  EXPECT_EQ(std::distance(fs::directory_iterator(At("far")), {}), 2);
}

TEST_P(OutputFileTest, OwnLocationReplacesRegularFilesOnly) {
  Put("file", "old");
  fs::create_symlink("file", At("link"));
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  fs::create_directory(At("folder"));
  const std::map<std::string, std::string> kinds = {
      {"link", "a link"}, {"pipe", "a FIFO"}, {"folder", "a directory"}};
  for (const auto& [name, kind] : kinds) {
    const Status status = Replace(At(name), "new", Origin::kOwn);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().Message(),
              At(name).string() + ": cannot write: " + kind + " is in the way. Move it away.");
  }
  EXPECT_EQ(ReadFile(At("file")), "old");
  ASSERT_TRUE(Replace(At("file"), "new", Origin::kOwn).ok());
  ASSERT_TRUE(Replace(At("other"), "new", Origin::kOwn).ok());
  EXPECT_EQ(ReadFile(At("file")) + ReadFile(At("other")), "newnew");
}

TEST_P(OutputFileTest, RecognisesItsTemporaryNames) {
  const OutputFile file = OutputFile::Open(At("file"), Origin::kGiven, GetParam()).value();
  const std::set<std::string> names = Names();
  if (GetParam() == Temporary::kNamed) {
    EXPECT_EQ(names.size(), 1U);
  }
  for (const std::string& name : names) EXPECT_TRUE(OutputFile::IsTemporaryName(name)) << name;
  for (const char* name : {"", "file.part", ".stoker-index", ".stoker-1.part", ".stoker-.part"}) {
    EXPECT_FALSE(OutputFile::IsTemporaryName(name)) << name;
  }
}

TEST_P(OutputFileTest, RefusesLinkLoops) {
  fs::create_symlink("b", At("a"));
  fs::create_symlink("a", At("b"));
  EXPECT_THAT(Replace(At("a"), "x").error().cause, HasSubstr("Too many levels"));
}

// A kernel with fs.protected_symlinks refuses such links; following links by hand must not evade
// that.
TEST_P(OutputFileTest, RefusesAnotherUsersLinkInASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user's link";
  Put("secret", "old");
  fs::create_directory(At("shared"));
  ASSERT_EQ(chmod(At("shared").c_str(), 01777), 0);
  fs::create_symlink(At("secret"), At("shared/planted"));
  if (lchown(At("shared/planted").c_str(), 12, 34) != 0) GTEST_SKIP() << "not of this namespace";
  EXPECT_EQ(Replace(At("shared/planted"), "new").error().code, Code::kPermissionDenied);
  EXPECT_EQ(ReadFile(At("secret")), "old");
  ASSERT_EQ(chmod(At("shared").c_str(), 0777), 0);
  EXPECT_TRUE(Replace(At("shared/planted"), "new").ok());
}

TEST_P(OutputFileTest, WritesToADeviceWithoutReplacingIt) {
  if (mknod(At("full").c_str(), S_IFCHR | 0666, makedev(1, 7)) != 0 ||
      mknod(At("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "may not make devices";
  }
  const int opened = open(At("null").c_str(), O_WRONLY | O_CLOEXEC);
  if (opened < 0) GTEST_SKIP() << "devices cannot be opened in this folder (nodev)";
  close(opened);
  fs::create_symlink("null", At("link"));
  const Status full = Replace(At("full"), "text");
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().cause, HasSubstr("No space left"));
  EXPECT_TRUE(WriteFile(At("null"), "text").ok());
  EXPECT_TRUE(WriteFile(At("link"), "text").ok());
  EXPECT_TRUE(CheckCanWrite(At("full")).ok());
  EXPECT_TRUE(fs::is_character_file(fs::symlink_status(At("full"))));
  EXPECT_TRUE(fs::is_character_file(fs::symlink_status(At("null"))));
  EXPECT_THAT(Names(), UnorderedElementsAre("full", "null", "link"));
}

TEST_P(OutputFileTest, WritesToAFifo) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = ReadFile(At("pipe")); });
  EXPECT_TRUE(CheckCanWrite(At("pipe")).ok());  // the reader does not notice
  const Status status = Replace(At("pipe"), "through");
  reader.join();
  // fdatasync() only works for files on a disk.
  EXPECT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(At("pipe")));
}

// Runs in a child, whose standard output may be anything.
void WithStandardOutput(int descriptor, const std::string& path) {
  EXPECT_EQ(ExitCodeOfChild([&] {
              dup2(descriptor, STDOUT_FILENO);
              const bool begun = write(STDOUT_FILENO, "before ", 7) == 7;
              const bool written =
                  begun && CheckCanWrite(path).ok() && WriteFile(path, "text ").ok();
              const bool ended = write(STDOUT_FILENO, "behind", 6) == 6;
              return written && ended ? 0 : 1;
            }),
            0);
}

TEST_P(OutputFileTest, SharesThePositionOfStandardOutput) {
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const int file = open(At("file").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    WithStandardOutput(file, name);
    close(file);
    EXPECT_EQ(ReadFile(At("file")), "before text behind") << name;
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    WithStandardOutput(ends[1], name);
    std::array<char, 100> got{};
    EXPECT_EQ(read(ends[0], got.data(), got.size()), 18);
    EXPECT_STREQ(got.data(), "before text behind") << name;
    close(ends[0]);
    close(ends[1]);
  }
}

// The descriptor is already open, so the permissions of its file do not matter.
TEST_P(OutputFileTest, WritesToAnotherUsersStandardOutput) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root's pipe";
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const int code = ExitCodeOfChild([&] {
    dup2(ends[1], STDOUT_FILENO);
    if (!BecomeNobody()) return kSkip;
    if (!CheckCanWrite("/dev/stdout").ok()) return 1;
    return WriteFile("/dev/stdout", "text").ok() ? 0 : 2;
  });
  close(ends[0]);
  close(ends[1]);
  if (code == kSkip) GTEST_SKIP() << "may not become another user";
  EXPECT_EQ(code, 0);
}

TEST_P(OutputFileTest, RefusesAReadOnlyDescriptor) {
  Put("file", "old");
  const int file = open(At("file").c_str(), O_RDONLY | O_CLOEXEC);
  const Status status = CheckCanWrite("/dev/fd/" + std::to_string(file));
  close(file);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().cause, HasSubstr("Bad file descriptor"));
}

TEST_P(OutputFileTest, RefusesAMountPointBeforeWriting) {
  Put("file", "old");
  Put("other", "other");
  const int code = ExitCodeOfChild([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return kSkip;
    if (mount(At("other").c_str(), At("file").c_str(), nullptr, MS_BIND, nullptr) != 0)
      return kSkip;
    const Status checked = CheckCanWrite(At("file"));
    const Status opened = Replace(At("file"), "new");
    if (checked.ok() || opened.ok()) return 1;
    if (checked.error().advice != "It is a mount point: mount its folder, or name another file") {
      return 2;
    }
    return checked.error().ToString() == opened.error().ToString() ? 0 : 3;
  });
  if (code == kSkip) GTEST_SKIP() << "may not mount";
  EXPECT_EQ(code, 0);
  EXPECT_THAT(Names(), UnorderedElementsAre("file", "other"));
}

TEST_P(OutputFileTest, RefusesAnotherUsersFileInASharedFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user's file";
  Put("file", "old");
  ASSERT_EQ(chmod(At("file").c_str(), 0666), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(CheckCanWrite(At("file")).ok());  // root may
  const int code = ExitCodeOfChild([&] {
    if (!BecomeNobody()) return kSkip;
    const Status status = CheckCanWrite(At("file"));
    if (status.ok() || status.error().code != Code::kPermissionDenied) return 1;
    return Replace(At("own"), "a").ok() && Replace(At("own"), "b").ok() ? 0 : 2;
  });
  if (code == kSkip) GTEST_SKIP() << "may not become another user";
  EXPECT_EQ(code, 0);
}

TEST_P(OutputFileTest, ErrorsNameFileAndCause) {
  Put("file", "x");
  for (const std::string name : {"missing/file", "file/file", "missing/"}) {
    const Status status = Replace(At(name), "x");
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, Code::kNotFound);
    EXPECT_EQ(status.error().file, At(name));
    EXPECT_EQ(status.error().cause, "cannot write: its folder does not exist");
    EXPECT_FALSE(CheckCanWrite(At(name)).ok());
  }
  EXPECT_THAT(Replace(folder_, "x").error().cause, HasSubstr("directory"));
  EXPECT_THAT(CheckCanWrite(folder_).error().cause, HasSubstr("directory"));
  EXPECT_FALSE(Replace("", "x").ok());
  EXPECT_TRUE(CheckCanWrite(At("file")).ok() && CheckCanWrite(At("other")).ok());
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_P(OutputFileTest, AKilledWriterLeavesNoTemporaryFile) {
  if (GetParam() == Temporary::kNamed) GTEST_SKIP() << "that one stays";
  const int folder = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (folder < 0) GTEST_SKIP() << "no O_TMPFILE here";
  close(folder);
  const pid_t child = fork();
  if (child == 0) {
    OutputFile file = OutputFile::Open(At("file")).value();
    (void)file.Write(Bytes("half"));
    (void)raise(SIGKILL);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(Names(), ElementsAre());
}

}  // namespace
}  // namespace stoker
