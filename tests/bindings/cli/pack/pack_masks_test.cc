// `stoker pack` and `stoker unpack` of images with masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/pack/check_set.h"
#include "bindings/cli/pack/files_to_pack.h"
#include "bindings/cli/pack/list_set.h"
#include "bindings/cli/pack/pack_folder.h"
#include "bindings/cli/unpack/unpack_set.h"
#include "bindings/cli/verify/verify.h"
#include "io/folder/masks.h"
#include "io/packed/open_packed.h"
#include "io/packed/packed.h"
#include "io/packed/packed_index.h"
#include "io/ranges/path_source.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::BytesOfFile;
using ::testing::HasSubstr;
using FolderFiles = std::map<std::string, std::string>;  // of a folder, by path
using SourcePtr = std::shared_ptr<const SampleSource>;

FolderFiles FilesBelow(const std::string& folder) {
  FolderFiles files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), folder).string()] = BytesOfFile(entry.path());
  }
  return files;
}

class PackMasks : public ::testing::Test {
 protected:
  static constexpr int kPairs = 23;

  // In folders whose order is not that of their paths; every kind of mask that there is, and noise.
  PackMasks() {
    for (int i = 0; i < kPairs; ++i) {
      const std::string folder = i % 3 == 0 ? "" : i % 3 == 1 ? "a/" : "a-b/";
      Add(folder + std::to_string(10 + i), 30 + i * 7 % 41, 30 + i * 11 % 37,
          {.color = i % 2 == 0 ? 0 : 3,
           .bit_depth = 1 << i % 4,
           .interlaced = i % 5 == 0,
           .regions = i % 6 != 0});
    }
    folder_.Rest();
  }

  void Add(const std::string& stem, int width, int height, testing::PngOptions mask) {
    const auto text = [](const std::vector<uint8_t>& bytes) {
      return std::string(bytes.begin(), bytes.end());
    };
    mask.width = width;
    mask.height = height;
    mask.seed = static_cast<uint64_t>(width);
    folder_.Write("images/" + stem + ".jpg",
                  text(testing::MakeJpeg({.width = width, .height = height})));
    folder_.Write("masks/" + stem + "_m.png", text(testing::MakePng(mask)));
  }

  SourcePtr Source(const MasksOptions& options = {.suffix = "_m", .fill = 255}) const {
    return Masks(folder_.Path("images"), folder_.Path("masks"), options).value();
  }
  std::string Set() const { return folder_.Path("set"); }

  Result<PackReport> Pack(const SampleSource& source, PackOptions options = {},
                          const PackProgress& progress = {}) const {
    options.shard_bytes = 20000;
    return PackFiles(FilesToPack::OfSource(source).value(), Set(), options, progress);
  }
  Error PackError(const SampleSource& source, const PackOptions& options = {}) const {
    const Result<PackReport> report = Pack(source, options);
    EXPECT_FALSE(report.ok());
    return report.ok() ? Error{Code::kCancelled, "there is none"} : report.error();
  }

  testing::TempFolder folder_;
};

// All batches of an epoch of random crops.
std::vector<uint64_t> EpochOf(const SourcePtr& source) {
  LoaderOptions options = testing::SmallBatches(source);
  options.transforms = {RandomResizedCrop{.height = 24, .width = 20}, RandomHorizontalFlip{},
                        RandomRotation{.degrees = {-20, 20}}};
  const auto loader = Loader::Open(options).value();
  return testing::TakeEpoch(*loader->Iterate());
}

TEST_F(PackMasks, TheSetHasWhatTheFoldersHave) {
  const SourcePtr source = Source();
  const Result<PackReport> report = Pack(*source);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->samples, kPairs);
  EXPECT_EQ(report->images, 2U * kPairs);
  EXPECT_GT(report->packed, kPairs);
  EXPECT_GT(report->shards, 2U);
  const SourcePtr packed = Packed(Set()).value();
  ASSERT_EQ(packed->size(), source->size());
  EXPECT_EQ(packed->Fingerprint(), source->Fingerprint());
  ASSERT_EQ(packed->fields().size(), 2U);
  EXPECT_EQ(packed->fields()[1].name, "mask");
  EXPECT_EQ(packed->fields()[1].kind, Field::Kind::kMask);
  EXPECT_EQ(packed->fields()[1].fill, 255);
  int64_t row = 7;
  packed->FixedRows(1, std::vector<uint64_t>{0}, &row);
  EXPECT_EQ(row, 7) << "masks have no rows";
  std::string path, name;
  for (uint64_t id = 0; id < packed->size(); ++id) {
    for (size_t piece = 0; piece < 2; ++piece) {
      source->PathOf((piece == 0 ? source->RangeOf(id) : source->RangeOfPiece(id, piece)).file,
                     path);
      piece == 0 ? packed->NameOf(id, name) : packed->NameOfPiece(id, piece, name);
      EXPECT_EQ(folder_.Path(piece == 0 ? "images/" : "masks/") + name, path);
    }
    EXPECT_EQ(packed->RangeOfPiece(id, 1).file, packed->RangeOf(id).file) << "the same shard";
  }
  EXPECT_EQ(EpochOf(packed), EpochOf(source));
  EXPECT_EQ(Verify(*packed, {}).value().bad.size(), 0U);
}

