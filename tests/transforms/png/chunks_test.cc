// Reading a PNG before its pixels.
#include "transforms/png/chunks.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/images/make_png.h"
#include "tests/transforms/whole.h"
#include "transforms/png/decoder.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using testing::MakePng;
using testing::OrientationTiff;
using testing::Padded;
using testing::PngChunk;
using testing::Unpadded;
using testing::WithChunk;

ImageInfo InfoOf(const std::vector<uint8_t>& png) {
  const std::vector<uint8_t> padded = Padded(png);
  return PngDecoder().Open(Unpadded(padded)).value();
}

TEST(PngInfo, MatchesTheHeader) {
  const ImageInfo rgb = InfoOf(MakePng({.width = 33, .height = 21, .interlaced = true}));
  EXPECT_EQ(rgb.size, (ImageSize{33, 21}));
  EXPECT_EQ(rgb.components, 3);
  EXPECT_TRUE(rgb.progressive);
  EXPECT_EQ(rgb.format, ImageFormat::kPng);
  EXPECT_EQ(rgb.orientation, Orientation::kNormal);
  EXPECT_EQ(InfoOf(MakePng({.color = 0})).components, 1);
  EXPECT_EQ(InfoOf(MakePng({.color = 4})).components, 1);
  EXPECT_EQ(InfoOf(MakePng({.color = 3})).components, 3);
  EXPECT_EQ(InfoOf(MakePng({.color = 6})).components, 3);
  EXPECT_FALSE(InfoOf(MakePng()).progressive);
}

TEST(PngInfo, ReadsOrientationBeforeAndAfterThePixels) {
  const std::vector<uint8_t> png = MakePng({.width = 200, .height = 100});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::vector<uint8_t> chunk =
        PngChunk("eXIf", OrientationTiff(orientation, orientation % 2 == 0));
    for (const char* place : {"IDAT", "IEND"}) {
      EXPECT_EQ(InfoOf(WithChunk(png, place, chunk)).orientation,
                static_cast<Orientation>(orientation))
          << place;
    }
  }
}

TEST(PngInfo, OrientationMayHaveTwoPrefixes) {
  std::vector<uint8_t> exif = OrientationTiff(6, true);
  for (int prefixes = 0; prefixes <= 3; ++prefixes) {
    const std::vector<uint8_t> png = WithChunk(MakePng(), "IDAT", PngChunk("eXIf", exif));
    EXPECT_EQ(InfoOf(png).orientation,
              prefixes <= 2 ? Orientation::kRotate90 : Orientation::kNormal);
    constexpr std::string_view kPrefix("Exif\0\0", 6);
    exif.insert(exif.begin(), kPrefix.begin(), kPrefix.end());
  }
}

TEST(PngInfo, DamagedOrientationIsIgnored) {
  const std::vector<uint8_t> png = MakePng();
  std::vector<uint8_t> chunk = PngChunk("eXIf", OrientationTiff(6, true));
  chunk[chunk.size() - 1] ^= 1;  // the checksum
  EXPECT_EQ(InfoOf(WithChunk(png, "IDAT", chunk)).orientation, Orientation::kNormal);
  const std::vector<uint8_t> other = PngChunk("eXIf", OrientationTiff(9, true));
  EXPECT_EQ(InfoOf(WithChunk(png, "IDAT", other)).orientation, Orientation::kNormal);
  // The last one whose checksum is right counts.
  const std::vector<uint8_t> good = PngChunk("eXIf", OrientationTiff(3, false));
  const std::vector<uint8_t> two = WithChunk(WithChunk(png, "IDAT", other), "IEND", good);
  EXPECT_EQ(InfoOf(two).orientation, Orientation::kRotate180);
  EXPECT_EQ(InfoOf(WithChunk(two, "IEND", chunk)).orientation, Orientation::kRotate180);
  EXPECT_EQ(InfoOf(WithChunk(two, "IEND", other)).orientation, Orientation::kNormal);
}

