// What is read of a PNG before its pixels.
#include "transforms/png/chunks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/make_png.h"
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

TEST(PngInfo, IsThatOfTheHeader) {
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

TEST(PngInfo, OrientationIsReadWhereverItStands) {
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

TEST(PngInfo, DamagedOrientationIsIgnored) {
  const std::vector<uint8_t> png = MakePng();
  std::vector<uint8_t> chunk = PngChunk("eXIf", OrientationTiff(6, true));
  chunk[chunk.size() - 1] ^= 1;  // the checksum
  EXPECT_EQ(InfoOf(WithChunk(png, "IDAT", chunk)).orientation, Orientation::kNormal);
  const std::vector<uint8_t> other = PngChunk("eXIf", OrientationTiff(9, true));
  EXPECT_EQ(InfoOf(WithChunk(png, "IDAT", other)).orientation, Orientation::kNormal);
  // The first one that is valid counts.
  const std::vector<uint8_t> good = PngChunk("eXIf", OrientationTiff(3, false));
  EXPECT_EQ(InfoOf(WithChunk(WithChunk(png, "IDAT", chunk), "IEND", good)).orientation,
            Orientation::kRotate180);
}

// Whatever an ancillary chunk holds, and however much of it there is.
TEST(PngChunks, ThoseWithoutPixelsDoNotMatter) {
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

TEST(PngChunks, AnUnknownCriticalOneIsRefused) {
  const std::vector<uint8_t> chunk = PngChunk("CgBI", std::vector<uint8_t>(4, 0));
  PngDecoder decoder;
  const Error error = testing::ErrorOf(decoder, Padded(WithChunk(MakePng(), "IDAT", chunk)));
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "a PNG with a chunk CgBI, which stoker does not know");
  EXPECT_EQ(error.offset, png::kHeaderBytes);
}

}  // namespace
}  // namespace stoker
