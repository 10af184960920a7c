// Files of several frames or pages, of which one is decoded, in each format.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/transforms/jpeg/decode.h"
#include "tests/transforms/whole.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/packed/pack.h"

namespace stoker {
namespace {

using testing::MakePng;
using testing::Padded;
using testing::PngChunk;
using testing::Unpadded;
using testing::WithChunk;

// Made by tests/fuzz/make_whole.py.
std::vector<uint8_t> Made(const std::string& name) {
  std::ifstream file(std::string(STOKER_WHOLE_IMAGES "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Nullopt if the image cannot be opened, because its library is not installed.
std::optional<bool> Several(const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> padded = Padded(bytes);
  const Result<ImageInfo> info = ImageDecoder().Open(Unpadded(padded));
  if (info.ok()) return info->several_frames;
  EXPECT_EQ(info.error().code, Code::kUnimplemented) << info.error().ToString();
  return std::nullopt;
}

std::vector<uint8_t> Apng(uint8_t frames, const char* before = "IDAT") {
  return WithChunk(MakePng(), before,
                   PngChunk("acTL", std::vector<uint8_t>{0, 0, 0, frames, 0, 0, 0, 0}));
}

// A TIFF whose first directory says where the next one is.
std::vector<uint8_t> Pages(uint32_t next) {
  std::vector<uint8_t> tiff = Made("RGB.tif");
  const size_t directory = tiff[4] + 256U * tiff[5];
  const size_t at = directory + 2 + size_t{12} * tiff[directory];
  for (size_t i = 0; i < 4; ++i) tiff[at + i] = static_cast<uint8_t>(next >> (8 * i));
  return tiff;
}

TEST(SeveralFrames, OfAPng) {
  EXPECT_EQ(Several(MakePng()), false);
  EXPECT_EQ(Several(Apng(2)), true);
  EXPECT_EQ(Several(Apng(1)), false);
  EXPECT_EQ(Several(Apng(0)), false);
  EXPECT_EQ(Several(Apng(2, "IEND")), false);
  const std::vector<uint8_t> text = PngChunk("tEXt", std::vector<uint8_t>(20'000, 'x'));
  EXPECT_EQ(Several(WithChunk(Apng(2), "acTL", text)), true);
}

TEST(SeveralFrames, OfFormatsThatLibrariesDecode) {
  for (const char* name : {"frames.gif", "frames.avif"}) EXPECT_NE(Several(Made(name)), false);
  for (const char* name : {"L.gif", "P.gif", "interlaced.gif", "RGB.avif", "RGB.heic", "RGB.tif",
                           "deep.tif", "RGB.bmp"}) {
    EXPECT_NE(Several(Made(name)), true) << name;
  }
  EXPECT_NE(Several(Pages(10)), false);
  EXPECT_NE(Several(Pages(1 << 30)), true);  // outside of the file
  const std::vector<uint8_t> tiff = Made("RGB.tif");
  EXPECT_NE(Several(Pages(tiff[4] + 256U * tiff[5])), true);  // the first directory itself
  std::vector<uint8_t> avif = Made("frames.avif");
  const std::string_view text(reinterpret_cast<const char*>(avif.data()), avif.size());
  const size_t frames = text.find("stsz") + 15;
  ASSERT_EQ(avif[frames], 2);
  avif[frames] = 1;
  EXPECT_NE(Several(avif), true);
}

uint64_t CountAfter(ImageDecoder& decoder, const std::vector<uint8_t>& bytes, bool decode = true) {
  const std::vector<uint8_t> padded = Padded(bytes);
  const Result<ImageInfo> info = decoder.Open(Unpadded(padded));
  testing::KeepRows rows;
  if (info.ok() && decode) {
    (void)decoder.Decode({0, 0, info->size.width, info->size.height}, rows);
  }
  return decoder.paths().several_frames;
}

TEST(SeveralFrames, AreCountedWhenTheirPixelsWereDecoded) {
  ImageDecoder decoder;
  EXPECT_EQ(CountAfter(decoder, Apng(2)), 1u);
  EXPECT_EQ(CountAfter(decoder, MakePng()), 1u);
  EXPECT_EQ(CountAfter(decoder, Apng(2), false), 1u);
  const std::vector<uint8_t> jpeg = testing::MakeJpeg({});
  EXPECT_EQ(CountAfter(decoder, jpeg), 1u);
  EXPECT_EQ(CountAfter(decoder, Apng(2), false), 1u);
  EXPECT_EQ(CountAfter(decoder, PackJpeg(Unpadded(Padded(jpeg))).value()), 1u);
  std::vector<uint8_t> damaged = Apng(2);
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_EQ(CountAfter(decoder, damaged), 1u);
  EXPECT_EQ(CountAfter(decoder, Apng(2)), 2u);
}

TEST(SeveralFrames, SurvivesCutsAndChanges) {
  RandomStream random({9, 0, 1}, 0);
  for (const std::vector<uint8_t>& bytes :
       {Made("frames.gif"), Made("frames.avif"), Apng(2), Pages(10)}) {
    ImageDecoder decoder;
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto end = bytes.begin() + static_cast<ptrdiff_t>(size);
      (void)CountAfter(decoder, {bytes.begin(), end}, false);
    }
    for (int round = 0; round < testing::Effort(1000); ++round) {
      std::vector<uint8_t> changed = bytes;
      for (int i = 0; i < 3; ++i) {
        changed[random.Below(changed.size())] = static_cast<uint8_t>(random.Below(256));
      }
      (void)CountAfter(decoder, changed, false);
    }
  }
}

}  // namespace
}  // namespace stoker
