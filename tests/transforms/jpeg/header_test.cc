// Open reports the format, size, orientation and chroma of an image.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/decode.h"
#include "transforms/decode/exif.h"
#include "transforms/decode/format.h"
#include "transforms/decode/orientation.h"
#include "transforms/jpeg/cmyk.h"
#include "transforms/jpeg/columns.h"

namespace stoker::testing {
namespace {

using namespace std::string_view_literals;

ImageFormat Sniff(std::string_view text) {
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  return SniffFormat(bytes);
}

TEST(Format, IsDetectedFromTheBytes) {
  EXPECT_EQ(Sniff("\xFF\xD8\xFF\xE0"), ImageFormat::kJpeg);
  EXPECT_EQ(Sniff("\xFF\xD8"), ImageFormat::kJpeg);
  EXPECT_EQ(Sniff("\x89PNG\r\n\x1A\n...."), ImageFormat::kPng);
  EXPECT_EQ(Sniff("RIFF\x01\x02\x03\x04WEBPVP8 "), ImageFormat::kWebp);
  EXPECT_EQ(Sniff("GIF89a...."), ImageFormat::kGif);
  EXPECT_EQ(Sniff("GIF87a"), ImageFormat::kGif);
  EXPECT_EQ(Sniff("BM\x10\x20\x30\0\0\0\0\0\x36"sv), ImageFormat::kBmp);
  EXPECT_EQ(Sniff("II*\0...."sv), ImageFormat::kTiff);
  EXPECT_EQ(Sniff("MM\0*...."sv), ImageFormat::kTiff);
  EXPECT_EQ(Sniff("P6\n3 4\n255\n"), ImageFormat::kPnm);
  EXPECT_EQ(Sniff("\xF5stkjpg\x01"), ImageFormat::kPackedJpeg);
  EXPECT_STREQ(NameOf(ImageFormat::kWebp), "WebP");
}

TEST(Format, NearMissesAreUnknown) {
  for (const std::string_view text :
       {""sv, "\xFF"sv, "\xFF\xD8\x00"sv, "\xFF\xD9\xFF"sv, "\x89PNG"sv, "RIFF\1\2\3\4WAVE"sv,
        "RIFF"sv, "GIF88a"sv, "BMW is a maker of cars"sv, "BM"sv, "II*"sv, "P6"sv, "P8\n"sv,
        "Plain text"sv}) {
    EXPECT_EQ(Sniff(text), ImageFormat::kUnknown) << text;
  }
}

// CIPA DC-008 defines an orientation by the sides of the view where the stored row 0 and the
// stored column 0 are.
enum class Side { kTop, kBottom, kLeft, kRight };
struct Definition {
  Side row0;
  Side column0;
};
constexpr std::array<Definition, 8> kDefinitions = {{{Side::kTop, Side::kLeft},
                                                     {Side::kTop, Side::kRight},
                                                     {Side::kBottom, Side::kRight},
                                                     {Side::kBottom, Side::kLeft},
                                                     {Side::kLeft, Side::kTop},
                                                     {Side::kRight, Side::kTop},
                                                     {Side::kRight, Side::kBottom},
                                                     {Side::kLeft, Side::kBottom}}};

struct Point {
  int x = 0;
  int y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

void SetDistance(Point& view, Side side, int distance, ImageSize size) {
  switch (side) {
    case Side::kTop:
      view.y = distance;
      break;
    case Side::kBottom:
      view.y = size.height - 1 - distance;
      break;
    case Side::kLeft:
      view.x = distance;
      break;
    case Side::kRight:
      view.x = size.width - 1 - distance;
      break;
  }
}

class Orientations : public ::testing::TestWithParam<int> {};

TEST_P(Orientations, PermutePixelsAsDefined) {
  const ImageSize stored{5, 3};
  const auto orientation = static_cast<Orientation>(GetParam());
  const Definition& definition = kDefinitions[static_cast<size_t>(GetParam() - 1)];
  const bool turned = GetParam() >= 5;
  const ImageSize viewed = Viewed(stored, orientation);
  EXPECT_EQ(viewed, (turned ? ImageSize{3, 5} : stored));
  const Turn turn = TurnOf(orientation);
  for (int y = 0; y < stored.height; ++y) {
    for (int x = 0; x < stored.width; ++x) {
      Point view;
      SetDistance(view, definition.row0, y, viewed);
      SetDistance(view, definition.column0, x, viewed);
      EXPECT_EQ(Stored({view.x, view.y, 1, 1}, stored, orientation), (Rect{x, y, 1, 1}));
      Point steps = turn.transpose ? Point{y, x} : Point{x, y};
      if (turn.mirror_columns) steps.x = viewed.width - 1 - steps.x;
      if (turn.mirror_rows) steps.y = viewed.height - 1 - steps.y;
      EXPECT_EQ(steps, view);
    }
  }
}

TEST_P(Orientations, RectanglesCoverTheSamePixels) {
  const ImageSize stored{7, 4};
  const auto orientation = static_cast<Orientation>(GetParam());
  const ImageSize viewed = Viewed(stored, orientation);
  const Rect view{1, 2, viewed.width - 2, viewed.height - 3};
  const Rect whole = Stored(view, stored, orientation);
  int inside = 0;
  for (int y = 0; y < viewed.height; ++y) {
    for (int x = 0; x < viewed.width; ++x) {
      const Rect pixel = Stored({x, y, 1, 1}, stored, orientation);
      const bool in_view =
          x >= view.x && x < view.x + view.width && y >= view.y && y < view.y + view.height;
      const bool in_stored = pixel.x >= whole.x && pixel.x < whole.x + whole.width &&
                             pixel.y >= whole.y && pixel.y < whole.y + whole.height;
      EXPECT_EQ(in_view, in_stored);
      inside += in_view;
    }
  }
  EXPECT_EQ(inside, whole.width * whole.height);
}

TEST_P(Orientations, AreReadFromBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    const std::vector<uint8_t> jpeg =
        WithSegment(MakeJpeg({20, 10}), ExifSegment(GetParam(), big_endian));
    JpegDecoder decoder;
    const Result<ImageInfo> info = OpenPadded(decoder, Padded(jpeg));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(static_cast<int>(info->orientation), GetParam());
    EXPECT_EQ(info->size, (ImageSize{20, 10}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Orientations, ::testing::Range(1, 9));

std::vector<uint8_t> ExifPayload(int orientation) {
  const std::vector<uint8_t> segment = ExifSegment(orientation, true);
  return {segment.begin() + 4, segment.end()};
}

Orientation OfApp1(std::span<const uint8_t> segment) {
  App1Segments segments;
  segments.Take(segment);
  return segments.orientation();
}

TEST(Exif, IgnoresOrientationsOutOfRange) {
  EXPECT_EQ(OfApp1(ExifPayload(0)), Orientation::kNormal);
  EXPECT_EQ(OfApp1(ExifPayload(9)), Orientation::kNormal);
  EXPECT_EQ(OfApp1(ExifPayload(65535)), Orientation::kNormal);
  EXPECT_EQ(OfApp1(ExifPayload(8)), Orientation::kRotate270);
}

TEST(Exif, IgnoresDamage) {
  const std::vector<uint8_t> good = ExifPayload(6);
  for (size_t size = 0; size < 28; ++size) {  // up to the end of the one entry
    EXPECT_EQ(OfApp1(std::span(good).first(size)), Orientation::kNormal) << size;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (const uint8_t value : {0x00, 0x01, 0x7F, 0x80, 0xFF}) {
      std::vector<uint8_t> bytes = good;  // a heap block of its own: sanitizers see what lies after
      bytes[i] = value;
      (void)OfApp1(bytes);
    }
  }
  std::vector<uint8_t> far = good;
  for (size_t i = 10; i < 14; ++i) far[i] = 0xFF;  // the directory's offset
  EXPECT_EQ(OfApp1(far), Orientation::kNormal);
  std::vector<uint8_t> many = good;
  many[14] = many[15] = 0xFF;  // 65535 entries announced
  many[17] ^= 1;               // the one that is there has another tag
  EXPECT_EQ(OfApp1(many), Orientation::kNormal);
}

// Pillow does the same: it takes several segments for parts of one, with the directory of the
// first.
TEST(Exif, FirstSegmentWins) {
  const std::vector<uint8_t> inner = WithSegment(MakeJpeg({20, 10}), ExifSegment(8, true));
  const std::vector<uint8_t> jpeg = WithSegment(inner, ExifSegment(3, false));
  JpegDecoder decoder;
  EXPECT_EQ(OpenPadded(decoder, Padded(jpeg))->orientation, Orientation::kRotate180);
  EXPECT_EQ(OpenPadded(decoder, Padded(MakeJpeg({20, 10})))->orientation, Orientation::kNormal);
  std::vector<uint8_t> untagged = ExifSegment(6, true);
  untagged[4 + 17] ^= 1;  // another tag
  EXPECT_EQ(OpenPadded(decoder, Padded(WithSegment(inner, untagged)))->orientation,
            Orientation::kNormal);
  const std::vector<uint8_t> nonsense = WithSegment(inner, ExifSegment(9, true));
  EXPECT_EQ(OpenPadded(decoder, Padded(nonsense))->orientation, Orientation::kNormal);
}

// tests/python/transforms/test_exif.py compares with Pillow; here are both JPEG decoders.
TEST(Exif, MayBeCutIntoSegments) {
  const std::vector<uint8_t> exif = ExifPayload(6);
  constexpr size_t kPrefix = 6;
  const auto segment = [&](size_t begin, size_t end) {
    const size_t length = 2 + kPrefix + end - begin;
    std::vector<uint8_t> bytes = {0xFF, 0xE1, static_cast<uint8_t>(length >> 8),
                                  static_cast<uint8_t>(length & 255)};
    bytes.insert(bytes.end(), exif.begin(), exif.begin() + kPrefix);
    bytes.insert(bytes.end(), exif.begin() + static_cast<ptrdiff_t>(begin),
                 exif.begin() + static_cast<ptrdiff_t>(end));
    return bytes;
  };
  for (const auto backend : {JpegDecoder::Backend::kLibjpegOnly, JpegDecoder::Backend::kFastest}) {
    JpegDecoder decoder({}, nullptr, backend);
    for (size_t cut = 0; cut <= exif.size(); ++cut) {  // in the second of two prefixes, too
      std::vector<uint8_t> jpeg = WithSegment(MakeJpeg({20, 10}), segment(cut, exif.size()));
      jpeg = WithSegment(jpeg, segment(0, cut));
      EXPECT_EQ(OpenPadded(decoder, Padded(jpeg))->orientation, Orientation::kRotate90) << cut;
    }
    std::vector<uint8_t> jpeg = WithSegment(MakeJpeg({20, 10}), ExifSegment(6, true));
    for (size_t parts = 1; parts < App1Segments::kMaxParts; ++parts) {
      jpeg = WithSegment(jpeg, segment(0, 0));
    }
    EXPECT_EQ(OpenPadded(decoder, Padded(jpeg))->orientation, Orientation::kRotate90);
    jpeg = WithSegment(jpeg, segment(0, 0));
    EXPECT_EQ(OpenPadded(decoder, Padded(jpeg))->orientation, Orientation::kNormal);
  }
}

// The parts may be cut anywhere, also where the EXIF is damaged.
TEST(Exif, PartsAreOneStructure) {
  Random random(1);
  int found = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<uint8_t> segment = ExifSegment(6, random.OneIn(2));
    std::vector<uint8_t> exif(segment.begin() + 4, segment.end());
    const auto any = [&] {
      return static_cast<size_t>(random.Between(0, static_cast<int>(exif.size()) - 1));
    };
    if (random.OneIn(2)) exif[any()] = static_cast<uint8_t>(random.Between(0, 255));
    std::vector<size_t> cuts = {0, any(), any(), any(), any(), exif.size()};
    std::ranges::sort(cuts);
    std::vector<std::span<const uint8_t>> parts;
    for (size_t k = 1; k < cuts.size(); ++k) {
      parts.push_back(std::span(exif).subspan(cuts[k - 1], cuts[k] - cuts[k - 1]));
    }
    const std::optional<uint32_t> whole = ExifValue(exif);
    EXPECT_EQ(ExifValue(parts), whole) << i;
    found += whole == 6u ? 1 : 0;
  }
  EXPECT_GT(found, 1000);
}

std::vector<uint8_t> ToBytes(std::string_view text) { return {text.begin(), text.end()}; }

// An APP1 segment with an XMP packet.
std::vector<uint8_t> XmpSegment(std::string_view packet) {
  const std::string payload = std::string("http://ns.adobe.com/xap/1.0/\0"sv) + std::string(packet);
  const size_t length = 2 + payload.size();
  const std::string head = {'\xFF', '\xE1', static_cast<char>(length >> 8),
                            static_cast<char>(length & 255)};
  return ToBytes(head + payload);
}

// Pillow's rule is the first match of tiff:Orientation(="|>)([0-9]).
TEST(Xmp, OrientationIsAnAttributeOrAnElement) {
  const auto of = [](std::string_view text) { return OrientationOf(XmpValue(ToBytes(text))); };
  EXPECT_EQ(of("<rdf:Description tiff:Orientation=\"6\"/>"), Orientation::kRotate90);
  EXPECT_EQ(of("<tiff:Orientation>3</tiff:Orientation>"), Orientation::kRotate180);
  EXPECT_EQ(of("tiff:Orientation tiff:Orientation>x tiff:Orientation=\"8"),
            Orientation::kRotate270);
  EXPECT_EQ(of("tiff:Orientation=\"2\" tiff:Orientation=\"8\""), Orientation::kMirrorColumns);
  for (const std::string_view text :
       {""sv, "tiff:Orientation"sv, "tiff:Orientation="sv, "tiff:Orientation=\""sv,
        "tiff:Orientation='6'"sv, "tiff:Orientation = \"6\""sv, "tiff:Orientation>"sv,
        "tiff:Orientation=\"0\" tiff:Orientation=\"6\""sv, "tiff:Orientation=\"9\""sv,
        "exif:Orientation=\"6\""sv}) {
    EXPECT_EQ(of(text), Orientation::kNormal) << text;
  }
}

TEST(Xmp, CountsWhenExifHasNoOrientation) {
  const std::vector<uint8_t> six = XmpSegment("<x tiff:Orientation=\"6\"/>");
  std::vector<uint8_t> other = ExifSegment(3, true);
  other[4 + 17] ^= 1;  // another tag
  const auto orientation = [](std::vector<uint8_t> jpeg) {
    Orientation found = Orientation::kNormal;
    for (const auto backend :
         {JpegDecoder::Backend::kLibjpegOnly, JpegDecoder::Backend::kFastest}) {
      JpegDecoder decoder({}, nullptr, backend);
      const Orientation here = OpenPadded(decoder, Padded(jpeg))->orientation;
      EXPECT_TRUE(backend == JpegDecoder::Backend::kLibjpegOnly || here == found);
      found = here;
    }
    return found;
  };
  const std::vector<uint8_t> plain = MakeJpeg({20, 10});
  const std::vector<uint8_t> by_xmp = WithSegment(plain, six);
  EXPECT_EQ(orientation(by_xmp), Orientation::kRotate90);
  EXPECT_EQ(orientation(WithSegment(by_xmp, other)), Orientation::kRotate90);
  EXPECT_EQ(orientation(WithSegment(WithSegment(plain, other), six)), Orientation::kRotate90);
  for (const int exif : {1, 3, 9, 0}) {  // also where it has no meaning
    const Orientation wanted = exif == 3 ? Orientation::kRotate180 : Orientation::kNormal;
    EXPECT_EQ(orientation(WithSegment(by_xmp, ExifSegment(exif, true))), wanted) << exif;
    EXPECT_EQ(orientation(WithSegment(WithSegment(plain, ExifSegment(exif, true)), six)), wanted);
  }
  // Only the first directory says whether XMP counts.
  EXPECT_EQ(orientation(WithSegment(WithSegment(by_xmp, ExifSegment(3, true)), other)),
            Orientation::kRotate90);
  // The last packet counts; one of another name does not.
  EXPECT_EQ(orientation(WithSegment(by_xmp, XmpSegment("tiff:Orientation>2"))),
            Orientation::kRotate90);
  EXPECT_EQ(orientation(WithSegment(WithSegment(plain, XmpSegment("")), six)),
            Orientation::kNormal);
  std::vector<uint8_t> extended = six;
  extended[12] = 'X';
  EXPECT_EQ(orientation(WithSegment(plain, extended)), Orientation::kNormal);
}

TEST(Info, ReportsChromaAndKind) {
  JpegDecoder decoder;
  const auto info = [&](const JpegOptions& options) {
    return OpenPadded(decoder, Padded(MakeJpeg(options))).value();
  };
  const ImageInfo halves = info({64, 48, JpegColor::kYCbCr, Luma(2, 2)});
  EXPECT_EQ(halves.chroma_columns, 2);
  EXPECT_EQ(halves.chroma_rows, 2);
  EXPECT_EQ(halves.components, 3);
  EXPECT_FALSE(halves.progressive);
  const ImageInfo gray = info({64, 48, JpegColor::kGray, {}, JpegScans::kProgressive});
  EXPECT_EQ(gray.components, 1);
  EXPECT_EQ(gray.chroma_columns, 1);
  EXPECT_TRUE(gray.progressive);
  EXPECT_EQ(info({64, 48, JpegColor::kYcck}).components, 4);
}

TEST(Cmyk, RoundsAsPillow) {
  // Stored C, M, Y, K and Pillow's RGB of it.
  constexpr std::array<std::array<uint8_t, 7>, 6> kKnown = {{{0, 0, 0, 0, 0, 0, 0},
                                                             {255, 255, 255, 255, 255, 255, 255},
                                                             {0, 128, 255, 200, 0, 100, 200},
                                                             {120, 155, 52, 202, 95, 123, 41},
                                                             {245, 79, 46, 34, 33, 11, 6},
                                                             {10, 205, 148, 30, 1, 24, 17}}};
  for (const auto& k : kKnown) {
    std::array<uint8_t, 3> rgb{};
    ConvertInvertedCmyk(k.data(), 1, rgb.data());
    EXPECT_EQ(rgb, (std::array<uint8_t, 3>{k[4], k[5], k[6]}));
  }
}

TEST(Cmyk, IsWithinHalfAStepOfItsDefinition) {
  for (int c = 0; c < 256; ++c) {
    for (int k = 0; k < 256; ++k) {
      const std::array<uint8_t, 4> cmyk = {static_cast<uint8_t>(c), 0, 255,
                                           static_cast<uint8_t>(k)};
      std::array<uint8_t, 3> rgb{};
      ConvertInvertedCmyk(cmyk.data(), 1, rgb.data());
      EXPECT_NEAR(rgb[0], c * k / 255.0, 0.5 + 1e-9);
      EXPECT_EQ(rgb[1], 0);
      EXPECT_EQ(rgb[2], k);
    }
  }
}

TEST(Columns, AreWidenedOnlyWhereNeeded) {
  // image of 100 columns, MCUs of 16
  EXPECT_EQ(ColumnsToDecode({0, 100}, 100, 16, true), (Columns{0, 100}));
  EXPECT_EQ(ColumnsToDecode({20, 30}, 100, 16, false), (Columns{16, 34}));
  EXPECT_EQ(ColumnsToDecode({20, 30}, 100, 16, true), (Columns{16, 35}));
  EXPECT_EQ(ColumnsToDecode({16, 30}, 100, 16, false), (Columns{16, 30}));
  EXPECT_EQ(ColumnsToDecode({16, 30}, 100, 16, true), (Columns{0, 47}));
  EXPECT_EQ(ColumnsToDecode({17, 1}, 100, 16, true), (Columns{16, 16}));
  EXPECT_EQ(ColumnsToDecode({98, 2}, 100, 16, true), (Columns{80, 20}));
  EXPECT_EQ(ColumnsToDecode({5, 1}, 9, 16, true), (Columns{0, 9}));
}

}  // namespace
}  // namespace stoker::testing
