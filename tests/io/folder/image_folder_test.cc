#include "io/folder/image_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using Samples = std::vector<std::pair<std::string, int64_t>>;  // path below the root, label

class ImageFolderTest : public ::testing::Test {
 protected:
  ImageFolderTest() {
    std::string name = (fs::temp_directory_path() / "stoker-folder-XXXXXX").string();
    root_ = mkdtemp(name.data());
    chmod(root_.c_str(), 0755);
  }
  ~ImageFolderTest() override { fs::remove_all(root_); }

  void File(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
  }
  void Folder(const std::string& path) { fs::create_directories(root_ / path); }
  void Link(const std::string& target, const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }

  Samples List(int threads = 2) { return ListOf(root_.string(), threads); }
  Samples ListOf(const std::string& directory, int threads = 2) {
    auto source = ImageFolder(directory, {.threads = threads});
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    Samples samples;
    if (!source.ok()) return samples;
    std::string path;
    for (uint64_t id = 0; id < (*source)->size(); ++id) {
      const ByteRange range = (*source)->RangeOf(id);
      EXPECT_EQ(range.offset, 0u);
      EXPECT_EQ(range.length, kUnknownLength);
      (*source)->PathOf(range.file, path);
      EXPECT_TRUE(path.starts_with(root_.string() + "/")) << path;
      samples.emplace_back(path.substr(root_.string().size() + 1), (*source)->LabelOf(id));
    }
    return samples;
  }
  std::vector<std::string> Paths() {
    std::vector<std::string> paths;
    for (auto& [path, label] : List()) paths.push_back(path);
    return paths;
  }

  Error ErrorOf(const std::string& directory) {
    auto source = ImageFolder(directory, {.threads = 2});
    if (!source.ok()) return source.error();
    ADD_FAILURE() << "no error";
    return {};
  }
  Error ErrorHere() { return ErrorOf(root_.string()); }

  fs::path root_;
};

// The reference: folder after folder on one thread, as torchvision's make_dataset does with
// os.walk. For trees without symbolic links.
bool LooksLikeAnImage(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* e :
       {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}) {
    if (name.ends_with(e)) return true;
  }
  return false;
}

void WalkPlainly(const fs::path& folder, std::vector<fs::path>& folders) {
  folders.push_back(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string()[0] == '.') continue;
    if (entry.is_directory()) WalkPlainly(entry.path(), folders);
  }
}

Samples ListPlainly(const fs::path& root) {
  std::vector<std::string> classes;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory()) classes.push_back(entry.path().filename().string());
  }
  std::sort(classes.begin(), classes.end());
  Samples samples;
  for (size_t label = 0; label < classes.size(); ++label) {
    std::vector<fs::path> folders;
    WalkPlainly(root / classes[label], folders);
    std::sort(folders.begin(), folders.end(),
              [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    for (const fs::path& folder : folders) {
      std::vector<std::string> names;
      for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (entry.is_regular_file() && name[0] != '.' && LooksLikeAnImage(name)) {
          names.push_back(name);
        }
      }
      std::sort(names.begin(), names.end());
      for (const std::string& name : names) {
        samples.emplace_back((folder / name).string().substr(root.string().size() + 1), label);
      }
    }
  }
  return samples;
}

TEST_F(ImageFolderTest, ClassesAreSortedFoldersAndLabels) {
  File("b/2.jpg");
  File("b/1.png");
  File("a/x.JPEG");
  File("B/y.jpg");
  File("notes.txt");
  EXPECT_THAT(List(), ElementsAre(std::pair("B/y.jpg", 0), std::pair("a/x.JPEG", 1),
                                  std::pair("b/1.png", 2), std::pair("b/2.jpg", 2)));
  auto source = ImageFolder(root_.string());
  EXPECT_THAT((*source)->classes(), ElementsAre("B", "a", "b"));
  EXPECT_TRUE((*source)->label());
  EXPECT_EQ((*source)->Describe(), "image_folder(" + root_.string() + ")");
}

TEST_F(ImageFolderTest, FoldersOfAClassAreSortedByPathAndFilesComeBeforeSubFolders) {
  // torchvision sorts whole paths of folders: "c/a" < "c/a!" < "c/a/b".
  for (const char* path : {"c/z.jpg", "c/a/b/1.jpg", "c/a!/1.jpg", "c/a/1.jpg", "c!/1.jpg"}) {
    File(path);
  }
  EXPECT_THAT(List(), ElementsAre(std::pair("c/z.jpg", 0), std::pair("c/a/1.jpg", 0),
                                  std::pair("c/a!/1.jpg", 0), std::pair("c/a/b/1.jpg", 0),
                                  std::pair("c!/1.jpg", 1)));
}

