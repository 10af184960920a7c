// Reading a WebP before its pixels.
#include "transforms/webp/container.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/webp/decoder.h"
#include "transforms/webp/reference_decoder.h"

namespace stoker {
namespace {

using testing::ErrorOf;
using testing::Extended;
using testing::MakeWebp;
using testing::OrientationTiff;
using testing::Padded;
using testing::Unpadded;
using testing::WebpChunk;

constexpr uint8_t kAnimation = 2, kExif = 8;

ImageInfo WebpInfoOf(const std::vector<uint8_t>& webp) {
  const std::vector<uint8_t> padded = Padded(webp);
  return WebpDecoder().Open(Unpadded(padded)).value();
}

TEST(WebpInfo, MatchesTheHeader) {
  const ImageInfo lossy = WebpInfoOf(MakeWebp({.width = 33, .height = 21}));
  EXPECT_EQ(lossy.size, (ImageSize{33, 21}));
  EXPECT_EQ(lossy.components, 3);
  EXPECT_EQ(lossy.chroma_columns, 2);
  EXPECT_EQ(lossy.format, ImageFormat::kWebp);
  const ImageInfo lossless = WebpInfoOf(MakeWebp({.width = 33, .height = 21, .lossless = true}));
  EXPECT_EQ(lossless.size, (ImageSize{33, 21}));
  EXPECT_EQ(lossless.chroma_columns, 1);
  EXPECT_EQ(WebpInfoOf(MakeWebp({.width = 33, .height = 21, .alpha = true})).size,
            (ImageSize{33, 21}));
  for (const bool lossless : {false, true}) {
    EXPECT_FALSE(WebpInfoOf(MakeWebp({.lossless = lossless})).alpha);
    EXPECT_TRUE(WebpInfoOf(MakeWebp({.lossless = lossless, .alpha = true})).alpha);
  }
}

TEST(WebpInfo, ReadSizeNeedsOnlyTheFirstBytes) {
  for (const testing::WebpOptions& options : {testing::WebpOptions{.width = 301, .height = 7},
                                              {.width = 301, .height = 7, .lossless = true},
                                              {.width = 301, .height = 7, .alpha = true}}) {
    std::vector<uint8_t> webp = MakeWebp(options);
    const size_t needed = options.lossless ? 25 : webp::kSizeBytes;
    webp.resize(needed);
    EXPECT_EQ(webp::ReadSize(webp).value(), (ImageSize{301, 7}));
    webp.resize(needed - 1);
    EXPECT_EQ(webp::ReadSize(webp).error().code, Code::kDataLoss);
  }
}

// XMP counts where EXIF has no such tag, as for Pillow.
TEST(WebpInfo, ReadsOrientationFromXmp) {
  constexpr uint8_t kXmp = 4;
  const std::vector<uint8_t> webp = MakeWebp();
  const auto with = [&](uint8_t flags, const std::vector<uint8_t>& chunks) {
    return static_cast<int>(WebpInfoOf(Extended(webp, 64, 48, flags, {}, chunks)).orientation);
  };
  const auto xmp = [](int orientation) {
    const std::string text = "<tiff:Orientation>" + std::to_string(orientation) + "</";
    return WebpChunk("XMP ", std::vector<uint8_t>(text.begin(), text.end()));
  };
  const auto both = [](std::vector<uint8_t> one, const std::vector<uint8_t>& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  };
  std::vector<uint8_t> tiff = OrientationTiff(3, true);
  const std::vector<uint8_t> exif = WebpChunk("EXIF", tiff);
  tiff[11] ^= 1;  // another tag
  const std::vector<uint8_t> untagged = WebpChunk("EXIF", tiff);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(with(kXmp, xmp(orientation)), orientation);
    EXPECT_EQ(with(kXmp | kExif, both(untagged, xmp(orientation))), orientation);
    EXPECT_EQ(with(kXmp | kExif, both(exif, xmp(orientation))), 3);
    EXPECT_EQ(with(kXmp | kExif, both(xmp(orientation), exif)), 3);
    EXPECT_EQ(with(kXmp, both(exif, xmp(orientation))), orientation) << "no EXIF is announced";
    EXPECT_EQ(with(0, xmp(orientation)), 1);
  }
  EXPECT_EQ(with(kXmp, both(xmp(2), xmp(4))), 2);
}

TEST(WebpInfo, ReadsOrientationFromExif) {
  const std::vector<uint8_t> webp = MakeWebp();
  const std::vector<uint8_t> other = WebpChunk("XMP ", std::vector<uint8_t>(7, 'x'));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    std::vector<uint8_t> tiff = OrientationTiff(orientation, orientation % 2 == 0);
    for (const bool prefixed : {false, true}) {
      if (prefixed) {  // not as the standard has it, but seen
        const std::vector<uint8_t> prefix = {'E', 'x', 'i', 'f', 0, 0};
        tiff.insert(tiff.begin(), prefix.begin(), prefix.end());
      }
      std::vector<uint8_t> chunks = other;
      const std::vector<uint8_t> exif = WebpChunk("EXIF", tiff);
      chunks.insert(chunks.end(), exif.begin(), exif.end());
      EXPECT_EQ(WebpInfoOf(Extended(webp, 64, 48, kExif, {}, chunks)).orientation,
                static_cast<Orientation>(orientation));
      EXPECT_EQ(WebpInfoOf(Extended(webp, 64, 48, kExif, chunks)).orientation,
                static_cast<Orientation>(orientation));
      // Chunks that the header does not announce are ignored.
      EXPECT_EQ(WebpInfoOf(Extended(webp, 64, 48, 0, {}, chunks)).orientation,
                Orientation::kNormal);
    }
  }
  const std::vector<uint8_t> nonsense = WebpChunk("EXIF", OrientationTiff(9, true));
  EXPECT_EQ(WebpInfoOf(Extended(webp, 64, 48, kExif, {}, nonsense)).orientation,
            Orientation::kNormal);
}

