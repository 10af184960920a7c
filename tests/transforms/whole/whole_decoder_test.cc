// The formats that are decoded whole: any region is that of the whole image, damaged files are
// refused or decoded but break nothing, and limits hold before memory is taken. (Python's tests
// compare pixels with Pillow's.)
#include "transforms/whole/decoder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/transforms/whole.h"
#include "transforms/whole/format.h"

namespace stoker {
namespace {

using testing::ErrorOf;
using testing::Padded;
using testing::RandomRegion;
using testing::Unpadded;

// Decodes as ImageDecoder does.
struct Sniffed {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) {
    const ImageFormat format = SniffFormat(bytes);
    if (!WholeDecoder::Decodes(format)) return Error{Code::kDataLoss, "another format", {}, 0};
    return decoder.Open(bytes, format);
  }
  Status Decode(const Rect& region, RowSink& sink) { return decoder.Decode(region, sink); }

  WholeDecoder decoder;
};

struct Sample {
  std::string name;
  std::vector<uint8_t> bytes;
};

std::vector<uint8_t> Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int64_t PeakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Made by tests/fuzz/make_whole.py; those of formats that this build decodes.
const std::vector<Sample>& Samples() {
  static const std::vector<Sample> samples = [] {
    std::vector<Sample> read;
    for (const auto& entry : std::filesystem::directory_iterator(STOKER_WHOLE_IMAGES)) {
      std::vector<uint8_t> bytes = Read(entry.path());
      if (!WholeDecoder::Decodes(SniffFormat(bytes))) continue;
      if (Sniffed().Open(bytes).ok()) read.push_back({entry.path().filename(), std::move(bytes)});
    }
    return read;
  }();
  return samples;
}

WholeImage WholeOf(const std::vector<uint8_t>& padded) {
  Sniffed decoder;
  const ImageInfo info = decoder.Open(Unpadded(padded)).value();
  testing::KeepRows rows;
  decoder.Decode({0, 0, info.size.width, info.size.height}, rows).value();
  WholeImage whole{.size = info.size, .layout = rows.region().layout, .pixels = {}};
  for (int y = 0; y < info.size.height; ++y) {
    const uint8_t* const row = rows.Row(y);
    whole.pixels.insert(whole.pixels.end(), row,
                        row + ptrdiff_t{info.size.width} * BytesPerPixel(whole.layout));
  }
  return whole;
}

TEST(WholeDecoder, RegionsEqualThoseOfTheWholeImage) {
  Sniffed decoder;  // of all: state must not leak
  RandomStream random({3, 0, 1}, 0);
  ASSERT_GE(Samples().size(), 14u);  // those that need no library
  for (const Sample& sample : Samples()) {
    const std::vector<uint8_t> padded = Padded(sample.bytes);
    const WholeImage whole = WholeOf(padded);
    for (int round = 0; round < testing::Effort(100); ++round) {
      const Rect region = RandomRegion(whole.size, random);
      ASSERT_EQ(testing::Compare(decoder, padded, region, whole), "") << sample.name;
    }
  }
}

TEST(WholeDecoder, UnchangedPixelsHaveAlphaAndAllBits) {
  for (const Sample& sample : Samples()) {
    const std::vector<uint8_t> padded = Padded(sample.bytes);
    const WholeImage whole = WholeOf(padded);
    WholeDecoder decoder;
    const ImageInfo info = decoder.Open(Unpadded(padded), SniffFormat(Unpadded(padded))).value();
    const Rect region{3, 2, 7, 11};
    const auto colours = static_cast<size_t>(info.components);
    const size_t channels = colours + (info.alpha ? 1 : 0) + static_cast<size_t>(info.extra);
    const size_t wide = info.bits == 16 ? 2 : 1;
    std::vector<uint8_t> all(channels * wide * 7 * 11);
    ASSERT_TRUE(decoder.DecodeUnchanged(region, all.data()).ok()) << sample.name;
    for (size_t i = 0; i < size_t{7} * 11; ++i) {
      const size_t at = (2 + i / 7) * static_cast<size_t>(whole.size.width) + 3 + i % 7;
      for (size_t c = 0; c < colours; ++c) {
        ASSERT_EQ(all[(i * channels + c) * wide + wide - 1], whole.pixels[at * colours + c])
            << sample.name;
      }
    }
  }
}

TEST(WholeDecoder, RefusesHalfAFileAndSurvivesEveryCut) {
  Sniffed decoder;
  for (const Sample& sample : Samples()) {
    for (size_t size = 0; size < sample.bytes.size(); size += 10) {
      const std::vector<uint8_t> cut(sample.bytes.begin(),
                                     sample.bytes.begin() + static_cast<ptrdiff_t>(size));
      const Error error = ErrorOf(decoder, Padded(cut));
      if (error.cause.empty()) {
        ASSERT_GE(size, sample.bytes.size() / 2) << sample.name;
        continue;
      }
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= size) << sample.name << error.cause;
      ASSERT_TRUE(error.code == Code::kDataLoss || error.code == Code::kUnimplemented)
          << sample.name << " " << size << " " << error.ToString();
    }
  }
}

