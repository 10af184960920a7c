// Tests where `stoker index` writes its file, and where it refuses to.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "bindings/cli/index/index_dataset.h"
#include "io/folder/image_folder.h"
#include "tests/bindings/cli/index/indexed_folder.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::IndexOf;
using testing::PhotoFolder;
using testing::ReadText;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// No photograph is read for the refusal: `progress` would be called.
Error Refused(const PhotoFolder& folder, const std::string& out) {
  const auto never = [](uint64_t, uint64_t) -> bool {
    ADD_FAILURE() << "photographs are read";
    return false;
  };
  const Result<IndexReport> report = IndexDataset(folder.path(), {.out = out}, never);
  EXPECT_FALSE(report.ok()) << out;
  return report.ok() ? Error{} : report.error();
}

TEST(IndexLocation, ReplacesNothingButAnIndex) {
  const PhotoFolder folder(4, 2);
  const fs::path other = folder.path() + "/.other";
  fs::create_directory(other);
  ASSERT_TRUE(IndexDataset(folder.path(), {.out = other / "index"}).ok());
  ASSERT_TRUE(IndexDataset(folder.path(), {.out = other / "index"}).ok());  // once more
  const std::string index = ReadText(other / "index");
  Write(other / "empty", "");
  Write(other / "text", "STKINDE");
  fs::create_symlink(other / "index", other / "link");
  fs::create_symlink("nowhere", other / "dangling");
  ASSERT_EQ(mkfifo((other / "pipe").c_str(), 0600), 0);
  const std::string photograph = ReadText(folder.FileOf(0));
  const std::string file = "a file that is not an index";
  const std::map<fs::path, std::string> kinds = {
      {folder.FileOf(0), file},   {other / "empty", file},        {other / "text", file},
      {other / "link", "a link"}, {other / "dangling", "a link"}, {other / "pipe", "a FIFO"},
      {other, "a directory"},     {other / "", "a directory"},    {"/dev/null", "a device"}};
  for (const auto& [path, kind] : kinds) {
    const std::string out = path;
    const Error error = Refused(folder, out);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << out;
    EXPECT_EQ(error.file, out);
    EXPECT_EQ(error.cause, "cannot write the index: " + kind + " is in the way");
    EXPECT_EQ(error.advice, "Name another file");
  }
  EXPECT_EQ(ReadText(folder.FileOf(0)), photograph);
  EXPECT_EQ(ReadText(other / "index"), index);
  for (const char* out : {"missing/index", "text/index", "missing/"}) {
    const Error error = Refused(folder, other / out);
    EXPECT_EQ(error.code, Code::kNotFound) << out;
    EXPECT_EQ(error.file, other / out);
    EXPECT_EQ(error.cause, "cannot write: its folder does not exist");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(other), {}), 6);  // nothing is left
}

// A file there would change the modification time that the index records for that folder.
TEST(IndexLocation, RefusesALocationInsideAClass) {
  const PhotoFolder folder(4, 2);
  const fs::path photos = fs::path(folder.FileOf(0)).parent_path();
  fs::create_directory(photos / "below");
  fs::create_directory(photos / ".hidden");
  fs::create_symlink(photos, folder.path() + "/.link");
  for (const fs::path& location : {photos, photos / "below", fs::path(folder.path()) / ".link"}) {
    const std::string out = location / "x.idx";
    const Error error = Refused(folder, out);
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_EQ(error.file, out);
    EXPECT_EQ(error.cause,
              "cannot write the index: there it would change a class folder's time and be stale at "
              "once");
    EXPECT_FALSE(fs::exists(out));
  }
  for (const fs::path& location : {photos / ".hidden", fs::path(folder.path())}) {
    const std::string out = location / "x.idx";
    ASSERT_TRUE(IndexDataset(folder.path(), {.out = out}).ok());
    const ImageFolderOptions options{.crop_index = ImageFolderOptions::CropIndex::kFile,
                                     .crop_index_file = out};
    EXPECT_EQ(ImageFolder(folder.path(), options).value()->Warning(), "");
  }
}

TEST(IndexLocation, DefaultLocationReplacesAFileAndRefusesADirectory) {
  const PhotoFolder folder(4, 2);
  Write(IndexOf(folder), "");  // a user's `: > .stoker-index`: the name is stoker's
  ASSERT_TRUE(IndexDataset(folder.path()).ok());
  EXPECT_EQ(folder.Source()->Warning(), "");
  fs::remove(IndexOf(folder));
  fs::create_directory(IndexOf(folder));
  const Error error = Refused(folder, "");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.Message(),
            IndexOf(folder) + ": cannot write: a directory is in the way. Move it away.");
}

// During its lifetime permissions apply to root as well.
class Unprivileged {
 public:
  Unprivileged() { EXPECT_EQ(seteuid(user_ == 0 ? 65534 : user_), 0); }
  ~Unprivileged() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  const uid_t user_ = geteuid();
};

TEST(IndexLocation, RefusesAReadOnlyFolder) {
  const PhotoFolder folder(4, 2);
  fs::permissions(folder.path(), static_cast<fs::perms>(0555));
  Error error;
  {
    const Unprivileged user;
    if (!ImageFolder(folder.path()).ok()) GTEST_SKIP() << "nor read, by somebody else than root";
    error = Refused(folder, "");
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(error.code, Code::kPermissionDenied);
  EXPECT_EQ(error.file, IndexOf(folder));
  EXPECT_EQ(error.cause, "cannot write: Permission denied");
  EXPECT_EQ(error.advice,
            "Use --out FILE, and --crop-index FILE (crop_index= in Python) when reading");
}

}  // namespace
}  // namespace stoker
