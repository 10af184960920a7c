// CropMaker plans what devices decode, refuses everything else for a reason, and trusts no file.
#include "transforms/device/crop_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "transforms/packed/pack.h"

namespace stoker::testing {
namespace {

using packed::PackedFile;

constexpr ImageSize kImage{200, 160};  // 20 rows of MCUs

// All of the image, a quarter as wide and as high.
Resampling WholeImage() {
  Resampling task;
  task.image = kImage;
  task.box = {0, 0, kImage.width, kImage.height};
  task.resized = {50, 40};
  task.window = {0, 0, 50, 40};
  return task;
}

// Rows [top, bottom) of the image's pixels.
Resampling RowsOfImage(int top, int bottom) {
  Resampling task = WholeImage();
  task.box = {0, top, kImage.width, bottom - top};
  return task;
}

// A packed JPEG and what reads it.
class OpenedFile {
 public:
  explicit OpenedFile(std::vector<uint8_t> bytes) : padded_(std::move(bytes)) {
    const size_t size = padded_.size();
    padded_.resize(size + kBufferPadding);
    opened_ = PackedFile::Open(std::span(padded_).first(size));
  }

  // The error of opening it or of planning; one without a cause if there is none.
  Error ErrorOf(CropMaker& maker, const Resampling& task,
                uint64_t room = decode::kMaxCropBytes) const {
    if (!opened_.ok()) return opened_.error();
    const Status status = maker.Plan(*opened_, task, room);
    return status.ok() ? Error{} : status.error();
  }
  // The crop, or no bytes if it is refused.
  std::vector<uint8_t> Crop(CropMaker& maker, const Resampling& task) const {
    if (!opened_.ok() || !maker.Plan(*opened_, task).ok()) return {};
    std::vector<uint8_t> crop(maker.bytes());
    maker.Write(0, crop.data());
    return crop;
  }