TEST(WholeDecoder, SurvivesChangedBytesAndReturnsMemory) {
  MemoryBudget budget(8 << 20);
  Sniffed decoder{WholeDecoder({.max_pixels = 1 << 16}, &budget)};
  RandomStream random({4, 0, 1}, 0);
  for (const Sample& sample : Samples()) {
    for (int round = 0; round < testing::Effort(3000); ++round) {
      std::vector<uint8_t> changed = Padded(sample.bytes);
      for (uint64_t i = 0; i <= random.Below(3); ++i) {
        changed[random.Below(sample.bytes.size())] = static_cast<uint8_t>(random.Below(256));
      }
      const Error error = ErrorOf(decoder, changed);
      ASSERT_TRUE(error.cause.empty() || error.offset.has_value() ||
                  error.code == Code::kResourceExhausted)
          << sample.name << error.cause;
      ASSERT_LE(budget.used(), 2u << 20);
    }
  }
}

void PutNumber(std::vector<uint8_t>& bytes, size_t at, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

// Returns the headers of a BMP of side × side pixels, with `further` zero bytes of masks or
// palette; its pixels begin after them.
std::vector<uint8_t> BmpHeader(uint64_t side, uint64_t bits, uint64_t compression, size_t further) {
  std::vector<uint8_t> bmp(14 + 40 + further);
  bmp[0] = 'B', bmp[1] = 'M';
  PutNumber(bmp, 10, bmp.size(), 4);
  PutNumber(bmp, 14, 40, 4);
  PutNumber(bmp, 18, side, 4);
  PutNumber(bmp, 22, side, 4);
  PutNumber(bmp, 28, bits, 2);
  PutNumber(bmp, 30, compression, 4);
  return bmp;
}

void PutBigEndian(std::vector<uint8_t>& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

size_t Find(const std::vector<uint8_t>& bytes, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).find(text);
}

// Sets the sides in the header to 60,000.
std::vector<uint8_t> BombOf(const Sample& sample) {
  std::vector<uint8_t> bomb = sample.bytes;
  const ImageFormat format = SniffFormat(bomb);
  if (format == ImageFormat::kBmp && bomb[14] != 12) {
    PutNumber(bomb, 18, 60'000, 4);
    PutNumber(bomb, 22, 60'000, 4);
  } else if (format == ImageFormat::kGif) {
    PutNumber(bomb, 6, 60'000, 2);
    PutNumber(bomb, 8, 60'000, 2);
  } else if (format == ImageFormat::kPnm) {
    const std::string_view header = "P3 60000 60000 255 ";
    bomb.insert(bomb.begin(), header.begin(), header.end());
  } else if (format == ImageFormat::kTiff && bomb[0] == 'I') {
    const size_t directory = bomb[4] + 256U * bomb[5] + 65536U * bomb[6];
    for (size_t i = 0; i < bomb[directory]; ++i) {
      const size_t entry = directory + 2 + 12 * i;
      if (bomb[entry + 1] == 1 && bomb[entry] <= 1) {  // ImageWidth and ImageLength, as SHORT
        PutNumber(bomb, entry + 2, 3, 2);
        PutNumber(bomb, entry + 8, 60'000, 4);
      }
    }
  } else if (format == ImageFormat::kJpeg2000) {
    const size_t size = Find(bomb, "\xFF\x4F\xFF\x51") + 8;
    for (const size_t field : {0, 1, 4, 5}) PutBigEndian(bomb, size + 4 * field, 60'000);
  } else if (format == ImageFormat::kAvif || format == ImageFormat::kHeic) {
    const size_t size = Find(bomb, "ispe") + 8;
    for (const size_t field : {0, 1}) PutBigEndian(bomb, size + 4 * field, 60'000);
  } else {
    return {};
  }
  return bomb;
}

TEST(WholeDecoder, RefusesLargeHeadersBeforeMemoryIsTaken) {
  int bombs = 0;
  for (const Sample& sample : Samples()) {
    const std::vector<uint8_t> bomb = BombOf(sample);
    if (bomb.empty()) continue;
    MemoryBudget budget(uint64_t{1} << 40);
    Sniffed decoder{WholeDecoder({}, &budget)};
    const Error error = ErrorOf(decoder, Padded(bomb));
    ++bombs;
    EXPECT_TRUE(error.detail == Error::Detail::kOverLimits || error.code == Code::kDataLoss ||
                error.code == Code::kUnimplemented)
        << sample.name << " " << error.ToString();
    EXPECT_EQ(budget.peak(), 0u) << sample.name;
  }
  EXPECT_GE(bombs, 10);
}

// The header says 16 x 16 pixels, the stream 4,000 x 4,000.
TEST(WholeDecoder, RefusesStreamsThatAreLargerThanTheHeaderBeforeMemoryIsTaken) {
  const std::filesystem::path files(STOKER_WHOLE_FILES);
  for (const char* name : {"larger_stream.avif", "larger_stream.heic"}) {
    const std::vector<uint8_t> bytes = Padded(Read(files / name));
    Sniffed decoder;
    (void)decoder.Open(Unpadded(bytes));  // loads the library
    const int64_t before = PeakKilobytes();
    const Error error = ErrorOf(decoder, bytes);
    EXPECT_TRUE(error.code == Code::kDataLoss || error.code == Code::kUnimplemented) << name;
    EXPECT_LT(PeakKilobytes() - before, 16 << 10) << name << " " << error.ToString();
  }
}

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A codestream of gray tiles without data.
struct J2k {
  uint64_t side, tile;
  uint64_t layers = 1, levels = 0;
  uint64_t style = 0;
  uint64_t block = 4;             // base-2 logarithm of its side, less 2
  std::string precincts = {};     // of each resolution
  std::string more_markers = {};  // segments of the main header

  static std::string Segment(uint64_t marker, const std::string& content) {
    return BigEndian(marker, 2) + BigEndian(content.size() + 2, 2) + content;
  }

  std::vector<uint8_t> Bytes() const {
    const std::string zero = BigEndian(0, 8), sides = BigEndian(side << 32 | side, 8);
    std::string bytes = "\xFF\x4F" + Segment(0xFF51, BigEndian(0, 2) + sides + zero +
                                                         BigEndian(tile << 32 | tile, 8) + zero +
                                                         BigEndian(1, 2) + "\7\1\1");
    const std::string blocks = BigEndian(block << 8 | block, 2) + BigEndian(style, 1) + "\1";
    bytes += Segment(0xFF52, BigEndian(precincts.empty() ? 0 : 1, 1) + BigEndian(0, 1) +
                                 BigEndian(layers, 2) + BigEndian(0, 1) + BigEndian(levels, 1) +
                                 blocks + precincts);
    bytes +=
        Segment(0xFF5C, std::string(1, '\0') + std::string(3 * levels + 1, 'H')) + more_markers;
    const uint64_t row = (side + tile - 1) / tile;
    for (uint64_t i = 0; i < row * row; ++i) {
      bytes += Segment(0xFF90, BigEndian(i, 2) + BigEndian(i + 1 < row * row ? 14 : 0, 4) +
                                   BigEndian(1, 2)) +
               "\xFF\x93";
    }
    bytes += "\xFF\xD9";
    return {bytes.begin(), bytes.end()};
  }
  std::string Cause() const {
    const std::vector<uint8_t> bytes = Bytes();
    const Result<ImageInfo> info = WholeDecoder().Open(bytes, ImageFormat::kJpeg2000);
    return info.ok() ? "" : info.error().cause;
  }
};

bool HasOpenjpeg() { return std::ranges::count(Samples(), "RGB.jp2", &Sample::name) == 1; }

TEST(WholeDecoder, RefusesAJpeg2000OfFarMorePacketsThanItsData) {
  if (!HasOpenjpeg()) GTEST_SKIP() << "OpenJPEG is not there";
  const std::string refused = "a JPEG 2000 with far more packets than its data have is not decoded";
  EXPECT_EQ((J2k{.side = 64, .tile = 4}.Cause()), "");
  // 32 layers of 33 resolutions: of 16 tiles, and of 64.
  EXPECT_EQ((J2k{.side = 16, .tile = 4, .layers = 32, .levels = 32}.Cause()), "");
  EXPECT_EQ((J2k{.side = 32, .tile = 4, .layers = 32, .levels = 32}.Cause()), refused);
  EXPECT_EQ((J2k{.side = 8, .tile = 8, .layers = 33}.Cause()),
            "a JPEG 2000 with more than 32 layers is not decoded");
  EXPECT_EQ((J2k{.side = 8, .tile = 8, .style = 4}.Cause()),
            "a JPEG 2000 with code-blocks in many parts is not decoded");
  // Positions of precincts that are narrow in one resolution and low in another.
  EXPECT_EQ((J2k{.side = 5000, .tile = 5000, .levels = 1, .precincts = "\xFF\xFF"}.Cause()), "");
  EXPECT_EQ((J2k{.side = 5000, .tile = 5000, .levels = 1, .precincts = "\xF0\x1F"}.Cause()),
            refused);
  EXPECT_EQ((J2k{.side = 5000, .tile = 5000, .block = 0}.Cause()),
            "a JPEG 2000 with far smaller precincts or code-blocks than usual is not decoded");
}

// OpenJPEG takes the length of a segment that it does not know for nothing.
TEST(WholeDecoder, RefusesAJpeg2000WithUnusualSegments) {
  if (!HasOpenjpeg()) GTEST_SKIP() << "OpenJPEG is not there";
  J2k j2k{.side = 8, .tile = 8, .more_markers = J2k::Segment(0xFF64, "\1 a comment")};
  EXPECT_EQ(j2k.Cause(), "");
  for (const uint64_t marker : {0xFF7E, 0xFF5E, 0xFF5F, 0xFF60, 0xFF61}) {
    j2k.more_markers = J2k::Segment(marker, "segment");
    EXPECT_EQ(j2k.Cause(), "a JPEG 2000 with an unusual marker segment is not decoded");
  }
}

// OpenJPEG reads a palette in other boxes, too, and makes 255 channels.
TEST(WholeDecoder, RefusesAJpeg2000WithUnusualBoxes) {
  if (!HasOpenjpeg()) GTEST_SKIP() << "OpenJPEG is not there";
  const auto& bytes = std::ranges::find(Samples(), "RGB.jp2", &Sample::name)->bytes;
  const size_t header = Find(bytes, "jp2h") - 4, stream = Find(bytes, "jp2c") - 4;
  // With a box at the end of the header, or after it.
  const auto with = [&](const std::string& box, bool inside) {
    std::vector<uint8_t> changed = bytes;
    changed.insert(changed.begin() + static_cast<ptrdiff_t>(stream), box.begin(), box.end());
    const size_t length = stream - header + (inside ? box.size() : 0);
    PutBigEndian(changed, header, static_cast<uint32_t>(length));
    const Result<ImageInfo> info = WholeDecoder().Open(changed, ImageFormat::kJpeg2000);
    return info.ok() ? "" : info.error().cause;
  };
  const auto box = [](const std::string& kind, const std::string& content) {
    return BigEndian(content.size() + 8, 4) + kind + content;
  };
  for (const bool inside : {false, true}) {
    EXPECT_EQ(with("", inside), "");
    EXPECT_EQ(with(box("xml ", "<a/>"), inside), "");
    EXPECT_EQ(with(box("pclr", "palette"), inside), "a JPEG 2000 with a palette is not decoded");
    EXPECT_EQ(with(box("cmap", "map"), inside), "a JPEG 2000 with an unusual box is not decoded");
    EXPECT_EQ(with(box("colr", BigEndian(1, 1) + BigEndian(0, 2) + BigEndian(18, 4)), inside),
              "a JPEG 2000 with colours other than sRGB, gray or of a profile is not decoded");
    EXPECT_EQ(with(box("colr", "1"), inside), "damaged JPEG 2000: a colr box");
    EXPECT_EQ(with(BigEndian(1, 4) + "xml " + BigEndian(16, 8), inside),
              "damaged JPEG 2000: its boxes");
  }
  EXPECT_EQ(with(BigEndian(7, 4) + "xml ", true), "damaged JPEG 2000: its boxes");
  EXPECT_EQ(with(box("jp2c", ""), true), "damaged JPEG 2000: its boxes");
}

// Entries that name the same bytes, which libtiff would copy for each.
TEST(WholeDecoder, RefusesATiffWhoseDirectoryIsLargerThanTheFile) {
  constexpr size_t kEntries = 1000, kValue = 1 << 16, kDirectory = 8;
  const size_t value = kDirectory + 2 + 12 * kEntries + 4;
  std::vector<uint8_t> tiff(value + kValue);
  PutNumber(tiff, 0, 0x2A4949, 4);
  PutNumber(tiff, 4, kDirectory, 4);
  PutNumber(tiff, kDirectory, kEntries, 2);
  for (size_t i = 0; i < kEntries; ++i) {
    const size_t entry = kDirectory + 2 + 12 * i;
    PutNumber(tiff, entry, 40'000 + i, 2);
    PutNumber(tiff, entry + 2, 1, 2);
    PutNumber(tiff, entry + 4, kValue, 4);
    PutNumber(tiff, entry + 8, value, 4);
  }
  WholeDecoder decoder;
  if (!WholeDecoder::Decodes(ImageFormat::kTiff)) GTEST_SKIP() << "built without libtiff";
  const Error error = decoder.Open(tiff, ImageFormat::kTiff).error();
  if (error.code == Code::kUnimplemented) GTEST_SKIP() << error.ToString();
  EXPECT_EQ(error.cause, "damaged TIFF: a directory of more bytes than the file has");
}

// 4,096 tiles of 3 MB, for 65,535 x 17 pixels.
TEST(WholeDecoder, RefusesATiffOfTilesFarLargerThanTheImage) {
  const auto tiles = std::ranges::find(Samples(), "tiles.tif", &Sample::name);
  if (tiles == Samples().end()) GTEST_SKIP() << "built without libtiff, or it is not there";
  std::vector<uint8_t> tiff = tiles->bytes;
  const size_t directory = tiff[4] + 256U * tiff[5];
  for (size_t i = 0; i < tiff[directory]; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    const int tag = tiff[entry] + 256 * tiff[entry + 1];
    if (tag == 256) PutNumber(tiff, entry + 8, 65'535, 2);  // ImageWidth
    if (tag == 323) PutNumber(tiff, entry + 8, 65'520, 2);  // TileLength
  }
  WholeDecoder decoder;
  EXPECT_EQ(decoder.Open(tiff, ImageFormat::kTiff).error().cause,
            "damaged TIFF: strips or tiles that are far larger than the image");
}

TEST(WholeDecoder, MovesOfABmpCannotLeaveTheRow) {
  std::vector<uint8_t> bmp = BmpHeader(2, 8, 1, 1024);
  constexpr size_t kMoves = (size_t{1} << 31) / 255 + 2;  // an int would overflow
  const size_t moves = bmp.size();
  bmp.resize(moves + 4 * kMoves);
  for (uint8_t* move = &bmp[moves]; move != bmp.data() + bmp.size(); move += 4) {
    move[1] = 2, move[2] = 255;
  }
  bmp.insert(bmp.end(), {1, 7, 0, 1});
  WholeDecoder decoder;
  testing::KeepRows rows;
  ASSERT_TRUE(decoder.Open(bmp, ImageFormat::kBmp).ok());
  EXPECT_TRUE(decoder.Decode({0, 0, 2, 2}, rows).ok());
}

// libtiff accepts fax data that end early, and does not write the other rows.
TEST(WholeDecoder, RowsThatAFaxLacksAreZero) {
  const auto fax = std::ranges::find(Samples(), "group4.tif", &Sample::name);
  if (fax == Samples().end()) GTEST_SKIP() << "built without libtiff, or it is not there";
  std::vector<uint8_t> bytes = fax->bytes;
  const size_t strip = 8;
  PutNumber(bytes, strip, 0x80000880, 4);  // a white row, end of data
  const WholeImage whole = WholeOf(Padded(bytes));
  const auto width = static_cast<size_t>(whole.size.width);
  for (size_t i = width; i < whole.pixels.size(); ++i) ASSERT_EQ(whole.pixels[i], 0) << i;

  bytes = fax->bytes;
  PutNumber(bytes, strip + 40, 0x011000, 4);  // not a code
  Sniffed decoder;
  EXPECT_EQ(ErrorOf(decoder, Padded(bytes)).code, Code::kDataLoss);
}

struct Entry {
  uint16_t tag;
  std::vector<uint32_t> values;
};

// A TIFF of `entries` (LONG, tags ascending) after 8 + data.size() bytes.
std::vector<uint8_t> TiffOf(const std::vector<uint8_t>& data, const std::vector<Entry>& entries) {
  std::vector<uint8_t> tiff(8);
  tiff.insert(tiff.end(), data.begin(), data.end());
  tiff.resize((tiff.size() + 1) / 2 * 2);
  const size_t directory = tiff.size();
  PutNumber(tiff, 0, 0x2A4949, 4);
  PutNumber(tiff, 4, directory, 4);
  tiff.resize(directory + 2 + 12 * entries.size() + 4);
  PutNumber(tiff, directory, entries.size(), 2);
  size_t entry = directory + 2;
  for (const Entry& e : entries) {
    PutNumber(tiff, entry, e.tag, 2);
    PutNumber(tiff, entry + 2, 4, 2);
    PutNumber(tiff, entry + 4, e.values.size(), 4);
    size_t at = entry + 8;
    if (e.values.size() > 1) {
      PutNumber(tiff, at, tiff.size(), 4);
      at = tiff.size();
      tiff.resize(at + 4 * e.values.size());
    }
    for (const uint32_t value : e.values) {
      PutNumber(tiff, at, value, 4);
      at += 4;
    }
    entry += 12;
  }
  return tiff;
}

bool HasLibtiff() {
  return std::ranges::find(Samples(), "tiles.tif", &Sample::name) != Samples().end();
}

// Strips of PackBits that name the same 10,000 bytes, which do nothing, and a row.
TEST(WholeDecoder, RefusesATiffWhoseStripsShareManyBytes) {
  if (!HasLibtiff()) GTEST_SKIP() << "built without libtiff, or it is not there";
  const auto shared = [](uint32_t bytes) {
    std::vector<uint8_t> data(bytes, 0x80);
    data[bytes - 2] = static_cast<uint8_t>(-7);  // 8 times
    data[bytes - 1] = 9;
    const std::vector<uint32_t> offsets(64, 8), counts(64, bytes);
    return TiffOf(data, {{256, {8}},
                         {257, {64}},
                         {258, {8}},
                         {259, {32773}},
                         {262, {1}},
                         {273, offsets},
                         {277, {1}},
                         {278, {1}},
                         {279, counts}});
  };
  Sniffed decoder;
  EXPECT_EQ(ErrorOf(decoder, Padded(shared(10'000))).cause,
            "damaged TIFF: strips or tiles of more bytes than the file has");
  const WholeImage whole = WholeOf(Padded(shared(20)));  // as some writers do
  EXPECT_TRUE(std::ranges::all_of(whole.pixels, [](uint8_t value) { return value == 9; }));
}

TEST(WholeDecoder, RefusesATiffOfTinyTiles) {
  if (!HasLibtiff()) GTEST_SKIP() << "built without libtiff, or it is not there";
  Sniffed decoder;
  const std::vector<uint8_t> tiff = TiffOf(std::vector<uint8_t>(16), {{256, {4}},
                                                                      {257, {4}},
                                                                      {258, {8}},
                                                                      {259, {1}},
                                                                      {262, {1}},
                                                                      {277, {1}},
                                                                      {322, {4}},
                                                                      {323, {4}},
                                                                      {324, {8}},
                                                                      {325, {16}}});
  EXPECT_EQ(ErrorOf(decoder, Padded(tiff)).cause, "a TIFF with tiles of 4 x 4 is not decoded");
}

TEST(WholeDecoder, ATiffWithoutPhotometricInterpretationIsMinIsWhite) {
  if (!HasLibtiff()) GTEST_SKIP() << "built without libtiff, or it is not there";
  const auto tiff = [](uint32_t samples) {
    const std::vector<uint8_t> data = {0, 1, 255, 7, 8, 9};
    const uint32_t width = 6 / samples;
    return TiffOf(data, {{256, {width}},
                         {257, {1}},
                         {258, {8}},
                         {259, {1}},
                         {273, {8}},
                         {277, {samples}},
                         {278, {1}},
                         {279, {6}}});
  };
  EXPECT_EQ(WholeOf(Padded(tiff(1))).pixels, (std::vector<uint8_t>{255, 254, 0, 248, 247, 246}));
  Sniffed decoder;
  EXPECT_EQ(ErrorOf(decoder, Padded(tiff(3))).cause,
            "a TIFF with 3 samples and no photometric interpretation is not decoded");
}

// A frame of one pixel, and 200 KB of codes that clear the table.
TEST(WholeDecoder, RefusesAGifOfClearCodes) {
  if (!WholeDecoder::Decodes(ImageFormat::kGif)) GTEST_SKIP() << "built without giflib";
  std::vector<uint8_t> gif = {'G', 'I', 'F', '8', '9', 'a', 1, 0, 1, 0, 0, 0,
                              0,   ',', 0,   0,   0,   0,   1, 0, 1, 0, 0, 8};
  constexpr size_t kBlocks = 800, kBlock = 255;
  for (size_t i = 0; i < kBlocks * kBlock; ++i) {
    if (i % kBlock == 0) gif.push_back(kBlock);
    gif.push_back(i % 9 == 0 ? 0 : static_cast<uint8_t>(1U << (i % 9 - 1)));  // 9 bits: 0x100
  }
  Sniffed decoder;
  const Error error = ErrorOf(decoder, Padded(gif));
  if (error.code == Code::kUnimplemented) GTEST_SKIP() << error.ToString();
  EXPECT_EQ(error.cause, "damaged GIF: far more data than its pixels need");
}

// As a caller in Python can, of a bytearray.
TEST(WholeDecoder, SurvivesBytesThatChangeAfterOpen) {
  int refused = 0;
  for (const Sample& first : Samples()) {
    for (const Sample& second : Samples()) {
      const ImageFormat format = SniffFormat(first.bytes);
      if (SniffFormat(second.bytes) != format) continue;
      std::vector<uint8_t> bytes = first.bytes;
      bytes.resize(std::max(bytes.size(), second.bytes.size()));
      WholeDecoder decoder;
      const Result<ImageInfo> info = decoder.Open(bytes, format);
      ASSERT_TRUE(info.ok()) << first.name;
      std::ranges::copy(second.bytes, bytes.begin());
      testing::KeepRows rows;
      const ImageSize size = info.value().size;
      const Status status = decoder.Decode({0, 0, size.width, size.height}, rows);
      if (status.ok()) continue;
      ASSERT_EQ(status.error().code, Code::kDataLoss) << first.name << " " << second.name;
      if (status.error().cause.ends_with("changed after its header was read")) ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(WholeDecoder, RefusesAPnmOfTwoBytes) {
  for (const std::vector<uint8_t>& bytes : {std::vector<uint8_t>{}, {'P'}, {'P', '5'}}) {
    EXPECT_EQ(WholeDecoder().Open(bytes, ImageFormat::kPnm).error().cause, "truncated PNM");
  }
}

TEST(WholeDecoder, BitFieldsOfABmp) {
  const auto bmp = [](uint64_t bits, const std::vector<uint32_t>& masks) {
    std::vector<uint8_t> file = BmpHeader(1, bits, 3, 16);
    for (size_t i = 0; i < masks.size(); ++i) PutNumber(file, 54 + 4 * i, masks[i], 4);
    file.insert(file.end(), {1, 2, 3, 4});
    return file;
  };
  std::vector<uint8_t> pixel(4);
  const std::vector<uint8_t> none = bmp(32, {0, 0, 0});  // BGRA, as Pillow reads it
  WholeDecoder decoder;
  ASSERT_TRUE(decoder.Open(none, ImageFormat::kBmp).ok());
  ASSERT_TRUE(decoder.DecodeUnchanged({0, 0, 1, 1}, pixel.data()).ok());
  EXPECT_EQ(pixel, (std::vector<uint8_t>{3, 2, 1, 4}));
  for (const auto& wrong : {bmp(16, {0, 0, 0}), bmp(32, {0xFF, 0, 0xFF00}),
                            bmp(32, {0xFF, 0xFFFF, 0xFF0000}), bmp(16, {31, 1024, 31})}) {
    EXPECT_EQ(decoder.Open(wrong, ImageFormat::kBmp).error().cause,
              "a BMP with bit fields that are empty or overlap is not decoded");
  }
}

// At offset 0 the directory is a bitmap of 40 × 1 pixels, whose mask begins there, too; at 14 it is
// taken for a BMP's.
TEST(WholeDecoder, RefusesAnIconInsideOfItsDirectory) {
  for (const uint32_t at : {0u, 14u, 6u + 16 * 40 - 1}) {
    std::vector<uint8_t> icon(70'000);
    PutNumber(icon, 2, 1, 2);
    PutNumber(icon, 4, 40, 2);
    icon[6 + 2] = 2;            // colours
    PutNumber(icon, 14, 8, 4);  // bytes
    PutNumber(icon, 18, at, 4);
    if (at != 0) {
      const std::vector<uint8_t> bmp = BmpHeader(33, 24, 0, 4096);
      std::copy(bmp.begin() + 14, bmp.end(), icon.begin() + at);
      PutNumber(icon, 18, at, 4);
    }
    WholeDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(icon, ImageFormat::kIco);
    ASSERT_FALSE(info.ok()) << at;
    EXPECT_NE(info.error().cause.find("inside of its directory"), std::string::npos)
        << info.error().ToString();
  }
}

// Each byte of the rows is written, with alpha of the mask or of the pixels.
TEST(WholeDecoder, WritesEachByteOfAnIcon) {
  for (const uint64_t bits : {24u, 32u}) {
    std::vector<uint8_t> icon(6 + 16);
    PutNumber(icon, 2, 1, 2);
    PutNumber(icon, 4, 1, 2);
    std::vector<uint8_t> bmp = BmpHeader(6, bits, 0, 6 * 32);
    PutNumber(bmp, 22, 6, 4);  // 3 rows of pixels, 3 of the mask
    icon[6] = 6, icon[7] = 3;
    PutNumber(icon, 12, bits, 2);
    PutNumber(icon, 14, bmp.size() - 14, 4);
    PutNumber(icon, 18, icon.size(), 4);
    icon.insert(icon.end(), bmp.begin() + 14, bmp.end());
    WholeDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(icon, ImageFormat::kIco);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    ASSERT_EQ(info->size, (ImageSize{6, 3}));
    std::vector<uint8_t> first(6 * 3 * 4, 0x5A), second(6 * 3 * 4, 0xA5);
    for (std::vector<uint8_t>* pixels : {&first, &second}) {
      ASSERT_TRUE(decoder.Open(icon, ImageFormat::kIco).ok());
      ASSERT_TRUE(decoder.DecodeUnchanged({0, 0, 6, 3}, pixels->data()).ok());
    }
    EXPECT_EQ(first, second) << bits;
    EXPECT_EQ(first[3], bits == 32 ? 0 : 255);
  }
}

// Runs of 2 bytes and 255 pixels in rows of 2.
TEST(WholeDecoder, RunsOfABmpEndWithTheRow) {
  std::vector<uint8_t> bmp = BmpHeader(2, 8, 1, 1024);
  bmp[54 + 4 * 7] = 70, bmp[54 + 4 * 8] = 80;
  bmp.insert(bmp.end(), {255, 7, 255, 8, 0, 3, 8, 8, 8, 0, 0, 0, 0, 3, 8, 7, 8, 0, 0, 1});
  const WholeImage whole = WholeOf(Padded(bmp));
  EXPECT_EQ(whole.pixels, (std::vector<uint8_t>{0, 0, 80, 0, 0, 70, 0, 0, 70, 0, 0, 70}));
}

TEST(WholeDecoder, ChargesItsMemory) {
  for (const Sample& sample : Samples()) {
    MemoryBudget budget(2000);
    Sniffed decoder{WholeDecoder({}, &budget)};
    const Error error = ErrorOf(decoder, Padded(sample.bytes));
    if (error.cause.empty()) continue;  // a small one
    EXPECT_EQ(error.code, Code::kResourceExhausted) << sample.name << error.ToString();
    EXPECT_GT(error.wanted_bytes, 0u);
    EXPECT_EQ(budget.used(), 0u);
  }
}

TEST(WholeDecoder, DecodesOnceAfterOpen) {
  const std::vector<uint8_t> pnm = {'P', '5', ' ', '2', ' ', '1', ' ', '2', '5', '5', ' ', 7, 9};
  WholeDecoder decoder;
  testing::KeepRows rows;
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
  ASSERT_TRUE(decoder.Open(pnm, ImageFormat::kPnm).ok());
  EXPECT_EQ(decoder.Decode({1, 0, 2, 1}, rows).error().code, Code::kInvalidArgument);
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace stoker
