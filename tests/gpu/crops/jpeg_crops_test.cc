// CropMaker takes of a plain JPEG what a crop needs, and refuses what is not what was indexed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "gpu/crops/entropy-inl.h"
#include "tests/testing/images/make_jpeg.h"
#include "transforms/device/crop_maker.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

using jpeg::CropIndex;
using jpeg::EntryPoint;

constexpr ImageSize kPhotograph{640, 480};
constexpr int kRowPixels = 16;  // of a row of MCUs
constexpr char kChanged[] = "the JPEG is not what its crop index was made of";

static_assert(decode::MakeCoefficientOrder() == jpeg::kZigZag);

// Rows [top, bottom) of the image's pixels.
Resampling RowsOfPhotograph(int top, int bottom) {
  Resampling task;
  task.image = kPhotograph;
  task.box = {0, top, kPhotograph.width, bottom - top};
  task.resized = {50, 40};
  task.window = {0, 0, 50, 40};
  return task;
}
Resampling WholePhotograph() { return RowsOfPhotograph(0, kPhotograph.height); }

// A JPEG, its entry points, and an index that is made of both whatever they are.
class IndexedFile {
 public:
  explicit IndexedFile(std::vector<uint8_t> jpeg) : padded_(std::move(jpeg)) {
    padded_.resize(padded_.size() + kBufferPadding);
    EXPECT_EQ(jpeg::ParseHeader(file(), frame_), Fallback::kNone);
    std::vector<uint8_t> packed;
    EXPECT_EQ(jpeg::CropIndexMaker().Make(file(), packed), Fallback::kNone);
    EXPECT_EQ(index_.Open(packed, file(), frame_), CropIndex::Match::kUsable);
    for (int64_t i = 0; i < index_.shape().entry_points(); ++i)
      entry_points.push_back(index_.At(i));
    packed_ = std::move(packed);
  }

  std::span<uint8_t> scan() {
    return std::span(padded_).first(file().size()).subspan(frame_.scan_offset);
  }
  int64_t RowBegin(int64_t mcu_row) const {
    const int64_t across = (kPhotograph.width + kRowPixels - 1) / kRowPixels;
    return entry_points[static_cast<size_t>(index_.shape().EntryPointBefore(mcu_row * across))]
        .byte();
  }
  const jpeg::IndexShape& shape() const { return index_.shape(); }

  // Makes the index of the changed file, or of changed entry points.
  void PackAgain() {
    const std::vector<uint8_t> packed = PackCropIndex(
        file(), frame_, jpeg::IndexShape(frame_, jpeg::IndexShape::kInterval), entry_points);
    packed_ = packed;
    EXPECT_EQ(index_.Open(packed_, file(), frame_), CropIndex::Match::kUsable);
  }

  // Makes an index that has an entry point before each MCU, all of them at the first one.
  void ForgeIndex() {
    const jpeg::IndexShape shape(frame_, /*interval=*/1);
    const std::vector<EntryPoint> all(static_cast<size_t>(shape.entry_points()));
    packed_ = PackCropIndex(file(), frame_, shape, all);
    EXPECT_EQ(index_.Open(packed_, file(), frame_), CropIndex::Match::kUsable);
  }
  size_t index_bytes() const { return packed_.size(); }

  // The error of planning; one without a cause if there is none.
  Error ErrorOf(CropMaker& maker, const Resampling& task,
                uint64_t room = decode::kMaxCropBytes) const {
    const Status status = maker.Plan(IndexedJpeg{file(), frame_, index_}, task, room);
    return status.ok() ? Error{} : status.error();
  }
  std::vector<uint8_t> Crop(CropMaker& maker, const Resampling& task) const {
    if (!maker.Plan(IndexedJpeg{file(), frame_, index_}, task).ok()) return {};
    std::vector<uint8_t> crop(maker.bytes());
    maker.Write(0, crop.data());
    return crop;
  }

  std::vector<EntryPoint> entry_points;

 private:
  std::span<const uint8_t> file() const {
    return std::span(padded_).first(padded_.size() - kBufferPadding);
  }

  std::vector<uint8_t> padded_, packed_;
  jpeg::FrameHeader frame_;
  CropIndex index_;
};

std::vector<uint8_t> Photograph(int restart_interval = 0) {
  return MakeJpeg({.width = kPhotograph.width,
                   .height = kPhotograph.height,
                   .sampling = Luma(2, 2),
                   .quality = 95,
                   .restart_interval = restart_interval});
}

class JpegCrops : public ::testing::Test {
 protected:
  MemoryBudget budget_{MemoryBudget::kNoLimit};
  CropMaker maker_{budget_};
};

