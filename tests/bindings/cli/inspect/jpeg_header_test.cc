#include "bindings/cli/inspect/jpeg_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "bindings/cli/synth/photograph.h"
#include "core/memory/buffer.h"
#include "core/numbers/random.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "transforms/jpeg/decoder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

using Bytes = std::vector<uint8_t>;

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Bytes kStart = {0xFF, 0xD8};
const Bytes kScan = {0xFF, 0xDA, 0, 2};

Bytes Segment(uint8_t marker, const Bytes& content) {
  const size_t length = content.size() + 2;
  return Bytes{0xFF, marker, static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)} +
         content;
}

// 20 × 10 pixels.
Bytes Frame(uint8_t marker, const Bytes& sampling) {
  Bytes content = {8, 0, 10, 0, 20, static_cast<uint8_t>(sampling.size())};
  for (uint8_t factors : sampling) content = content + Bytes{1, factors, 0};
  return Segment(marker, content);
}

JpegDescription HeaderOf(const Bytes& bytes) {
  Result<JpegDescription> header = ReadJpegHeader(bytes);
  EXPECT_TRUE(header.ok()) << header.error().ToString();
  return header.ok() ? *header : JpegDescription{};
}

Error ErrorOf(const Bytes& bytes) {
  Result<JpegDescription> header = ReadJpegHeader(bytes);
  if (!header.ok()) {
    EXPECT_EQ(header.error().code, Code::kDataLoss);
    EXPECT_TRUE(header.error().offset.has_value());
    EXPECT_LE(header.error().offset.value_or(0), bytes.size());
    return header.error();
  }
  ADD_FAILURE() << "no error";
  return {};
}

// Reads a file that repeats `segment` without an end.
Error ErrorOfEndless(const Bytes& segment, uint64_t& furthest) {
  Bytes window;
  const ReadAt read = [&](uint64_t offset, size_t size) {
    furthest = std::max(furthest, offset);
    window.clear();
    for (uint64_t at = offset; at < offset + size; ++at) {
      window.push_back(at < 2 ? kStart[at] : segment[(at - 2) % segment.size()]);
    }
    return Result<std::span<const uint8_t>>(window);
  };
  const Result<JpegDescription> header = ReadJpegHeader(read);
  return header.ok() ? Error{Code::kCancelled, "no error"} : header.error();
}

TEST(JpegDescription, GivesUpOnEndlessHeaders) {
  uint64_t furthest = 0;
  EXPECT_EQ(ErrorOfEndless(Segment(0xFE, Bytes(65533)), furthest).cause,
            "JPEG whose header has more than 33554432 bytes");
  EXPECT_LE(furthest, (32u << 20) + 65537);
  furthest = 0;  // half of it lies between segments
  EXPECT_EQ(ErrorOfEndless(Segment(0xFE, Bytes(65533)) + Bytes(65537), furthest).cause,
            "damaged JPEG: more than 1048576 bytes of its header belong to no segment");
  EXPECT_LE(furthest, (2u << 20) + 200000);
}

TEST(JpegDescription, MatchesTheRecipeOfThePhotograph) {
  const char* const names[] = {"4:4:4", "4:2:0", "4:2:2", "4:4:0", "gray"};
  for (uint64_t i = 0; i < 40; ++i) {
    PhotographRecipe recipe = DrawPhotograph(2, i);
    recipe.width = 17 + static_cast<int>(i);
    recipe.height = 90 - static_cast<int>(i);
    recipe.chroma = static_cast<Chroma>(i % 5);
    recipe.progressive = i % 3 == 0;
    recipe.restart_rows = i % 4 == 0 ? 1 : 0;
    recipe.metadata_bytes = i % 7 == 0 ? 65000 : 0;
    recipe.orientation = 1 + static_cast<int>(i % 8);
    const JpegDescription header = HeaderOf(RenderPhotograph(recipe, 2, i));
    EXPECT_EQ(header.size, (ImageSize{recipe.width, recipe.height}));
    EXPECT_EQ(header.ChromaName(), names[i % 5]);
    EXPECT_EQ(header.progressive(), recipe.progressive);
    EXPECT_EQ(header.restart_interval > 0, recipe.restart_rows > 0);
    EXPECT_EQ(static_cast<int>(header.orientation), recipe.orientation);
    EXPECT_EQ(header.precision, 8);
  }
}