TEST_F(ImageFolderTest, MatchesTheReferenceOnRandomTrees) {
  RandomStream random({1, 2, 3}, 0);
  const std::vector<std::string> names = {"a", "A", "a!", "a b", "\xff", "é", "z\n", "0", "日本"};
  const std::vector<std::string> extensions = {".jpg", ".JPeG", ".txt", "", ".webp", ".jpg~"};
  for (int tree = 0; tree < 20; ++tree) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    for (int file = 0; file < 60; ++file) {
      std::string path;
      const uint64_t depth = 1 + random.Below(4);
      for (uint64_t d = 0; d < depth; ++d) path += names[random.Below(names.size())] + "/";
      File(path + "0.jpg");  // every class has one
      File(path + names[random.Below(names.size())] + std::to_string(random.Below(20)) +
           extensions[random.Below(extensions.size())]);
    }
    const Samples expected = ListPlainly(root_);
    for (int threads : {1, 2, 8}) EXPECT_EQ(List(threads), expected);
  }
}

TEST_F(ImageFolderTest, FlatFolderHasNoLabels) {
  File("b.jpg");
  File("a.webp");
  File("readme.md");
  File(".hidden/x.jpg");
  EXPECT_THAT(List(), ElementsAre(std::pair("a.webp", kNoLabel), std::pair("b.jpg", kNoLabel)));
  const auto source = ImageFolder(root_.string()).value();
  EXPECT_THAT(source->classes(), ::testing::IsEmpty());
  EXPECT_FALSE(source->label());
}

TEST_F(ImageFolderTest, IgnoresTrailingSlashes) {
  File("a/1.jpg");
  EXPECT_THAT(ListOf(root_.string() + "//"), ElementsAre(std::pair("a/1.jpg", 0)));
}

TEST_F(ImageFolderTest, FingerprintCoversNamesAndLabels) {
  const auto print = [this](const std::string& end = "") {
    return (*ImageFolder(root_.string() + end))->Fingerprint();
  };
  File("b/1.jpg");
  File("c/2.jpg");
  const uint64_t first = print();
  EXPECT_EQ(print("/"), first) << "where the folder lies does not matter";
  File("b/0.txt");
  EXPECT_EQ(print(), first) << "nor what is no sample";
  File("a/0.jpg");
  const uint64_t shifted = print();
  EXPECT_NE(shifted, first);
  fs::rename(root_ / "a/0.jpg", root_ / "a/00.jpg");
  EXPECT_NE(print(), shifted) << "a name";
  fs::rename(root_ / "c", root_ / "d");
  EXPECT_NE(print(), shifted) << "a class";
}

TEST_F(ImageFolderTest, HiddenEntriesAreSkipped) {
  File("a/1.jpg");
  File("a/._1.jpg");
  File("a/.jpg");
  File("a/.thumbnails/1.jpg");
  File(".git/1.jpg");
  File(".cover.jpg");
  EXPECT_THAT(Paths(), ElementsAre("a/1.jpg"));
}

TEST_F(ImageFolderTest, ListsAnyNameThatTheSystemAllows) {
  const std::string longest = std::string(251, 'x') + ".jpg";
  File("a/new\nline.jpg");
  File("a/\xff\xfe.jpg");
  File("a/ .jpg");
  File("a/" + longest);
  EXPECT_THAT(Paths(), ElementsAre("a/ .jpg", "a/new\nline.jpg", "a/" + longest, "a/\xff\xfe.jpg"));
}

TEST_F(ImageFolderTest, LinksToFilesAndFoldersAreFollowed) {
  File("a/1.jpg");
  File("a/deep/2.jpg");
  Link("../a/1.jpg", "b/linked.jpg");
  Link("../a", "b/folder");
  Link("a", "c");
  Link("../a", "d.jpg/looks.jpg");  // a folder in spite of its name
  EXPECT_THAT(Paths(), ElementsAre("a/1.jpg", "a/deep/2.jpg", "b/linked.jpg", "b/folder/1.jpg",
                                   "b/folder/deep/2.jpg", "c/1.jpg", "c/deep/2.jpg",
                                   "d.jpg/looks.jpg/1.jpg", "d.jpg/looks.jpg/deep/2.jpg"));
}

TEST_F(ImageFolderTest, AFolderLinkedTwiceIsListedTwice) {
  File("a/real/1.jpg");
  Link("real", "a/one");
  Link("real", "a/two");
  EXPECT_THAT(Paths(), ElementsAre("a/one/1.jpg", "a/real/1.jpg", "a/two/1.jpg"));
}

