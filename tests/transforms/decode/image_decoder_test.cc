// Formats are told from the bytes, and all of them become rows of one run.
#include "transforms/decode/image_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/packed/pack.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"
#include "transforms/plan/reference.h"
#include "transforms/png/reference_decoder.h"
#include "transforms/webp/reference_decoder.h"

namespace stoker {
namespace {

using testing::Compare;
using testing::ErrorOf;
using testing::MakeJpeg;
using testing::MakePng;
using testing::MakeWebp;
using testing::Padded;
using testing::Unpadded;

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(ImageDecoder, DetectsEachFormatByItsContent) {
  ImageDecoder decoder;
  for (int round = 0; round < 2; ++round) {
    const std::vector<uint8_t> jpeg = Padded(MakeJpeg()), png = Padded(MakePng()),
                               webp = Padded(MakeWebp()),
                               packed = Padded(PackJpeg(Unpadded(jpeg)).value());
    EXPECT_EQ(decoder.Open(Unpadded(jpeg))->format, ImageFormat::kJpeg);
    EXPECT_EQ(Compare(decoder, jpeg, {5, 5, 20, 20}, DecodeWhole(Unpadded(jpeg)).value()), "");
    EXPECT_EQ(decoder.Open(Unpadded(packed))->format, ImageFormat::kPackedJpeg);
    EXPECT_EQ(Compare(decoder, packed, {5, 5, 20, 20}, DecodeWhole(Unpadded(jpeg)).value()), "");
    EXPECT_EQ(decoder.Open(Unpadded(png))->format, ImageFormat::kPng);
    EXPECT_EQ(Compare(decoder, png, {5, 5, 20, 20}, DecodeWholePng(Unpadded(png)).value()), "");
    EXPECT_EQ(decoder.Open(Unpadded(webp))->format, ImageFormat::kWebp);
    EXPECT_EQ(Compare(decoder, webp, {5, 5, 20, 20}, DecodeWholeWebp(Unpadded(webp)).value()), "");
  }
  EXPECT_EQ(decoder.paths().fast, 2u);
  EXPECT_EQ(decoder.paths().packed, 2u);
}

// For a sink that wants only luma, images of other formats are decoded to RGB and converted.
TEST(ImageDecoder, GivesLumaAlone) {
  ImageDecoder decoder;
  const auto luma_of = [](const WholeImage& image) {
    WholeImage luma{image.size, PixelLayout::kGray, {}};
    const auto each = static_cast<size_t>(BytesPerPixel(image.layout));
    for (size_t i = 0; i < image.pixels.size(); i += each) {
      const uint8_t* const p = &image.pixels[i];
      const int sum = 19595 * p[0] + 38470 * p[each / 2] + 7471 * p[each - 1];
      luma.pixels.push_back(static_cast<uint8_t>((sum + 32768) / 65536));
    }
    return luma;
  };
  for (const int color : {0, 2, 3, 4, 6}) {
    for (const bool interlaced : {false, true}) {
      const std::vector<uint8_t> png = Padded(MakePng({.color = color, .interlaced = interlaced}));
      const WholeImage luma = luma_of(DecodeWholePng(Unpadded(png)).value());
      for (const Rect& region : {Rect{}, Rect{5, 5, 20, 20}, Rect{0, 7, 1, 3}}) {
        EXPECT_EQ(Compare(decoder, png, region, luma, PixelLayout::kGray), "") << color;
      }
    }
  }
  const std::vector<uint8_t> webp = Padded(MakeWebp());
  const WholeImage luma = luma_of(DecodeWholeWebp(Unpadded(webp)).value());
  EXPECT_EQ(Compare(decoder, webp, {5, 5, 20, 20}, luma, PixelLayout::kGray), "");
}

TEST(ImageDecoder, MasksArePngs) {
  const std::vector<uint8_t> jpeg = Padded(MakeJpeg()), webp = Padded(MakeWebp()),
                             png = Padded(MakePng({.color = 3, .bit_depth = 4})),
                             packed = Padded(PackJpeg(Unpadded(jpeg)).value());
  ImageDecoder decoder;
  const auto cause_of = [&decoder](std::span<const uint8_t> bytes) {
    const Result<ImageInfo> info = decoder.Open(bytes, PixelMeaning::kMask);
    return info.ok() ? std::to_string(info->components) : info.error().cause;
  };
  const std::string mask =
      "a mask is a PNG with one channel, of at most 8 bits unless its rows are uint16, and this "
      "one ";
  EXPECT_EQ(cause_of(Unpadded(png)), "1");
  EXPECT_EQ(cause_of(Unpadded(jpeg)), mask + "has the format JPEG");
  EXPECT_EQ(cause_of(Unpadded(webp)), mask + "has the format WebP");
  EXPECT_EQ(cause_of(Unpadded(packed)), mask + "has the format packed JPEG");
  EXPECT_EQ(cause_of(Bytes("GIF89a")), mask + "has the format GIF");
  EXPECT_EQ(cause_of(Bytes("")), "the image has no bytes");
  EXPECT_EQ(cause_of(Bytes("P0")), NoImage(Bytes("P0")).cause);
  EXPECT_FALSE(decoder.decoding());
}

// A JPEG and a PNG whose headers say that they have this size.
std::vector<uint8_t> JpegOfSize(int width, int height) {
  std::vector<uint8_t> jpeg = MakeJpeg();
  testing::SetJpegSize(jpeg, width, height);
  return jpeg;
}
std::vector<uint8_t> PngOfSize(int width, int height) {
  std::vector<uint8_t> png = MakePng();
  constexpr size_t kChunk = 8, kSize = kChunk + 8, kEnd = kSize + 13;  // of IHDR, the first chunk
  for (int i = 0; i < 4; ++i) {
    png[kSize + static_cast<size_t>(i)] = static_cast<uint8_t>(width >> (24 - 8 * i));
    png[kSize + static_cast<size_t>(i) + 4] = static_cast<uint8_t>(height >> (24 - 8 * i));
  }
  const std::vector<uint8_t> header =
      testing::PngChunk("IHDR", std::span(png).subspan(kSize, kEnd - kSize));
  std::copy(header.begin(), header.end(), png.begin() + kChunk);
  return png;
}

// 2²⁸ pixels, of which nothing but the headers is there. (A WebP cannot have more.)
TEST(ImageDecoder, TheDefaultLimitOfPixelsIsExact) {
  for (const auto of_size : {&JpegOfSize, &PngOfSize}) {
    ImageDecoder decoder, without_limit({.max_pixels = int64_t{65535} * 65535});
    const std::vector<uint8_t> most = Padded(of_size(16384, 16384)),
                               more = Padded(of_size(16384, 16385));
    const auto is_over_the_limit = [](const Result<ImageInfo>& opened) {
      return !opened.ok() && opened.error().code == Code::kResourceExhausted;
    };
    EXPECT_FALSE(is_over_the_limit(decoder.Open(Unpadded(most))));
    const Result<ImageInfo> opened = decoder.Open(Unpadded(more));
    ASSERT_TRUE(is_over_the_limit(opened));
    EXPECT_EQ(opened.error().detail, Error::Detail::kOverLimits);
    EXPECT_THAT(opened.error().cause, ::testing::HasSubstr("16384 × 16385 pixels"));
    EXPECT_THAT(opened.error().Advice(), ::testing::HasSubstr("raise max_pixels"));
    EXPECT_FALSE(is_over_the_limit(without_limit.Open(Unpadded(more))));
  }
}

TEST(ImageDecoder, CountsPackedJpegsThatWereDecoded) {
  ImageDecoder decoder;
  const std::vector<uint8_t> jpeg = Padded(MakeJpeg());
  std::vector<uint8_t> packed = PackJpeg(Unpadded(jpeg)).value();
  packed.back() ^= 1;  // in the last row
  packed = Padded(packed);
  EXPECT_EQ(ErrorOf(decoder, packed, {0, 0, 8, 8}).cause, "");
  EXPECT_EQ(decoder.paths().packed, 1u);
  const ImageSize size = decoder.Open(Unpadded(packed))->size;
  EXPECT_NE(ErrorOf(decoder, packed, {0, 0, size.width, size.height}).cause, "");
  EXPECT_EQ(decoder.paths().packed, 1u);
  EXPECT_EQ(decoder.paths().fast, 0u);
}

TEST(ImageDecoder, RefusesEmptyAndUnsupportedFiles) {
  ImageDecoder decoder;
  const Error empty = ErrorOf(decoder, Padded({}));
  EXPECT_EQ(empty.code, Code::kDataLoss);
  EXPECT_EQ(empty.cause, "the image has no bytes");
  EXPECT_EQ(empty.offset, 0u);
  const Error text = ErrorOf(decoder, Padded(Bytes("This is text, and named .jpg\n")));
  EXPECT_EQ(text.code, Code::kDataLoss);
  EXPECT_EQ(text.cause, "not a supported image");
  EXPECT_EQ(text.offset, 0u);
  EXPECT_EQ(text.advice, "If it is an image, convert it to JPEG or PNG; otherwise remove it");
  const Error pointer = ErrorOf(
      decoder, Padded(Bytes("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n")));
  EXPECT_EQ(pointer.cause, "a Git LFS pointer, not the file that it points to");
  EXPECT_EQ(pointer.advice, "Run `git lfs pull` in its repository");
  const Error gif = ErrorOf(decoder, Padded(Bytes("qoif and so on")));
  EXPECT_EQ(gif.code, Code::kUnimplemented);
  EXPECT_EQ(gif.cause, "QOI images are not supported");
  EXPECT_EQ(
      gif.advice,
      "Convert it to JPEG or PNG, for example with ImageMagick: `convert 'FILE[0]' FILE.png`");
}

// The advice for a sound image of another format is never to remove it.
TEST(ImageDecoder, ErrorsNameOtherFormats) {
  using namespace std::string_view_literals;  // NOLINT: magic bytes contain zeros
  const std::pair<std::string_view, const char*> files[] = {
      {"\0\0\0\x20"
       "ftypavif\0\0\0\0avifmif1"sv,
       "AVIF"},
      {"\0\0\0\x1C"
       "ftypmif1\0\0\0\0mif1avif"sv,
       "AVIF"},
      {"\0\0\0\x18"
       "ftypheic\0\0\0\0mif1heic"sv,
       "HEIC"},
      {"\0\0\0\x18"
       "ftypmif1\0\0\0\0mif1heic"sv,
       "HEIC"},
      {"\0\0\0\x0CjP  \r\n\x87\n\0\0\0\x14"
       "ftypjp2 "sv,
       "JPEG 2000"},
      {"\xFF\x4F\xFF\x51\0\x2F\0\0"sv, "JPEG 2000"},
      {"\0\0\0\x0CJXL \r\n\x87\n"sv, "JPEG XL"},
      {"\xFF\x0A\xFA\x1F\x01\x90\0\0\0\0\0\0"sv, "JPEG XL"},
      {"II\xBC\x01\x08"sv, "JPEG XR"},
      {"BM\x10\x20\x30\0\0\0\0\0\x36"sv, "BMP"},
      {"MM\0*...."sv, "TIFF"},
      {"II+\0\x08\0\0\0"sv, "TIFF"},
      {"P6\n3 4\n255\n"sv, "PNM"},
      {"\0\0\1\0\1\0\x10\x10\0\0\1\0\x20\0\x68\4\0\0\x16\0\0\0"sv, "ICO"},
      {"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"sv, "SVG"},
      {"\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- x -->\n<svg/>"sv, "SVG"},
      {"8BPS\0\1"sv, "Photoshop"},
      {"\x76\x2F\x31\x01"sv, "OpenEXR"},
      {"DDS \x7C\0\0\0"sv, "DDS"},
      {"qoif\0\0\0\1"sv, "QOI"},
  };
  ImageDecoder decoder;
  for (const auto& [bytes, name] : files) {
    const Error error = ErrorOf(decoder, Padded(Bytes(bytes)));
    if (WholeDecoder::Decodes(SniffFormat(Bytes(bytes)))) {  // only headers
      EXPECT_TRUE(error.cause.find(name) != std::string::npos) << error.cause;
      continue;
    }
    EXPECT_EQ(error.code, Code::kUnimplemented) << name;
    EXPECT_EQ(error.cause, std::string(name) + " images are not supported");
    EXPECT_TRUE(error.advice.starts_with("Convert it to JPEG or PNG, for example with")) << name;
  }
  for (const std::string_view text :
       {"\0\0\0\x18"
        "ftypmp42\0\0\0\0mp42isom"sv,
        "\0\0\0\0ftypheic"sv,
        "\0\0\0\x18"
        "ftyp"sv,
        "\xFF\n"sv, "\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv, "<!DOCTYPE html><svg/>"sv,
        "<html>"sv}) {
    EXPECT_EQ(ErrorOf(decoder, Padded(Bytes(text))).code, Code::kDataLoss) << text;
  }
}

// A previously opened image does not replace one that could not be opened.
TEST(ImageDecoder, DecodeFailsUnlessAnImageIsOpen) {
  ImageDecoder decoder;
  testing::KeepRows rows;
  EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
  for (const std::vector<uint8_t>& file : {MakeJpeg(), MakePng(), MakeWebp()}) {
    const std::vector<uint8_t> padded = Padded(file), text = Padded(Bytes("text"));
    ASSERT_TRUE(decoder.Open(Unpadded(padded)).ok());
    ASSERT_FALSE(decoder.Open(Unpadded(text)).ok());
    EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
    ASSERT_TRUE(decoder.Open(Unpadded(padded)).ok());
    ASSERT_FALSE(decoder.Open({}).ok());
    EXPECT_EQ(decoder.Decode({0, 0, 1, 1}, rows).error().code, Code::kFailedPrecondition);
  }
}

// ---- interleaved

const Plan& ThePlan() {
  static const Plan plan =
      Plan::Compile({RandomResizedCrop{24, 40}, RandomHorizontalFlip{}}).value();
  return plan;
}

// All formats, orientations, and some damage.
std::vector<uint8_t> MakeEncoded(uint64_t n) {
  RandomStream random({8, 0, n}, 0);
  const int width = 1 + static_cast<int>(random.Below(200));
  const int height = 1 + static_cast<int>(random.Below(200));
  const int orientation = static_cast<int>(random.Below(9));
  std::vector<uint8_t> file;
  switch (random.Below(4)) {
    case 0: {
      testing::JpegOptions options{.width = width, .height = height, .orientation = orientation};
      options.sampling = testing::Luma(2, 2);
      if (random.Below(4) == 0) options.scans = testing::JpegScans::kProgressive;
      file = MakeJpeg(options);
      break;
    }
    case 1: {
      constexpr int kColors[] = {0, 2, 3, 4, 6};
      file = MakePng({.width = width,
                      .height = height,
                      .color = kColors[random.Below(5)],
                      .interlaced = random.Below(3) == 0,
                      .seed = n});
      const std::vector<uint8_t> tiff = testing::OrientationTiff(orientation, n % 2 == 0);
      file =
          testing::WithChunk(file, n % 3 == 0 ? "IEND" : "IDAT", testing::PngChunk("eXIf", tiff));
      break;
    }
    case 2: {
      file = MakeWebp({.width = width,
                       .height = height,
                       .lossless = random.Below(2) == 0,
                       .alpha = random.Below(2) == 0,
                       .seed = n});
      const std::vector<uint8_t> tiff = testing::OrientationTiff(orientation, n % 2 == 0);
      file = testing::Extended(file, width, height, 8, {}, testing::WebpChunk("EXIF", tiff));
      break;
    }
    default:
      file = n % 2 == 0 ? Bytes("no image") : Bytes("GIF89a");
  }
  if (random.Below(6) == 0) file.resize(1 + random.Below(file.size()));
  return Padded(file);
}

struct Outcome {
  std::vector<uint8_t> row;
  std::string error;
};

std::vector<Outcome> ApplyInterleaved(const std::vector<std::vector<uint8_t>>& samples) {
  std::vector<Outcome> outcomes(samples.size());
  std::map<uint32_t, int> finished;
  MemoryBudget budget(64 << 20);
  const auto workspace = ThePlan().MakeWorkspace(budget);
  StageTimes times;
  PlanRun run(ThePlan(), *workspace, times);
  size_t next = 0;
  const auto fill = [&] {
    for (; run.has_room() && next < samples.size(); ++next) {
      outcomes[next].row.resize(ThePlan().row_bytes());
      run.Begin({.tag = static_cast<uint32_t>(next),
                 .bytes = Unpadded(samples[next]),
                 .key = {1, 0, next},
                 .to = {.row = outcomes[next].row.data()}});
    }
  };
  for (fill(); run.busy(); fill()) {
    const std::optional<FinishedRows> rows = run.Advance();
    if (!rows) continue;
    EXPECT_EQ(finished[rows->tag]++, 0);
    if (!rows->status.ok()) outcomes[rows->tag].error = rows->status.error().ToString();
  }
  EXPECT_EQ(finished.size(), samples.size());
  return outcomes;
}

TEST(MixedFormats, RowsMatchTheReference) {
  std::vector<std::vector<uint8_t>> samples;
  for (int n = 0; n < testing::Effort(400); ++n)
    samples.push_back(MakeEncoded(static_cast<uint64_t>(n)));
  const std::vector<Outcome> outcomes = ApplyInterleaved(samples);
  size_t good = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    std::vector<uint8_t> wanted(ThePlan().row_bytes());
    const Status status = ApplyReference(ThePlan(), Unpadded(samples[i]), {1, 0, i}, wanted.data());
    ASSERT_EQ(outcomes[i].error, status.ok() ? "" : status.error().ToString()) << i;
    if (!status.ok()) continue;
    ASSERT_EQ(outcomes[i].row, wanted) << i;
    ++good;
  }
  EXPECT_GT(good, samples.size() / 2);
  EXPECT_LT(good, samples.size());
}

}  // namespace
}  // namespace stoker