TEST_F(PackMasks, ValuesOf16BitsAreKept) {
  Add("deep", 40, 40, {.color = 0, .bit_depth = 16, .regions = true});
  Add("deep noise", 70, 60, {.color = 0, .bit_depth = 16});
  const SourcePtr source = Source({.suffix = "_m", .dtype = DType::kU16, .fill = 770});
  ASSERT_TRUE(Pack(*source).ok());
  const SourcePtr packed = Packed(Set()).value();
  EXPECT_EQ(packed->fields()[1].dtype, DType::kU16);
  EXPECT_EQ(Verify(*source, {}).value().bad.size(), 0U);
  EXPECT_EQ(Verify(*packed, {}).value().bad.size(), 0U);
  EXPECT_EQ(packed->Fingerprint(), source->Fingerprint());
  EXPECT_EQ(EpochOf(packed), EpochOf(source));
}

TEST_F(PackMasks, UnpackGivesBackEveryFile) {
  ASSERT_TRUE(Pack(*Source()).ok());
  EXPECT_EQ(CheckSet(Set())->damaged, 0U);
  EXPECT_EQ(CheckSet(Set())->images, 2U * kPairs);
  const std::string out = folder_.Path("out");
  const Result<UnpackReport> report = UnpackSet(Set(), out, 3);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->files, 2U * kPairs);
  EXPECT_EQ(FilesBelow(out + "/image"), FilesBelow(folder_.Path("images")));
  EXPECT_EQ(FilesBelow(out + "/mask"), FilesBelow(folder_.Path("masks")));
  EXPECT_EQ(FilesBelow(out).size(), 2U * kPairs);
}

TEST_F(PackMasks, IsContinuedAndAppended) {
  const PackProgress stop = [](uint64_t done, uint64_t) { return done < 16; };
  EXPECT_EQ(Pack(*Source(), {.threads = 1}, stop).error().code, Code::kCancelled);
  EXPECT_TRUE(Pack(*Source()).ok());
  EXPECT_EQ(Pack(*Source())->added, 0U);
  const std::string index = BytesOfFile(Set() + "/index.stoker");
  Add("a/new", 33, 44, {.color = 3, .bit_depth = 2});
  EXPECT_EQ(PackError(*Source()).code, Code::kInvalidArgument);
  EXPECT_EQ(BytesOfFile(Set() + "/index.stoker"), index);
  EXPECT_EQ(Pack(*Source(), {.append = true})->added, 1U);
  EXPECT_EQ(Packed(Set()).value()->Fingerprint(), Source()->Fingerprint());
  EXPECT_EQ(EpochOf(Packed(Set()).value()), EpochOf(Source()));
  EXPECT_EQ(CheckSet(Set())->damaged, 0U);
}

TEST_F(PackMasks, OtherSamplesOfTheSameNamesAreRefused) {
  ASSERT_TRUE(Pack(*Source()).ok());
  EXPECT_THAT(PackError(*Source({.suffix = "_m"})).cause, HasSubstr("other fields"));  // fill
  Result<PackReport> folder = PackFolder(folder_.Path("images/a"), Set());
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().cause, HasSubstr("other fields"));
  fs::remove(folder_.Path("masks/a/11_m.png"));
  Add("a/11", 31, 32, {.color = 0, .bit_depth = 2});
  EXPECT_THAT(PackError(*Source()).cause, HasSubstr("another sample under this path"));
}

TEST_F(PackMasks, FilesThatAreNoMasksAreStoredAsTheyAre) {
  const uint64_t noise = Pack(*Source())->images - Pack(*Source())->packed;
  fs::remove_all(Set());
  Add("rgb", 31, 32, {.color = 2, .bit_depth = 8});
  folder_.Write("masks/text_m.png", "no image");
  folder_.Write("images/text.jpg", "no image");
  const Result<PackReport> report = Pack(*Source());
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->images - report->packed, noise + 3);
  EXPECT_EQ(CheckSet(Set())->damaged, 0U);
  const SourcePtr packed = Packed(Set()).value();
  const auto report_of_packed = Verify(*packed, {}).value(),
             of_files = Verify(*Source(), {}).value();
  EXPECT_EQ(report_of_packed.bad.size(), 2U);
  EXPECT_EQ(of_files.bad.size(), 2U);
}