TEST_F(JpegCrops, HaveOnlyTheBytesThatTheyNeed) {
  const IndexedFile file(Photograph());
  const auto bytes_of = [&](const Rect& box) {
    Resampling task = WholePhotograph();
    task.box = box;
    EXPECT_EQ(file.ErrorOf(maker_, task).cause, "");
    return maker_.bytes();
  };
  const size_t all = bytes_of({0, 0, kPhotograph.width, kPhotograph.height});
  EXPECT_LT(bytes_of({0, 100, kPhotograph.width, 100}), all / 3);
  EXPECT_LT(bytes_of({300, 0, 40, kPhotograph.height}), all / 3);
  EXPECT_LT(bytes_of({300, 100, 40, 100}), all / 6);
}

// Each row of MCUs is changed in turn. Rows far from it are not looked at.
TEST_F(JpegCrops, AreRefusedIfTheirBytesHaveChanged) {
  IndexedFile file(Photograph());
  const int rows = kPhotograph.height / kRowPixels;
  constexpr int64_t kPiece = 4096;
  int planned = 0;
  for (int damaged = 0; damaged < rows; ++damaged) {
    const int64_t at = (file.RowBegin(damaged) + file.RowBegin(damaged + 1)) / 2;
    if (at < kPiece) continue;  // it may have a checksum together with the header
    file.scan()[static_cast<size_t>(at)] ^= 1;
    for (int row = 0; row < rows; ++row) {
      const Error error =
          file.ErrorOf(maker_, RowsOfPhotograph(row * kRowPixels, (row + 1) * kRowPixels));
      // Upsampling blends in the rows above and below.
      const int64_t from = file.RowBegin(std::max(row - 1, 0));
      const int64_t to = file.RowBegin(std::min(row + 2, rows));
      if (row == damaged) {
        ASSERT_EQ(error.cause, kChanged) << row;
        ASSERT_EQ(error.code, Code::kDataLoss);
      } else if (at + kPiece < from || to + kPiece < at) {
        ASSERT_EQ(error.cause, "") << "row " << damaged << " is damaged, and " << row << " is not";
        ++planned;
      }
    }
    file.scan()[static_cast<size_t>(at)] ^= 1;
  }
  EXPECT_GT(planned, rows * rows / 2);
}

TEST_F(JpegCrops, AreTheSameAfterOneThatIsRefused) {
  CropMaker fresh(budget_);
  const IndexedFile sound(Photograph());
  IndexedFile changed(Photograph());
  changed.scan()[1000] ^= 1;
  const std::vector<uint8_t> crop = sound.Crop(fresh, WholePhotograph());
  ASSERT_FALSE(crop.empty());
  EXPECT_EQ(changed.ErrorOf(maker_, WholePhotograph()).cause, kChanged);
  EXPECT_EQ(sound.Crop(maker_, WholePhotograph()), crop);
}

TEST_F(JpegCrops, AreRefusedForAnotherImage) {
  const IndexedFile file(Photograph());
  Resampling task = WholePhotograph();
  ++task.image.width;
  EXPECT_EQ(file.ErrorOf(maker_, task).cause, "the image has another size");
}

TEST_F(JpegCrops, AreRefusedOfMoreTablesThanABlockHasRoomFor) {
  std::vector<uint8_t> jpeg = Photograph();
  const std::array<uint8_t, 2> tables{0xFF, 0xC4}, scan{0xFF, 0xDA};
  std::vector<uint8_t> copies;  // of the tables of chroma, with other numbers
  auto at = jpeg.begin();
  while ((at = std::search(at, jpeg.end(), tables.begin(), tables.end())) != jpeg.end()) {
    const auto size = static_cast<ptrdiff_t>(2 + (at[2] << 8 | at[3]));
    if ((at[4] & 15) == 1) {
      const size_t number_at = copies.size() + 4;
      copies.insert(copies.end(), at, at + size);
      copies[number_at] ^= 3;
    }
    at += size;
  }
  ASSERT_FALSE(copies.empty());
  const auto begin = std::search(jpeg.begin(), jpeg.end(), scan.begin(), scan.end());
  begin[10] = 0x22;  // those of Cr
  const IndexedFile file(WithSegment(jpeg, copies));
  const Error error = file.ErrorOf(maker_, WholePhotograph());
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "devices do not decode JPEGs with more than four Huffman tables");
}

TEST_F(JpegCrops, AreRefusedWithoutTheirRestartMarkers) {
  IndexedFile file(Photograph(/*restart_interval=*/13));
  EXPECT_EQ(file.ErrorOf(maker_, WholePhotograph()).cause, "");
  const std::array<uint8_t, 2> marker{0xFF, 0xD3};
  const std::span<uint8_t> scan = file.scan();
  const auto found = std::search(scan.begin(), scan.end(), marker.begin(), marker.end());
  ASSERT_NE(found, scan.end());
  found[1] = 0xD4;
  file.PackAgain();
  EXPECT_EQ(file.ErrorOf(maker_, WholePhotograph()).cause, kChanged);
}