TEST(JpegDescription, NamesChromaSubsampling) {
  const auto name = [](const Bytes& sampling) {
    return HeaderOf(kStart + Frame(0xC0, sampling) + kScan).ChromaName();
  };
  EXPECT_EQ(name({0x11}), "gray");
  EXPECT_EQ(name({0x22}), "gray");
  EXPECT_EQ(name({0x22, 0x22, 0x22}), "4:4:4");
  EXPECT_EQ(name({0x41, 0x11, 0x11}), "4:1:1");
  EXPECT_EQ(name({0x42, 0x11, 0x11}), "4:1:0");
  EXPECT_EQ(name({0x11, 0x11, 0x11, 0x11}), "CMYK");
  EXPECT_EQ(name({0x21, 0x12, 0x11}), "2x1,1x2,1x1");
  EXPECT_EQ(name({0x11, 0x22, 0x22}), "1x1,2x2,2x2");
  EXPECT_EQ(name({0x11, 0x11}), "1x1,1x1");
  const Bytes adobe = {'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 2};
  EXPECT_EQ(HeaderOf(kStart + Segment(0xEE, adobe) + Frame(0xC0, {0x11, 0x11, 0x11, 0x11}) + kScan)
                .ChromaName(),
            "YCCK");
}

TEST(JpegDescription, DistinguishesKindsOfFrames) {
  const auto header = [](uint8_t m) { return HeaderOf(kStart + Frame(m, {0x11}) + kScan); };
  EXPECT_FALSE(header(0xC0).progressive());
  EXPECT_TRUE(header(0xC2).progressive());
  EXPECT_TRUE(header(0xC9).arithmetic());
  EXPECT_TRUE(header(0xCA).progressive());
  EXPECT_TRUE(header(0xC3).lossless());
  EXPECT_FALSE(header(0xC1).lossless());
}

TEST(JpegDescription, SkipsWhatDecodersSkip) {
  const Bytes frame = Frame(0xC0, {0x11});
  EXPECT_EQ(HeaderOf(kStart + Bytes{1, 2, 3, 0xFF, 0, 0xFF, 0xFF, 0xFF} + frame + kScan).size.width,
            20);
  EXPECT_EQ(HeaderOf(kStart + Bytes{0xFF, 0xD0, 0xFF, 0x01} + frame + kScan).size.width, 20);
  EXPECT_EQ(HeaderOf(kStart + Segment(0xE2, Bytes(65533)) + frame + kScan).size.width, 20);
  // An interval may be given anywhere before the scan; the last one counts.
  EXPECT_EQ(HeaderOf(kStart + Segment(0xDD, {0, 9}) + frame + Segment(0xDD, {1, 2}) + kScan)
                .restart_interval,
            258);
}

TEST(JpegDescription, ErrorsSayWhatAndWhere) {
  const Bytes frame = Frame(0xC0, {0x11});
  EXPECT_THAT(ErrorOf({}).cause, HasSubstr("not a JPEG"));
  EXPECT_THAT(ErrorOf({'P', 'N'}).cause, HasSubstr("not a JPEG"));
  EXPECT_THAT(ErrorOf(kStart).cause, HasSubstr("truncated"));
  EXPECT_EQ(ErrorOf(kStart).offset, 2u);
  EXPECT_THAT(ErrorOf(kStart + kScan).cause, HasSubstr("scan before any frame"));
  EXPECT_THAT(ErrorOf(kStart + frame + frame).cause, HasSubstr("two frames"));
  EXPECT_EQ(ErrorOf(kStart + frame + frame).offset, 2 + frame.size());
  EXPECT_THAT(ErrorOf(kStart + frame + Bytes{0xFF, 0xD9}).cause, HasSubstr("0xD9"));
  EXPECT_THAT(ErrorOf(kStart + Bytes{0xFF, 0xE0, 0, 1}).cause, HasSubstr("shorter"));
  EXPECT_THAT(ErrorOf(kStart + Segment(0xC0, {8, 0, 0, 0, 20, 1, 1, 0x11, 0})).cause,
              HasSubstr("20 × 0 pixels"));
  EXPECT_THAT(ErrorOf(kStart + Segment(0xC0, {8, 0, 1, 0, 20, 0})).cause, HasSubstr("components"));
  EXPECT_THAT(ErrorOf(kStart + Segment(0xC0, {8, 0, 1, 0, 20, 5})).cause, HasSubstr("components"));
  EXPECT_THAT(ErrorOf(kStart + Segment(0xC0, {8, 0})).cause, HasSubstr("too short"));
  EXPECT_THAT(ErrorOf(kStart + Frame(0xC0, {0x05})).cause, HasSubstr("0x05"));
}

TEST(JpegDescription, EveryTruncationIsAnErrorWithItsOffset) {
  PhotographRecipe recipe{.width = 40, .height = 30, .orientation = 6, .metadata_bytes = 100};
  const Bytes whole = RenderPhotograph(recipe, 1, 1);
  size_t header_end = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const Result<JpegDescription> header = ReadJpegHeader(cut);
    if (header.ok()) {
      header_end = header_end == 0 ? size : header_end;
      EXPECT_EQ(header->size, (ImageSize{40, 30}));
      continue;
    }
    ASSERT_EQ(header_end, 0u) << size;
    EXPECT_LE(header.error().offset, size);
    EXPECT_THAT(header.error().cause, HasSubstr(size < 2 ? "not a JPEG" : "truncated"));
  }
  EXPECT_GT(header_end, 300u);
}