TEST(WebpContainer, DecodesTheFirstFrameOfAnAnimation) {
  const std::vector<uint8_t> still = MakeWebp();
  const auto frame = [&](uint8_t x, uint8_t width) {
    std::vector<uint8_t> data = {x, 0, 0, 0, 0, 0, width, 0, 0, 47, 0, 0, 100, 0, 0, 0};
    data.insert(data.end(), still.begin() + 12, still.end());
    return WebpChunk("ANMF", data);
  };
  const auto with = [](std::span<const std::vector<uint8_t>> chunks) {
    std::vector<uint8_t> riff = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E', 'B', 'P'};
    const std::vector<uint8_t> header = {kAnimation | kExif, 0, 0, 0, 63, 0, 0, 47, 0, 0};
    std::vector<std::vector<uint8_t>> all = {WebpChunk("VP8X", header),
                                             WebpChunk("ANIM", std::vector<uint8_t>(6))};
    all.insert(all.end(), chunks.begin(), chunks.end());
    for (const auto& chunk : all) riff.insert(riff.end(), chunk.begin(), chunk.end());
    for (size_t i = 0; i < 4; ++i) riff[4 + i] = static_cast<uint8_t>((riff.size() - 8) >> (8 * i));
    return riff;
  };
  const std::vector<uint8_t> exif = WebpChunk("EXIF", OrientationTiff(3, true));
  const std::vector<uint8_t> one = with({{frame(0, 63), exif}});
  EXPECT_EQ(WebpInfoOf(one).size, (ImageSize{64, 48}));
  EXPECT_EQ(WebpInfoOf(one).orientation, Orientation::kRotate180);
  EXPECT_FALSE(WebpInfoOf(one).several_frames);
  WebpDecoder decoder;
  const auto cause = [&](const std::vector<uint8_t>& webp) {
    return ErrorOf(decoder, Padded(webp)).cause;
  };
  const ImageInfo two = WebpInfoOf(with({{frame(0, 63), exif, frame(2, 61)}}));
  EXPECT_EQ(two.size, (ImageSize{64, 48}));
  EXPECT_TRUE(two.several_frames);
  for (const auto& [x, width] : {std::pair(2, 63), {0, 62}}) {
    EXPECT_EQ(cause(with({{frame(static_cast<uint8_t>(x), static_cast<uint8_t>(width))}})),
              "an animated WebP whose first frame is not as large as its canvas");
  }
  EXPECT_EQ(cause(with({})), "damaged WebP: no image in it");
  EXPECT_EQ(cause(with({{WebpChunk("ANMF", std::vector<uint8_t>(15))}})),
            "damaged WebP: a frame without a place");
  for (size_t size = 0; size < one.size(); ++size) {
    (void)ErrorOf(decoder, Padded({one.begin(), one.begin() + static_cast<ptrdiff_t>(size)}));
  }
}

TEST(WebpContainer, RefusesInconsistentHeaders) {
  WebpDecoder decoder;
  const std::vector<uint8_t> webp = MakeWebp();
  EXPECT_EQ(ErrorOf(decoder, Padded(Extended(webp, 64, 49, 0))).cause,
            "damaged WebP: its image is not as large as its canvas");
  // Only an extended file has other chunks before its image.
  std::vector<uint8_t> chunk = WebpChunk("XMP ", std::vector<uint8_t>(8, 'x'));
  std::vector<uint8_t> early = webp;
  early.insert(early.begin() + 12, chunk.begin(), chunk.end());
  early[4] = static_cast<uint8_t>(early[4] + 16);
  EXPECT_EQ(ErrorOf(decoder, Padded(early)).cause, "damaged WebP: no image in it");
  EXPECT_EQ(ErrorOf(decoder, Padded(Extended(webp, 64, 48, 0, chunk))).cause, "");
  // Bytes after the file's own end are not its own.
  std::vector<uint8_t> longer = webp;
  longer.insert(longer.end(), 1000, 0x77);
  EXPECT_EQ(ErrorOf(decoder, Padded(longer)).cause, "");
}

}  // namespace
}  // namespace stoker