// A small file and a smaller index have as many intervals as a crop of a megabyte.
TEST_F(JpegCrops, OfAForgedIndexTakeNoMoreMemoryThanTheyMay) {
  constexpr int kSide = 2048;
  constexpr size_t kIntervals = size_t{kSide / 8} * (kSide / 8);
  constexpr uint64_t kListBytes = kIntervals * sizeof(decode::CropInterval);
  IndexedFile file(
      MakeJpeg({.width = kSide, .height = kSide, .color = JpegColor::kGray, .quality = 10}));
  file.ForgeIndex();
  EXPECT_LT(file.index_bytes(), kListBytes / 100);
  Resampling task;
  task.image = {kSide, kSide};
  task.box = {0, 0, kSide, kSide};
  task.resized = {200, 200};
  task.window = {0, 0, 200, 200};

  const Error refused = file.ErrorOf(maker_, task, /*room=*/kListBytes / 2);
  EXPECT_EQ(refused.code, Code::kResourceExhausted);
  EXPECT_EQ(refused.cause, "there is no room for the crop");
  EXPECT_LT(budget_.used(), kListBytes / 10) << "the filters";

  budget_.SetLimit(budget_.used() + kListBytes / 2);
  EXPECT_EQ(file.ErrorOf(maker_, task).code, Code::kResourceExhausted);
  EXPECT_LT(budget_.used(), kListBytes / 10);

  budget_.SetLimit(MemoryBudget::kNoLimit);
  EXPECT_EQ(file.ErrorOf(maker_, task).cause, "");
  EXPECT_EQ(maker_.intervals(), kIntervals);
  EXPECT_GT(budget_.used(), kListBytes);
  EXPECT_LT(budget_.used(), kListBytes + kListBytes / 10);
}

TEST_F(JpegCrops, AreRefusedIfTheyHaveABitMoreThanTheirRoom) {
  const IndexedFile file(Photograph());
  ASSERT_EQ(file.ErrorOf(maker_, WholePhotograph()).cause, "");
  const size_t bytes = maker_.bytes();
  EXPECT_EQ(file.ErrorOf(maker_, WholePhotograph(), bytes).cause, "");
  for (const size_t room : {bytes - decode::kCropAlignment, bytes / 2, bytes / 100, size_t{0}}) {
    const Error error = file.ErrorOf(maker_, WholePhotograph(), room);
    EXPECT_EQ(error.code, Code::kResourceExhausted) << room;
    EXPECT_EQ(error.cause, "there is no room for the crop") << room;
  }
}

// Entry points that nothing but a forged index has.
struct Forgery {
  std::string name;
  std::function<void(IndexedFile&)> forge;
};

class JpegCropsWith : public JpegCrops, public ::testing::WithParamInterface<Forgery> {};

TEST_P(JpegCropsWith, AreRefused) {
  IndexedFile file(Photograph(GetParam().name.find("Marker") != std::string::npos ? 40 : 0));
  GetParam().forge(file);
  file.PackAgain();
  EXPECT_EQ(file.ErrorOf(maker_, WholePhotograph()).cause, kChanged);
}

INSTANTIATE_TEST_SUITE_P(
    ForgedEntryPoints, JpegCropsWith,
    ::testing::Values(
        Forgery{"OneBeforeTheLast",
                [](IndexedFile& file) { file.entry_points[3].bit = file.entry_points[2].bit - 1; }},
        Forgery{"TheLastBehindTheFile",
                [](IndexedFile& file) {
                  file.entry_points.back().bit = 8 * static_cast<int64_t>(file.scan().size() + 1);
                }},
        Forgery{"TheLastFarBehindTheFile",
                [](IndexedFile& file) { file.entry_points.back().bit = int64_t{1} << 38; }},
        Forgery{"OneFarBehindTheFile",
                [](IndexedFile& file) {
                  file.entry_points.back().bit = int64_t{1} << 38;
                  file.entry_points[7].bit = int64_t{1} << 37;
                }},
        Forgery{"ARowBeforeTheOneAboveIt",
                [](IndexedFile& file) {
                  const auto in_row = static_cast<size_t>(file.shape().per_stride);
                  for (size_t i = 2 * in_row; i <= 3 * in_row; ++i) {
                    file.entry_points[i].bit = file.entry_points[i - in_row].bit - 8;
                  }
                }},
        Forgery{"AMarkerAtTheEndOfTheFile",
                [](IndexedFile& file) {
                  const auto in_row = static_cast<size_t>(file.shape().per_stride);
                  for (size_t i = in_row; i < file.entry_points.size(); ++i) {
                    file.entry_points[i].bit = 8 * static_cast<int64_t>(file.scan().size());
                  }
                }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace stoker::testing