using namespace std::string_literals;  // NOLINT: texts have zeros in them

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::string Deflated(std::string_view text) {
  std::string out(compressBound(text.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  out.resize(size);
  return out;
}

// Returns a chunk of each kind that may hold `text`.
std::vector<std::vector<uint8_t>> TextChunks(const std::string& keyword, const std::string& text) {
  const std::string name = keyword + "\0"s;
  return {PngChunk("tEXt", Bytes(name + text)),
          PngChunk("zTXt", Bytes(name + "\0"s + Deflated(text))),
          PngChunk("iTXt", Bytes(name + "\0\0\0\0"s + text)),
          PngChunk("iTXt", Bytes(name + "\1\0en\0x\0"s + Deflated(text)))};
}

const std::string kXmpKeyword = "XML:com.adobe.xmp", kExifKeyword = "Raw profile type exif";

std::string Xmp(int orientation) {
  return "<x:xmpmeta><rdf:Description tiff:Orientation=\"" + std::to_string(orientation) +
         "\"/></x:xmpmeta>";
}

// Returns the form that ImageMagick writes.
std::string RawProfile(int orientation) {
  std::vector<uint8_t> exif = Bytes("Exif\0\0"s);
  const std::vector<uint8_t> tiff = OrientationTiff(orientation, true);
  exif.insert(exif.end(), tiff.begin(), tiff.end());
  std::string text = "\nexif\n      " + std::to_string(exif.size()) + "\n";
  for (size_t i = 0; i < exif.size(); ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[exif[i] >> 4];
    text += kDigits[exif[i] & 15];
    if (i % 36 == 35) text += '\n';
  }
  return text + '\n';
}

TEST(PngInfo, ReadsOrientationFromTextChunks) {
  const std::vector<uint8_t> png = MakePng({.width = 200, .height = 100});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto wanted = static_cast<Orientation>(orientation);
    for (const auto& [keyword, text] : {std::pair(kXmpKeyword, Xmp(orientation)),
                                        std::pair(kExifKeyword, RawProfile(orientation))}) {
      for (const std::vector<uint8_t>& chunk : TextChunks(keyword, text)) {
        for (const char* place : {"IDAT", "IEND"}) {
          EXPECT_EQ(InfoOf(WithChunk(png, place, chunk)).orientation, wanted) << keyword << place;
        }
        std::vector<uint8_t> damaged = chunk;
        damaged.back() ^= 1;
        EXPECT_EQ(InfoOf(WithChunk(png, "IDAT", damaged)).orientation, Orientation::kNormal);
      }
    }
  }
}

// Pillow's order: eXIf, the text that stands for it, XMP.
TEST(PngInfo, PrefersExifToTextAndTextToXmp) {
  const std::vector<uint8_t> png = MakePng();
  const auto with = [&](const std::vector<std::vector<uint8_t>>& chunks) {
    std::vector<uint8_t> all = png;
    for (const std::vector<uint8_t>& chunk : chunks) all = WithChunk(all, "IEND", chunk);
    return static_cast<int>(InfoOf(all).orientation);
  };
  const std::vector<uint8_t> exif = PngChunk("eXIf", OrientationTiff(2, true));
  const std::vector<uint8_t> none = PngChunk("eXIf", OrientationTiff(9, true));
  std::vector<uint8_t> tiff = OrientationTiff(2, true);
  tiff[11] ^= 1;  // another tag
  const std::vector<uint8_t> untagged = PngChunk("eXIf", tiff);
  const std::vector<uint8_t> raw = TextChunks(kExifKeyword, RawProfile(3))[1];
  const std::vector<uint8_t> xmp = TextChunks(kXmpKeyword, Xmp(4))[3];
  EXPECT_EQ(with({exif, raw, xmp}), 2);
  EXPECT_EQ(with({xmp, raw, exif}), 2);
  EXPECT_EQ(with({raw, xmp}), 3);
  EXPECT_EQ(with({xmp, raw}), 3);
  EXPECT_EQ(with({xmp}), 4);
  EXPECT_EQ(with({none, raw, xmp}), 1);
  EXPECT_EQ(with({untagged, raw}), 1) << "eXIf takes the text's place, whatever it says";
  EXPECT_EQ(with({untagged, raw, xmp}), 4);
  EXPECT_EQ(with({xmp, TextChunks(kXmpKeyword, Xmp(5))[0]}), 5) << "the last one";
}

TEST(PngInfo, HostileTextIsBounded) {
  const std::vector<uint8_t> png = MakePng();
  const auto of = [&](const std::vector<uint8_t>& chunk) {
    return InfoOf(WithChunk(png, "IDAT", chunk)).orientation;
  };
  // Text after a megabyte is not looked at; up to there it is, across pieces too.
  for (const auto& [before, found] : {std::pair(size_t{(1 << 20) - 100}, true),
                                      {size_t{1 << 21}, false},
                                      {size_t{8192 - 40}, true},
                                      {size_t{8192 - 35}, true},
                                      {size_t{16384 - 33}, true}}) {
    for (size_t shift = 0; shift < 24; ++shift) {
      const std::string text = std::string(before + shift, ' ') + Xmp(6);
      for (const std::vector<uint8_t>& chunk : TextChunks(kXmpKeyword, text)) {
        ASSERT_EQ(of(chunk), found ? Orientation::kRotate90 : Orientation::kNormal)
            << before + shift;
      }
      if (before > 20000) break;
    }
  }
  // The first one counts, though it is no orientation, and though another piece has one that is.
  for (const std::vector<uint8_t>& chunk :
       TextChunks(kXmpKeyword, Xmp(9) + std::string(9000, ' ') + Xmp(6))) {
    EXPECT_EQ(of(chunk), Orientation::kNormal);
  }
  const std::string bomb = Deflated(std::string(20 << 20, '0'));
  for (const std::string& keyword : {kXmpKeyword, kExifKeyword}) {
    EXPECT_EQ(of(PngChunk("zTXt", Bytes(keyword + "\0\0"s + bomb))), Orientation::kNormal);
    // Fields that are missing, and text that is none.
    for (const std::string& data :
         {""s, "\0"s, "\0\0"s, "\0\1"s, "\0\0\0"s, "\0\1\0\0"s, "\0\1\0\0\0"s, "\0\0x\x9C"s,
          "\0\1\0\0\0x\x9C junk"s, "\0\n\n\n"s, "\0\n\n\n4"s, "\0\n\n\nzz"s, "\0\n\n\n45786966"s}) {
      for (const char* type : {"tEXt", "zTXt", "iTXt"}) {
        EXPECT_EQ(of(PngChunk(type, Bytes(keyword + data))), Orientation::kNormal);
      }
    }
  }
}

// An ancillary chunk may hold anything, and any amount of it.
TEST(PngChunks, AncillaryChunksDoNotMatter) {
  const std::vector<uint8_t> plain = MakePng({.width = 50, .height = 40, .color = 6});
  const WholeImage whole = DecodeWholePng(plain).value();
  std::vector<uint8_t> png = plain;
  for (const char* type : {"gAMA", "cHRM", "iCCP", "sRGB", "sBIT", "tRNS", "bKGD", "hIST", "zTXt",
                           "iTXt", "tEXt", "acTL", "fcTL", "fdAT", "prVt"}) {
    for (const char* place : {"IDAT", "IEND"}) {
      std::vector<uint8_t> chunk = PngChunk(type, std::vector<uint8_t>(3000, 0x78));
      png = WithChunk(png, place, chunk);
      chunk.back() ^= 1;
      png = WithChunk(png, place, chunk);
    }
  }
  PngDecoder decoder;
  EXPECT_EQ(testing::Compare(decoder, Padded(png), {}, whole), "");
}

TEST(PngChunks, RefusesUnknownCriticalChunks) {
  const std::vector<uint8_t> chunk = PngChunk("CgBI", std::vector<uint8_t>(4, 0));
  PngDecoder decoder;
  const Error error = testing::ErrorOf(decoder, Padded(WithChunk(MakePng(), "IDAT", chunk)));
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "a PNG with a chunk CgBI, which stoker does not know");
  EXPECT_EQ(error.offset, png::kHeaderBytes);
}

}  // namespace
}  // namespace stoker