TEST(JpegDescription, RandomDamageReadsABoundedNumberOfBytes) {
  RandomStream random({1, 2, 3}, 0);
  const Bytes whole = RenderPhotograph({.width = 40, .height = 30, .orientation = 6}, 1, 1);
  for (uint64_t round = 0; round < 3000; ++round) {
    RandomStream draw({1, 2, round}, 0);
    Bytes bytes(whole.begin(), whole.begin() + 700);
    for (uint64_t n = 1 + draw.Below(8); n > 0; --n) {
      bytes[2 + draw.Below(bytes.size() - 2)] = static_cast<uint8_t>(draw.Below(256));
    }
    uint64_t asked = 0;
    const Result<JpegDescription> header =
        ReadJpegHeader([&](uint64_t offset, size_t size) -> Result<std::span<const uint8_t>> {
          const size_t begin = std::min<size_t>(offset, bytes.size());
          ++asked;
          return std::span<const uint8_t>(bytes).subspan(begin,
                                                         std::min(size, bytes.size() - begin));
        });
    EXPECT_LE(asked, 2 * bytes.size());
    if (header.ok()) {
      EXPECT_GE(header->size.width, 1);
      EXPECT_FALSE(header->ChromaName().empty());
    }
  }
}

TEST(JpegDescription, PropagatesReadErrors) {
  const Result<JpegDescription> header =
      ReadJpegHeader([](uint64_t, size_t) -> Result<std::span<const uint8_t>> {
        return Error{Code::kUnavailable, "disk on fire"};
      });
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().cause, "disk on fire");
}

// The reference is the decoder's own reading of the header.
void ExpectSameAsDecoder(Bytes bytes, const std::string& name) {
  const JpegDescription header = HeaderOf(bytes);
  const size_t size = bytes.size();
  bytes.resize(size + kBufferPadding);
  JpegDecoder decoder;
  const Result<ImageInfo> info = decoder.Open({bytes.data(), size});
  ASSERT_TRUE(info.ok()) << name << " " << info.error().ToString();
  EXPECT_EQ(header.size, info->size) << name;
  EXPECT_EQ(header.orientation, info->orientation) << name;
  EXPECT_EQ(header.components, info->components) << name;
  EXPECT_EQ(header.progressive(), info->progressive) << name;
  if (info->components == 3) {
    EXPECT_EQ(header.columns[0] / header.columns[1], info->chroma_columns) << name;
    EXPECT_EQ(header.rows[0] / header.rows[1], info->chroma_rows) << name;
  }
}

TEST(JpegDescription, AgreesWithTheDecoderOnPhotographs) {
  const auto photos = testing::Photos();
  if (photos.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no folder of photographs";
  for (const auto& path : photos) ExpectSameAsDecoder(testing::ReadFile(path), path.string());
}

TEST(JpegDescription, AgreesWithTheDecoderOnSyntheticPhotographs) {
  for (uint64_t i = 0; i < 30; ++i) {
    PhotographRecipe recipe = DrawPhotograph(4, i);
    recipe.width = 33;
    recipe.height = 21;
    recipe.progressive = i % 2 == 0;
    recipe.orientation = 1 + static_cast<int>(i % 8);
    const Bytes photograph = RenderPhotograph(recipe, 4, i);
    ExpectSameAsDecoder(photograph, std::to_string(i));
    const Bytes empty_exif = {0xFF, 0xE1, 0, 8, 'E', 'x', 'i', 'f', 0, 0};
    ExpectSameAsDecoder(testing::WithSegment(photograph, empty_exif), std::to_string(i));
  }
}

}  // namespace
}  // namespace stoker