 private:
  std::vector<uint8_t> padded_;
  Result<PackedFile> opened_{PackedFile()};
};

std::vector<uint8_t> PackedImage() {
  const std::vector<uint8_t> jpeg =
      MakeJpeg({.width = kImage.width, .height = kImage.height, .sampling = Luma(1, 1)});
  std::vector<uint8_t> padded = jpeg;
  padded.resize(jpeg.size() + kBufferPadding);
  return PackJpeg(std::span(padded).first(jpeg.size())).value();
}

// ---- Tasks

struct RefusedTask {
  std::string name;
  std::function<void(Resampling&)> change;  // of WholeImage()
  Code code;
  std::string cause;
};

class RefusesTask : public ::testing::TestWithParam<RefusedTask> {};

TEST_P(RefusesTask, AndPlansTheNext) {
  const OpenedFile file(PackedImage());
  MemoryBudget budget(MemoryBudget::kNoLimit);
  CropMaker fresh(budget), maker(budget);
  const std::vector<uint8_t> sound = file.Crop(fresh, WholeImage());
  ASSERT_FALSE(sound.empty());

  Resampling task = WholeImage();
  GetParam().change(task);
  const Error error = file.ErrorOf(maker, task);
  EXPECT_EQ(error.code, GetParam().code) << error.ToString();
  EXPECT_EQ(error.cause, GetParam().cause);
  EXPECT_EQ(file.Crop(maker, WholeImage()), sound);
}

RefusedTask ByFilter(const std::string& name, Interpolation interpolation) {
  return {name, [=](Resampling& task) { task.interpolation = interpolation; }, Code::kUnimplemented,
          std::string("devices do not resample by ") + NameOf(interpolation)};
}

RefusedTask NotOnDevices(const std::string& name, std::function<void(Resampling&)> change,
                         const std::string& what) {
  return {name, std::move(change), Code::kUnimplemented, "devices do not resample " + what};
}

INSTANTIATE_TEST_SUITE_P(
    CropMaker, RefusesTask,
    ::testing::Values(ByFilter("Bicubic", Interpolation::kBicubic),
                      ByFilter("Lanczos", Interpolation::kLanczos),
                      ByFilter("Box", Interpolation::kBox),
                      NotOnDevices(
                          "WindowLargerThanTheResizedBox",
                          [](Resampling& task) {
                            task.window = {-1, 0, 52, 40};
                          },
                          "images with padding"),
                      NotOnDevices(
                          "WindowBesideTheResizedBox", [](Resampling& task) { task.window.x = 50; },
                          "images with padding"),
                      NotOnDevices(
                          "HugeOutput",
                          [](Resampling& task) {
                            task.resized = {65535, 20000};
                            task.window = {0, 0, 65535, 20000};
                          },
                          "to so large a size"),
                      NotOnDevices(
                          "BoxOutsideItsImage", [](Resampling& task) { task.box.x = kImage.width; },
                          "boxes outside their image"),
                      // The one pixel is computed from 32,000, for which a block has no room.
                      NotOnDevices(
                          "LargeBoxToOnePixel",
                          [](Resampling& task) {
                            task.resized = {1, 1};
                            task.window = {0, 0, 1, 1};
                          },
                          "so large a box to so small a size"),
                      RefusedTask{"OfAnotherImage", [](Resampling& task) { ++task.image.width; },
                                  Code::kDataLoss, "the image has another size"}),
    [](const auto& test) { return test.param.name; });

struct PlannedTask {
  std::string name;
  std::function<void(Resampling&)> change;  // of WholeImage()
};

class PlansTask : public ::testing::TestWithParam<PlannedTask> {};

TEST_P(PlansTask, ThatIsCloseToARefusedOne) {
  const OpenedFile file(PackedImage());
  MemoryBudget budget(MemoryBudget::kNoLimit);
  CropMaker maker(budget);
  Resampling task = WholeImage();
  GetParam().change(task);
  EXPECT_EQ(file.ErrorOf(maker, task).cause, "");
}

INSTANTIATE_TEST_SUITE_P(
    CropMaker, PlansTask,
    ::testing::Values(
        PlannedTask{"Nearest",
                    [](Resampling& task) { task.interpolation = Interpolation::kNearest; }},
        PlannedTask{"WindowInTheResizedBox",
                    [](Resampling& task) {
                      task.window = {1, 1, 49, 39};
                    }},
        PlannedTask{"BoxPartlyOutsideItsImage",
                    [](Resampling& task) { task.box.x = kImage.width - 1; }},
        PlannedTask{"LargeBoxToOnePixelWithoutAntialias",
                    [](Resampling& task) {
                      task.resized = {1, 1};
                      task.window = {0, 0, 1, 1};
                      task.antialias = false;
                    }},
        PlannedTask{"Turned",
                    [](Resampling& task) { task.turn = TurnOf(static_cast<Orientation>(6)); }}),
    [](const auto& test) { return test.param.name; });

TEST(CropMakerMemory, ForFiltersIsOfTheBudget) {
  const OpenedFile file(PackedImage());
  MemoryBudget budget(100);
  CropMaker maker(budget);
  const Error error = file.ErrorOf(maker, WholeImage());
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_GT(error.wanted_bytes, 0U);
  budget.SetLimit(MemoryBudget::kNoLimit);
  EXPECT_EQ(file.ErrorOf(maker, WholeImage()).cause, "");
}

// The budget grows by a page at a time until the crop can be planned.
TEST(CropMakerMemory, IsThatOfTheBudget) {
  const OpenedFile file(PackedImage());
  MemoryBudget unlimited(MemoryBudget::kNoLimit), budget(0);
  CropMaker fresh(unlimited), maker(budget);
  const std::vector<uint8_t> crop = file.Crop(fresh, WholeImage());
  constexpr uint64_t kPage = 4096;
  EXPECT_GE(unlimited.used(), 3 * kPage) << "two filters, and the lists";
  for (; budget.limit() < unlimited.used(); budget.SetLimit(budget.limit() + kPage)) {
    EXPECT_EQ(file.ErrorOf(maker, WholeImage()).code, Code::kResourceExhausted);
    EXPECT_LE(budget.used(), budget.limit());
  }
  EXPECT_EQ(file.Crop(maker, WholeImage()), crop);
  EXPECT_EQ(budget.used(), unlimited.used());
}

TEST(CropMakerMemory, IsRefusedBeyondTheRoomOfTheCrop) {
  const OpenedFile file(PackedImage());
  MemoryBudget budget(MemoryBudget::kNoLimit);
  CropMaker maker(budget);
  const size_t bytes = file.Crop(maker, WholeImage()).size();
  EXPECT_EQ(file.ErrorOf(maker, WholeImage(), bytes).cause, "");
  for (const size_t room : {bytes - decode::kCropAlignment, bytes / 2, bytes / 100, size_t{0}}) {
    const Error error = file.ErrorOf(maker, WholeImage(), room);
    EXPECT_EQ(error.code, Code::kResourceExhausted) << room;
    EXPECT_EQ(error.cause, "there is no room for the crop") << room;
  }
}

// ---- Damaged and forged files

// Each row of MCUs is changed in turn. What the crop does not need is not looked at.
TEST(CropMakerOfADamagedFile, NoticesDamageInTheRowsThatTheCropNeeds) {
  constexpr int kRows = 20, kRowPixels = 8;
  const std::vector<uint8_t> sound = PackedImage();
  const PackedParts parts = PartsOf(sound);
  ASSERT_EQ(parts.rows, size_t{kRows});
  MemoryBudget budget(MemoryBudget::kNoLimit);
  CropMaker maker(budget);
  for (int damaged = 0; damaged < kRows; ++damaged) {
    const std::span<const uint8_t> bytes = BytesOfRow(sound, parts, static_cast<size_t>(damaged));
    std::vector<uint8_t> changed = sound;
    changed[static_cast<size_t>(bytes.data() - sound.data()) + bytes.size() / 2] ^= 1;
    const OpenedFile file(std::move(changed));
    for (int row = 0; row < kRows; ++row) {
      const Error error =
          file.ErrorOf(maker, RowsOfImage(row * kRowPixels, (row + 1) * kRowPixels));
      ASSERT_EQ(error.cause,
                row == damaged ? "damaged packed JPEG: the checksum of a row of MCUs" : "")
          << "row " << damaged << " is damaged, and row " << row << " is needed";
      ASSERT_EQ(error.code, row == damaged ? Code::kDataLoss : Code::kInvalidArgument);
    }
  }
}

void Append(std::vector<uint8_t>& file, std::span<const uint8_t> bytes) {
  file.insert(file.end(), bytes.begin(), bytes.end());
}

// The header of a JPEG of this size, in 4:2:0.
std::vector<uint8_t> HeaderOf(ImageSize size) {
  std::vector<uint8_t> jpeg = MakeJpeg({.sampling = Luma(2, 2)});
  jpeg::FrameHeader frame;
  EXPECT_EQ(ParseHeader(jpeg, frame), Fallback::kNone);
  jpeg.resize(frame.scan_offset);
  SetJpegSize(jpeg, size.width, size.height);
  return jpeg;
}

// A packed JPEG of an image of this size, with right checksums, all of whose rows of MCUs are
// `row`.
std::vector<uint8_t> ForgedFile(ImageSize size, std::span<const uint8_t> row) {
  const std::vector<uint8_t> header = HeaderOf(size);
  const int rows = (size.height + 15) / 16;
  std::vector<uint8_t> file;
  std::vector<packed::DirectoryEntry> directory;
  uint32_t end = 0;
  const auto append_row = [&] {
    packed::Start start;
    if (packed::BeginsPart(static_cast<int>(directory.size()), rows)) {
      Append(file, std::span(reinterpret_cast<const uint8_t*>(&start), sizeof(start)));
      end += sizeof(start);
    }
    Append(file, row);
    end += static_cast<uint32_t>(row.size());
    directory.push_back({end, 0});
  };
  for (int i = 0; i < packed::MiddleRow(rows); ++i) append_row();
  const size_t header_at = file.size();
  packed::FixedPart fixed{};
  fixed.header_bytes = static_cast<uint32_t>(header.size());
  Append(file, std::span(reinterpret_cast<const uint8_t*>(&fixed), sizeof(fixed)));
  Append(file, header);
  const size_t directory_at = file.size();
  const size_t directory_bytes = static_cast<size_t>(rows) * sizeof(packed::DirectoryEntry);
  file.resize(directory_at + directory_bytes);
  while (static_cast<int>(directory.size()) < rows) append_row();
  std::memcpy(&file[directory_at], directory.data(), directory_bytes);
  const auto to_header = static_cast<uint32_t>(header_at);
  std::memcpy(&file[offsetof(packed::Start, to_header)], &to_header, sizeof(to_header));
  SignPackedJpeg(file);
  return file;
}

struct RefusedFile {
  std::string name;
  ImageSize size;
  size_t sizes;       // of runs, in each row of MCUs
  uint16_t run_size;  // what they say
  size_t run_bytes;   // of all runs of a row
  Code code;
  std::string cause;
};

class RefusesFile : public ::testing::TestWithParam<RefusedFile> {};

TEST_P(RefusesFile, ThatSomebodyForged) {
  const RefusedFile& param = GetParam();
  std::vector<uint8_t> row(2 * param.sizes + param.run_bytes);
  for (size_t i = 0; i < param.sizes; ++i) {
    std::memcpy(&row[2 * i], &param.run_size, sizeof(param.run_size));
  }
  const OpenedFile file(ForgedFile(param.size, row));
  Resampling task;
  task.image = param.size;
  task.box = {0, 0, param.size.width, param.size.height};
  task.resized = {20, 20};
  task.window = {0, 0, 20, 20};
  task.antialias = false;
  MemoryBudget budget(MemoryBudget::kNoLimit);
  CropMaker maker(budget);
  const Error error = file.ErrorOf(maker, task);
  EXPECT_EQ(error.code, param.code) << error.ToString();
  EXPECT_EQ(error.cause, param.cause);
}

// The runs of a row of MCUs in 4:2:0: of two rows of Y, and one of Cb and of Cr.
constexpr size_t RunsOf(size_t mcus) { return 2 * ((2 * mcus + 15) / 16) + 2 * ((mcus + 15) / 16); }

constexpr size_t kSmallRuns = RunsOf(13), kLargeRuns = RunsOf(4094);

RefusedFile Damaged(const std::string& name, size_t sizes, uint16_t run_size, size_t run_bytes) {
  return {name,
          {200, 160},
          sizes,
          run_size,
          run_bytes,
          Code::kDataLoss,
          "damaged packed JPEG: the sizes of runs"};
}
RefusedFile TooLarge(const std::string& name, int height, uint16_t run_size) {
  return {name,
          {65500, height},
          kLargeRuns,
          run_size,
          kLargeRuns * run_size,
          Code::kUnimplemented,
          "devices do not resample boxes that are so large"};
}

INSTANTIATE_TEST_SUITE_P(CropMaker, RefusesFile,
                         ::testing::Values(
                             RefusedFile{
                                 "Sound", {200, 160}, kSmallRuns, 0, 0, Code::kInvalidArgument, ""},
                             Damaged("WithoutTheLastSizeOfARun", kSmallRuns - 1, 0, 0),
                             Damaged("WithRunsBeyondTheRow", kSmallRuns, 1, kSmallRuns - 1),
                             TooLarge("OfMoreThanTheMostGroups", 65500, 0),
                             TooLarge("OfMoreThanTheMostBytes", 48, 65535)),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace stoker::testing