TEST_F(ImageFolderTest, CutsLinkLoops) {
  File("a/1.jpg");
  File("a/sub/2.jpg");
  Link(".", "a/self");
  Link("../..", "a/sub/root");
  Link("../b", "a/other");
  File("b/3.jpg");
  Link("../a", "b/other");
  EXPECT_THAT(Paths(), ElementsAre("a/1.jpg", "a/other/3.jpg", "a/sub/2.jpg", "b/3.jpg",
                                   "b/other/1.jpg", "b/other/sub/2.jpg"));
}

TEST_F(ImageFolderTest, DanglingLinksAreListedAndPipesAreNot) {
  Link("nowhere.jpg", "a/lost.jpg");
  Link("self.jpg", "a/self.jpg");
  Link("nowhere", "a/lost");
  File("a/1.jpg");
  ASSERT_EQ(mkfifo((root_ / "a/pipe.jpg").c_str(), 0600), 0);
  Link("pipe.jpg", "a/linked_pipe.jpg");
  EXPECT_THAT(Paths(), ElementsAre("a/1.jpg", "a/lost.jpg", "a/self.jpg"));
}

TEST_F(ImageFolderTest, RefusesLinksThatMultiplyPaths) {
  // 2^30 paths lead to the last folder, without a loop.
  for (int i = 0; i < 30; ++i) {
    const std::string next = "../n" + std::to_string(i + 1), here = "a/n" + std::to_string(i);
    Link(next, here + "/l");
    Link(next, here + "/r");
  }
  File("a/n30/1.jpg");
  const Error error = ErrorHere();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.ToString(), HasSubstr("symbolic links"));
}

TEST_F(ImageFolderTest, PathsTooLongToBeOpenedAreAnError) {
  File("a/1.jpg");
  const std::string name(250, 'd');
  int folder = open((root_ / "a").c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 18; ++depth) {  // 4,500 bytes
    ASSERT_EQ(mkdirat(folder, name.c_str(), 0755), 0);
    const int next = openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY);
    close(folder);
    folder = next;
  }
  close(openat(folder, "2.jpg", O_CREAT | O_WRONLY, 0644));
  close(folder);
  const Error error = ErrorHere();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.file, HasSubstr("/a/ddd"));
  EXPECT_THAT(error.advice, HasSubstr("path"));
}

TEST_F(ImageFolderTest, ListsDeepTreesWithinTheLongestPath) {
  std::string path = "a";
  while (root_.string().size() + path.size() + 2 + 5 + 100 < PATH_MAX) {
    path += "/" + std::string(100, 'd');
  }
  fs::create_directories(root_ / path);
  File(path + "/1.jpg");
  EXPECT_THAT(Paths(), ElementsAre(path + "/1.jpg"));
}

TEST_F(ImageFolderTest, RefusesAMissingFolder) {
  const std::string path = (root_ / "nowhere").string();
  const Error error = ErrorOf(path);
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.file, path);
  EXPECT_EQ(ErrorOf("").code, Code::kNotFound);
  File("file");
  EXPECT_EQ(ErrorOf((root_ / "file/below").string()).code, Code::kNotFound);
  EXPECT_EQ(ErrorOf(std::string("a\0b", 3)).code, Code::kInvalidArgument);
}

TEST_F(ImageFolderTest, RefusesAFile) {
  File("photo.jpg");
  const Error error = ErrorOf((root_ / "photo.jpg").string());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.file, EndsWith("photo.jpg"));
  EXPECT_THAT(error.cause, HasSubstr("not a folder"));
}

TEST_F(ImageFolderTest, RefusesAPackedSet) {
  File("index.stoker");
  File("00000.stoker");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("packed set"));
  EXPECT_THAT(ErrorHere().advice, HasSubstr("stoker.packed"));
  File("a/photo.jpg");
  EXPECT_EQ(List().size(), 1u);
}

TEST_F(ImageFolderTest, RefusesAFolderWithoutImages) {
  EXPECT_THAT(ErrorHere().cause, HasSubstr("no image"));
  File("readme.txt");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("no image"));
  File("a/readme.txt");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("no image"));
  EXPECT_THAT(ErrorHere().advice, HasSubstr(".webp"));
  EXPECT_EQ(ErrorHere().code, Code::kInvalidArgument);
  EXPECT_EQ(ErrorHere().file, root_.string());
}

TEST_F(ImageFolderTest, ErrorNamesClassesWithoutImages) {
  File("a/1.jpg");
  Folder("b/sub");
  File("c/readme.txt");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("2 class folders have no image: 'b', 'c'"));
}

