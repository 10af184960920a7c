// The range of a packed JPEG that has a region's rows and the header decodes as the whole file
// does, and nothing outside the range is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/numbers/divide_up.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "tests/transforms/jpeg/fast/kinds.h"
#include "tests/transforms/whole.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/packed/decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

using packed::PackedFile;

std::vector<uint8_t> Packed(const std::vector<uint8_t>& jpeg) {
  return PackJpeg(Unpadded(Padded(jpeg))).value();
}

RowParts PartsOfFile(const std::vector<uint8_t>& file) {
  const std::vector<uint8_t> padded = Padded(file);
  return PackedFile::Open(Unpadded(padded)).value().row_parts();
}

// Copies the range, so that a sanitizer finds reads outside of it.
std::vector<uint8_t> Range(const std::vector<uint8_t>& file, RowParts::Bytes range) {
  return Padded(std::span(file).subspan(range.begin, range.end - range.begin));
}

struct Rows {
  int top, bottom;
};
Rows RowsFor(const PackedFile& file, const Rect& region, Reduction reduction) {
  const jpeg::CropGeometry geometry(file.frame(), region, reduction);
  return {geometry.top, geometry.bottom};
}

TEST(PackedParts, DecodeAsTheWholeFile) {
  PackedJpegDecoder decoder;  // one for all, whose state must not show
  uint64_t seed = 0, read = 0, all = 0;
  for (const FastJpeg& kind : FastJpegs()) {
    for (const int height : {1, 8, 17, 40, 129, 300}) {
      const std::vector<uint8_t> jpeg =
          MakeJpeg({.width = 90, .height = height, .color = kind.color, .sampling = kind.sampling});
      const std::vector<uint8_t> file = Packed(jpeg);
      const std::vector<uint8_t> padded = Padded(file);
      const PackedFile opened = PackedFile::Open(Unpadded(padded)).value();
      const RowParts parts = opened.row_parts();
      ASSERT_TRUE(parts.FitsIn(file.size()));
      for (Reduction reduction = 1; reduction <= 4; reduction *= 2) {
        if (Reduced(ImageSize{90, height}, reduction).height < 3) continue;
        if (kind.name == std::string("440") && reduction > 1) continue;
        const WholeImage whole = DecodeWhole(jpeg, reduction).value();
        RandomStream random({9, 0, ++seed}, 0);
        for (int i = 0; i < Effort(20); ++i) {
          const Rect region = RandomRegion(whole.size, random);
          const auto [top, bottom] = RowsFor(opened, region, reduction);
          const RowParts::Bytes range = parts.Find(top, bottom, opened.mcu_rows(), file.size());
          const std::string difference = CompareBy(
              [&](const Rect& r, RowSink& rows) { return decoder.Decode(r, rows, reduction); },
              decoder, Range(file, range), region, whole, reduction);
          ASSERT_EQ(difference, "") << kind.name << " " << height << " 1/" << reduction;
          read += range.end - range.begin;
          all += file.size();
        }
      }
    }
  }
  EXPECT_LT(read, all * 9 / 10);
}

TEST(PackedParts, OtherRowsAreMissing) {
  const std::vector<uint8_t> file =
      Packed(MakeJpeg({.width = 64, .height = 320, .sampling = Luma(1, 1)}));
  const RowParts parts = PartsOfFile(file);
  PackedJpegDecoder decoder;
  for (const auto [top, bottom] : {Rows{0, 4}, Rows{17, 23}, Rows{36, 40}}) {
    const RowParts::Bytes range = parts.Find(top, bottom, 40, file.size());
    const std::vector<uint8_t> part = Range(file, range);
    EXPECT_EQ(ErrorOf(decoder, part, {0, 8 * top, 64, 8 * (bottom - top)}).cause, "");
    SCOPED_TRACE(std::to_string(top) + ": " + std::to_string(range.begin) + " … " +
                 std::to_string(range.end) + " of " + std::to_string(file.size()));
    const Error error = ErrorOf(decoder, part);
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_TRUE(error.offset.has_value() && *error.offset <= part.size() - kBufferPadding);
    EXPECT_FALSE(RestoreJpeg(Unpadded(part)).ok());
  }
}

// A range that begins elsewhere is no packed JPEG.
TEST(PackedParts, BeginWhereTheFileSays) {
  const std::vector<uint8_t> file =
      Packed(MakeJpeg({.width = 32, .height = 320, .sampling = Luma(1, 1)}));
  PackedJpegDecoder decoder;
  int opened = 0;
  for (size_t begin = 0; begin < file.size(); ++begin) {
    const std::vector<uint8_t> part = Padded(std::span(file).subspan(begin));
    const Error error = ErrorOf(decoder, part, {0, 312, 8, 8});
    opened += error.cause.empty() ? 1 : 0;
    ASSERT_TRUE(error.cause.empty() || error.code == Code::kDataLoss) << error.ToString();
  }
  EXPECT_EQ(opened, 9) << "at the start, at the seven other parts and at the header";
}

// Forged bytes with right checksums, of which a range is there. (With a sanitizer this also finds
// accesses outside the range.)
TEST(PackedParts, ForgedBytesAreNotTrusted) {
  const std::vector<uint8_t> sound =
      Packed(MakeJpeg({.width = 70, .height = 160, .sampling = Luma(1, 1)}));
  const PackedParts places = PartsOf(sound);
  const RowParts parts = PartsOfFile(sound);
  PackedJpegDecoder decoder;
  int decoded = 0, failed = 0;
  for (uint64_t n = 0; n < 3000; ++n) {
    RandomStream random({3, 0, n}, 0);
    std::vector<uint8_t> file = sound;
    // Distances to the header, the directory, or the rows.
    for (uint64_t i = 0; i <= random.Below(4); ++i) {
      size_t at = random.Below(file.size());
      if (n % 3 == 0)
        at = size_t{parts.at[random.Below(8)]} * RowParts::kUnit + 8 + random.Below(4);
      if (n % 3 == 1) {
        at = places.directory_at + random.Below(places.rows_at - places.directory_at);
      }
      file[at] = static_cast<uint8_t>(random.Below(256));
    }
    SignPackedJpeg(file);
    const int top = static_cast<int>(random.Below(20));
    const int bottom = top + 1 + static_cast<int>(random.Below(static_cast<uint64_t>(20 - top)));
    const std::vector<uint8_t> part = Range(file, parts.Find(top, bottom, 20, file.size()));
    const Error error = ErrorOf(decoder, part, {0, 8 * top, 70, 8 * (bottom - top)});
    ++(error.cause.empty() ? decoded : failed);
    (void)ErrorOf(decoder, part);
    (void)RestoreJpeg(Unpadded(part));
  }
  EXPECT_GT(decoded, 100);
  EXPECT_GT(failed, 100);
}

// A file whose numbers would not fit is read as a whole.
TEST(PackedParts, OfALongFileAreUnknown) {
  const std::vector<uint8_t> file =
      Packed(MakeJpeg({.width = 3000, .height = 2200, .sampling = Luma(1, 1), .quality = 100}));
  const RowParts parts = PartsOfFile(file);
  ASSERT_GT(file.size(), 65535 * RowParts::kUnit);
  EXPECT_EQ(parts.at, RowParts().at);
  EXPECT_FALSE(parts.FitsIn(file.size()));
}

}  // namespace
}  // namespace stoker::testing