TEST_F(PackMasks, DamageToAMaskIsFound) {
  ASSERT_TRUE(Pack(*Source()).ok());
  const SourcePtr packed = Packed(Set()).value();
  constexpr uint64_t kId = 3;
  ASSERT_EQ(OpenPackedIndex(Set()).value()->SampleOf(kId, 1).form, packed_set::Form::kPackedMask);
  const ByteRange range = packed->RangeOfPiece(kId, 1);
  std::string shard, name;
  packed->PathOf(range.file, shard);
  packed->NameOfPiece(kId, 1, name);
  const std::string sound = BytesOfFile(shard);
  // The packed mask, its checksum, and the first byte of its file.
  for (uint64_t at = 0; at <= range.length; ++at) {
    std::string changed = sound;
    changed[range.offset + at] ^= 0x10;
    fs::remove(shard);
    folder_.Write(fs::relative(shard, folder_.path()), changed);
    const SetCheck check = CheckSet(Set()).value();
    ASSERT_EQ(check.damaged, 1U) << at;
    EXPECT_THAT(check.first[0].cause, HasSubstr("(" + name + ")"));
    EXPECT_EQ(check.first[0].file, shard);
    EXPECT_EQ(Verify(*packed, {}).value().bad.size(), at < range.length ? 1U : 0U) << at;
  }
}

TEST_F(PackMasks, SourcesWithOtherFieldsAreRefused) {
  const std::vector<std::string> paths = {folder_.Path("images/10.jpg")};
  const std::vector<int64_t> labels = {1};
  FilesOptions options;
  options.further.push_back({.name = "mask", .paths = PathTable(paths)});
  ArrayColumn& label = options.columns.emplace_back();
  label.name = "label";
  label.dtype = DType::kI64;
  label.data = labels.data();
  label.samples = 1;
  const SourcePtr source = Files(PathTable(paths), std::move(options)).value();
  const auto refused = FilesToPack::OfSource(*source);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
  EXPECT_THAT(refused.error().cause, HasSubstr("'label'"));
  const PathTable two(std::vector<std::string>{"a.png", "b.png"});
  const SourcePtr lists = Files(two, {.images = ImageNumbers({2})}).value();
  EXPECT_THAT(FilesToPack::OfSource(*lists).error().cause, HasSubstr("any number of images"));
}

TEST_F(PackMasks, FieldsThatASetCannotNameAreRefused) {
  const PathTable paths(std::vector<std::string>{"a.png"});
  const auto refusal = [&](const std::vector<std::string>& names) {
    FilesOptions options{.root = folder_.path()};
    for (const std::string& name : names) {
      options.further.push_back({.name = name, .paths = paths});
    }
    const auto files = FilesToPack::OfSource(*Files(paths, std::move(options)).value());
    return files.ok() ? "" : files.error().cause;
  };
  EXPECT_EQ(refusal({"mask"}), "");
  EXPECT_THAT(refusal({"a/b"}), HasSubstr("'a/b' cannot be the name of a folder"));
  EXPECT_THAT(refusal({".mask"}), HasSubstr("'.mask' cannot be the name of a folder"));
  EXPECT_THAT(refusal({std::string(56, 'm')}), HasSubstr("is too long"));
  std::vector<std::string> many;
  for (size_t i = 0; i < packed_set::kMaxPieces; ++i) many.push_back("m" + std::to_string(i));
  EXPECT_THAT(refusal(many), HasSubstr("samples have " + std::to_string(many.size() + 1)));
}

TEST_F(PackMasks, SamplesAreSortedByTheirPaths) {
  const auto refusal = [&](std::vector<std::string> paths) {
    FilesOptions options{.root = folder_.path()};
    options.further.push_back({.name = "mask", .paths = PathTable(paths)});
    const SourcePtr source = Files(PathTable(paths), std::move(options)).value();
    const auto files = FilesToPack::OfSource(*source);
    return files.ok() ? "" : files.error().cause;
  };
  EXPECT_EQ(refusal({"a.png", "b.png"}), "");
  EXPECT_THAT(refusal({"b.png", "a.png"}), HasSubstr("comes after 'b.png'"));
  EXPECT_THAT(refusal({"a.png", "a.png"}), HasSubstr("comes after"));
  EXPECT_THAT(refusal({"/a.png"}), HasSubstr("is not a file below"));
  EXPECT_THAT(refusal({"../a.png"}), HasSubstr("is not a file below"));
}

TEST_F(PackMasks, ListsAllImages) {
  ASSERT_TRUE(Pack(*Source()).ok());
  const auto index = OpenPackedIndex(Set()).value();
  std::string text;
  ASSERT_TRUE(WriteSetText(*index, [&](std::string_view piece) {
                text += piece;
                return Status();
              }).ok());
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + 2 * kPairs);
  EXPECT_THAT(text, HasSubstr("a/11_m.png"));
}

// Files of sets whose samples have one image are as before there were others.
TEST_F(PackMasks, SetsOfOneImageHaveTheirVersion) {
  ASSERT_TRUE(PackFolder(folder_.Path("images/a"), Set()).ok());
  for (const char* const file : {"/index.stoker", "/00000.stoker"}) {
    EXPECT_EQ(BytesOfFile(Set() + file)[8], 2) << file;
  }
  fs::remove_all(Set());
  ASSERT_TRUE(Pack(*Source()).ok());
  for (const char* const file : {"/index.stoker", "/00000.stoker"}) {
    EXPECT_EQ(BytesOfFile(Set() + file)[8], 3) << file;
  }
}

}  // namespace
}  // namespace stoker