TEST_F(ImageFolderTest, ErrorNamesClassesOfOtherFormats) {
  File("a/1.jpg");
  File("b/1.exr");
  File("b/deep/2.EXR");
  File("b/3.psd");
  File("c/readme.txt");
  EXPECT_EQ(ErrorHere().cause,
            "2 class folders have no file with an extension that stoker lists: 'b' (but .exr 2, "
            ".psd 1), 'c'");
  EXPECT_THAT(ErrorHere().advice, HasSubstr("Convert them to JPEG or PNG"));
  File("c/1.jpg");
  EXPECT_EQ(ErrorHere().cause,
            "1 class folder has no file with an extension that stoker lists: 'b' (but .exr 2, "
            ".psd 1)");
}

TEST_F(ImageFolderTest, AdvisesRenamingJpegsWithOtherExtensions) {
  File("a/1.jpg");
  File("b/1.jfif");
  EXPECT_EQ(ErrorHere().cause,
            "1 class folder has no file with an extension that stoker lists: 'b' (but .jfif 1)");
  EXPECT_THAT(ErrorHere().advice, HasSubstr("rename JPEGs (.jfif, .jpe) to .jpg"));
}

// Classes that the message does not name count, too: one that has images must not be called empty.
TEST_F(ImageFolderTest, AdvisesConversionForClassesItDoesNotName) {
  File("a/1.jpg");
  for (const char* name : {"b", "c", "d", "e", "f"}) Folder(name);
  EXPECT_THAT(ErrorHere().advice, Not(HasSubstr("Convert")));
  File("g/1.exr");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("6 class folders have no file with an extension"));
  EXPECT_THAT(ErrorHere().advice, HasSubstr("Convert them to JPEG or PNG"));
  EXPECT_THAT(ErrorHere().advice, HasSubstr("removing one renumbers"));
}

TEST_F(ImageFolderTest, ClassNamesNumberTheClasses) {
  for (const char* file : {"a/1.jpg", "a/sub/2.jpg", "c/3.jpg"}) File(file);
  Folder("b");
  ImageFolderOptions options{.class_names = {"d", "c", "b", "a"}};
  const auto labels = [&]() -> std::vector<int64_t> {
    const auto source = ImageFolder(root_.string(), options).value();
    EXPECT_EQ(source->classes(), options.class_names);
    return {source->LabelOf(0), source->LabelOf(1), source->LabelOf(2)};
  };
  const auto cause = [&] { return ImageFolder(root_.string(), options).error().cause; };
  EXPECT_THAT(cause(), HasSubstr("1 class folder has no image: 'b'"));
  options.allow_empty = true;
  EXPECT_THAT(labels(), ElementsAre(3, 3, 1));
  options.class_names = {"a", "b", "c"};
  EXPECT_THAT(labels(), ElementsAre(0, 0, 2));
  // The fingerprint is of names and labels, as it is without names.
  const uint64_t fingerprint = ImageFolder(root_.string(), options).value()->Fingerprint();
  EXPECT_EQ(ImageFolder(root_.string(), {.allow_empty = true}).value()->Fingerprint(), fingerprint);
  options.class_names = {"a", "c", "b"};
  EXPECT_NE(ImageFolder(root_.string(), options).value()->Fingerprint(), fingerprint);
  options.class_names = {"a", "c"};
  EXPECT_THAT(cause(), HasSubstr("class folder 'b' is not one of the 2 class names given"));
  options.class_names = {"a", "a"};
  EXPECT_THAT(cause(), HasSubstr("class_names has 'a' twice"));
  fs::remove(root_ / "b");
  options = {.class_names = {"a", "b", "c", "d"}};
  EXPECT_THAT(cause(), HasSubstr("2 of the classes given have no folder, such as 'b'"));
  options.allow_empty = true;
  EXPECT_THAT(labels(), ElementsAre(0, 0, 2));
}

TEST_F(ImageFolderTest, ErrorNamesOtherFormats) {
  File("1.exr");
  EXPECT_EQ(ErrorHere().cause,
            "no file with an extension that stoker lists in this folder or below it, but: .exr 1 "
            "(for example 1.exr)");
  EXPECT_THAT(ErrorHere().advice, HasSubstr("Convert"));
  File("a/2.dds");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("but: .dds 1, .exr 1 (for example 1.exr)"));
}

TEST_F(ImageFolderTest, SkipsAndCountsOtherFormats) {
  for (const char* path : {"a/1.jpg", "a/2.exr", "a/deep/3.EXR", "a/4.dds", "b/1.png", "b/0.psd",
                           "b/x.txt", "b/gif", "b/.exr", "b/.hidden.exr", "logo.svg"}) {
    File(path);
  }
  Folder("a/folder.exr");
  Link("2.exr", "a/linked.exr");
  for (const int threads : {1, 2, 8}) {
    const auto source = ImageFolder(root_.string(), {.threads = threads}).value();
    EXPECT_EQ(source->size(), 2u);
    const SkippedFiles skipped = source->Skipped();
    EXPECT_EQ(skipped,
              (SkippedFiles{{{".dds", 1}, {".exr", 3}, {".psd", 1}, {".svg", 1}}, "a/2.exr"}));
    EXPECT_EQ(skipped.files(), 6u);
    EXPECT_THAT(
        skipped.Warning(),
        HasSubstr("6 image files are skipped, because stoker does not list their extensions "
                  "(.dds 1, .exr 3, .psd 1, .svg 1); the first is a/2.exr. Convert"));
    EXPECT_EQ(SkippedFiles::Unpack(skipped.Pack()), skipped);
  }
  fs::remove_all(root_);
  File("1.jpg");
  EXPECT_TRUE(ImageFolder(root_.string()).value()->Skipped().empty());
  File("2.qoi");
  const SkippedFiles one = ImageFolder(root_.string()).value()->Skipped();
  EXPECT_EQ(one, (SkippedFiles{{{".qoi", 1}}, "2.qoi"}));
  EXPECT_THAT(one.Warning(),
              HasSubstr("1 image file is skipped, because stoker does not list its extension"));
}

// The text comes from an index file, which may hold anything.
TEST(SkippedFiles, UnpackRefusesMalformedText) {
  using namespace std::string_literals;  // NOLINT: with zeros
  EXPECT_EQ(SkippedFiles::Unpack(""), SkippedFiles());
  EXPECT_EQ(SkippedFiles::Unpack("a/1.exr\0.exr\0"s + "12\0"s),
            (SkippedFiles{{{".exr", 12}}, "a/1.exr"}));
  for (const std::string& packed :
       {"a"s, "a\0"s, "a\0.exr\0"s, "a\0.exr\0x\0"s, "a\0.exr\0-1\0"s, "a\0.exr\0"s + "0\0"s,
        "a\0.exr\0"s + "1"s, "a\0gif\0"s + "1\0"s, "a\0.\0"s + "1\0"s, "a\0.\x1b[2J\0"s + "1\0"s,
        "a\0.EXR\0"s + "1\0"s, "a\0.exr\0"s + "99999999999\0"s, "\0.exr\0"s + "1\0"s,
        "a\0.exr\0"s + "1\0.exr\0"s + "1\0"s, "a\0.abcdefghi\0"s + "1\0"s}) {
    EXPECT_EQ(SkippedFiles::Unpack(packed), std::nullopt) << ::testing::PrintToString(packed);
  }
}

TEST_F(ImageFolderTest, RefusesImagesBesideClasses) {
  File("a/1.jpg");
  File("cover.jpg");
  EXPECT_THAT(ErrorHere().cause, HasSubstr("'cover.jpg'"));
  EXPECT_THAT(ErrorHere().cause, HasSubstr("belong to no class"));
}

TEST_F(ImageFolderTest, ErrorNamesAnUnreadableFolder) {
  File("a/1.jpg");
  File("b/deep/2.jpg");
  // root reads everything: become nobody for a moment.
  const bool root = geteuid() == 0;
  ASSERT_EQ(chmod((root_ / "b/deep").c_str(), 0), 0);
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "cannot give up root";
  auto source = ImageFolder(root_.string(), {.threads = 2});
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  chmod((root_ / "b/deep").c_str(), 0755);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, Code::kPermissionDenied);
  EXPECT_EQ(source.error().file, (root_ / "b/deep").string());
  EXPECT_THAT(source.error().advice, HasSubstr("chmod"));
}

TEST_F(ImageFolderTest, RefusesThreadsOutOfRange) {
  File("a/1.jpg");
  EXPECT_FALSE(ImageFolder(root_.string(), {.threads = -1}).ok());
  EXPECT_FALSE(ImageFolder(root_.string(), {.threads = 1000000}).ok());
}

TEST_F(ImageFolderTest, HoldsNamesAndEightBytesPerSample) {
  uint64_t names = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "photo_" + std::to_string(i) + ".jpg";
    File("class" + std::to_string(i % 10) + "/" + name);
    names += name.size();
  }
  const uint64_t bytes = (*ImageFolder(root_.string()))->memory_bytes();
  EXPECT_GE(bytes, names + 2000 * 8);
  EXPECT_LE(bytes, names + 2000 * 8 + 2000);  // classes, folders, the object itself
}

}  // namespace
}  // namespace stoker
