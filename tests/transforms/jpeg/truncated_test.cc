// DecodeLimits::accept_truncated: the existing part of a truncated file is decoded as by
// libjpeg-turbo with an end-of-image marker after it; nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/decode.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

constexpr DecodeLimits kAccepting{.accept_truncated = true};

size_t FirstScanData(const std::vector<uint8_t>& jpeg) {
  for (size_t i = 2; i + 3 < jpeg.size(); i += 2 + (size_t{jpeg[i + 2]} << 8 | jpeg[i + 3])) {
    if (jpeg[i + 1] == 0xDA) return i + 2 + (size_t{jpeg[i + 2]} << 8 | jpeg[i + 3]);
  }
  ADD_FAILURE() << "no scan";
  return jpeg.size();
}

// A segment that the end cuts counts as missing: the result is that of the bytes before it.
WholeImage Wanted(std::span<const uint8_t> cut) {
  for (size_t back = 0; back < 1000; ++back) {
    Result<WholeImage> whole = DecodeTruncated(cut.first(cut.size() - back));
    if (whole.ok()) return *std::move(whole);
  }
  ADD_FAILURE() << "libjpeg-turbo decodes nothing of " << cut.size() << " bytes";
  return {};
}

class TruncatedJpegTest : public ::testing::Test {
 protected:
  // Both paths, whole and in regions.
  void ExpectLibjpegs(std::span<const uint8_t> cut, RandomStream& random,
                      std::span<const uint8_t> crop_index = {}) {
    const std::vector<uint8_t> padded = Padded(cut);
    const WholeImage wanted = Wanted(cut);
    std::vector<Rect> regions = {{0, 0, wanted.size.width, wanted.size.height}};
    for (int i = 0; i < 3; ++i) regions.push_back(RandomRegion(wanted.size, random));
    for (JpegDecoder* decoder : {&fastest_, &libjpeg_}) {
      for (const Rect& region : regions) {
        const uint64_t before = decoder->paths().accepted_truncated;
        const Status status = DecodeAll(*decoder, padded, region, sink_, crop_index);
        ASSERT_TRUE(status.ok()) << cut.size() << ": " << status.error().ToString();
        ASSERT_EQ(Difference(sink_, region, wanted), "") << cut.size() << " " << Text(region);
        ASSERT_EQ(decoder->paths().accepted_truncated, before + 1) << cut.size();
      }
    }
  }

  JpegDecoder fastest_{kAccepting};
  JpegDecoder libjpeg_{kAccepting, nullptr, JpegDecoder::Backend::kLibjpegOnly};
  KeepRows sink_;
};

// Every kind, cut at every byte after the header of the first scan.
TEST_F(TruncatedJpegTest, EveryByteOfEveryKind) {
  RandomStream random({5, 0, 0}, 0);
  for (const JpegScans scans : {JpegScans::kOne, JpegScans::kOnePerComponent,
                                JpegScans::kProgressive, JpegScans::kCoarse}) {
    for (const bool arithmetic : {false, true}) {
      JpegOptions options{36, 20, JpegColor::kYCbCr, Luma(2, 2), scans, arithmetic};
      options.restart_interval = arithmetic ? 0 : 2;
      const std::vector<uint8_t> whole = MakeJpeg(options);
      for (size_t size = FirstScanData(whole) + 1; size < whole.size(); ++size) {
        SCOPED_TRACE(static_cast<int>(scans) * 2 + static_cast<int>(arithmetic));
        ExpectLibjpegs(std::span(whole).first(size), random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(TruncatedJpegTest, OtherColors) {
  RandomStream random({6, 0, 0}, 0);
  for (const JpegColor color :
       {JpegColor::kGray, JpegColor::kRgb, JpegColor::kCmyk, JpegColor::kYcck}) {
    const std::vector<uint8_t> whole = MakeJpeg({.width = 50, .height = 70, .color = color});
    for (size_t size = FirstScanData(whole) + 1; size < whole.size(); size += 7) {
      ExpectLibjpegs(std::span(whole).first(size), random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(TruncatedJpegTest, Photographs) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  for (size_t n = 0; n < paths.size(); n += std::max<size_t>(paths.size() / 8, 1)) {
    const std::vector<uint8_t> whole = ReadFile(paths[n]);
    const size_t begin = FirstScanData(whole) + 1;
    RandomStream random({7, 0, n}, 0);
    for (int i = 0; i < Effort(60); ++i) {
      SCOPED_TRACE(paths[n]);
      const size_t size = begin + random.Below(whole.size() - begin);
      ExpectLibjpegs(std::span(whole).first(size), random);
      if (HasFatalFailure()) return;
    }
  }
}

// An index of the whole photograph, which has been cut since.
TEST_F(TruncatedJpegTest, IndexesAreNotUsed) {
  const std::vector<uint8_t> whole = MakeJpeg({200, 150, JpegColor::kYCbCr, Luma(2, 2)});
  std::vector<uint8_t> index;
  const std::vector<uint8_t> padded = Padded(whole);
  ASSERT_EQ(jpeg::CropIndexMaker(2).Make(std::span(padded).first(whole.size()), index),
            Fallback::kNone);
  RandomStream random({8, 0, 0}, 0);
  for (size_t lost = 1; lost < whole.size() / 2; lost += 97) {
    ExpectLibjpegs(std::span(whole).first(whole.size() - lost), random, index);
  }
  EXPECT_EQ(fastest_.paths().indexed, 0u);
}

// Rows above the cut are those of the whole photograph: of a scan without its end marker, all.
TEST_F(TruncatedJpegTest, WhatIsThereIsThePhotograph) {
  const std::vector<uint8_t> whole = MakeJpeg({96, 200, JpegColor::kYCbCr, Luma(2, 2)});
  const WholeImage wanted = DecodeWhole(whole).value();
  const auto decode = [&](size_t size) {
    EXPECT_TRUE(DecodeAll(fastest_, Padded(std::span(whole).first(size)), {}, sink_).ok());
  };
  decode(whole.size() - 2);
  EXPECT_EQ(Difference(sink_, {0, 0, 96, 200}, wanted), "");
  decode(whole.size() / 2);
  EXPECT_TRUE(std::equal(sink_.Row(0), sink_.Row(64), wanted.pixels.begin()));
  EXPECT_THAT(std::vector<uint8_t>(sink_.Row(190), sink_.Row(191)), ::testing::Each(128));
}

TEST_F(TruncatedJpegTest, WithoutDataItIsAnErrorAsEver) {
  for (const JpegScans scans : {JpegScans::kOne, JpegScans::kProgressive}) {
    const std::vector<uint8_t> whole = MakeJpeg({40, 24, JpegColor::kYCbCr, Luma(2, 2), scans});
    for (size_t size = 2; size <= FirstScanData(whole); ++size) {
      for (JpegDecoder* decoder : {&fastest_, &libjpeg_}) {
        const Status status = DecodeAll(*decoder, Padded(std::span(whole).first(size)), {}, sink_);
        ASSERT_FALSE(status.ok()) << size;
        EXPECT_EQ(status.error().detail, Error::Detail::kTruncated) << size;
        EXPECT_EQ(status.error().offset, size);
        EXPECT_EQ(status.error().advice, "Remove or re-create the image");
      }
    }
  }
}

TEST_F(TruncatedJpegTest, TheDefaultIsStrictAndNamesTheOption) {
  JpegDecoder strict;
  std::vector<uint8_t> bytes = MakeJpeg();
  bytes.resize(bytes.size() * 3 / 4);
  const Status status = DecodeAll(strict, Padded(bytes), {0, 0, 1, 1}, sink_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().detail, Error::Detail::kTruncated);
  EXPECT_THAT(status.error().Advice(), HasSubstr("or use accept_truncated"));
  EXPECT_EQ(strict.paths().accepted_truncated, 0u);
}

// Damage before the end is an error whether or not the end is missing.
TEST_F(TruncatedJpegTest, DamageIsNotAccepted) {
  JpegOptions options{128, 128};
  options.restart_interval = 4;
  std::vector<uint8_t> bytes = MakeJpeg(options);
  const uint8_t marker[] = {0xFF, 0xD1};
  const auto at = std::search(bytes.begin(), bytes.end(), std::begin(marker), std::end(marker));
  ASSERT_NE(at, bytes.end());
  at[1] = 0xD5;
  for (const size_t lost : {size_t{0}, bytes.size() / 4}) {
    bytes.resize(bytes.size() - lost);
    for (JpegDecoder* decoder : {&fastest_, &libjpeg_}) {
      const Status status = DecodeAll(*decoder, Padded(bytes), {}, sink_);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().cause, "damaged JPEG: a restart marker is missing");
      EXPECT_EQ(decoder->paths().accepted_truncated, 0u);
    }
  }
}

// A file that says it is complete does not count, either.
TEST_F(TruncatedJpegTest, DataThatEndBeforeTheMarkerAreDamaged) {
  std::vector<uint8_t> bytes = MakeJpeg({128, 128});
  bytes.resize(bytes.size() * 3 / 4);
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  const Status status = DecodeAll(fastest_, Padded(bytes), {}, sink_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().cause, "damaged JPEG: the compressed data of a scan ends too early");
}

// A sound file, and one that lacks only the marker, are not counted.
TEST_F(TruncatedJpegTest, SoundFilesAreNotCounted) {
  const std::vector<uint8_t> whole = MakeJpeg({70, 50, JpegColor::kYCbCr, Luma(2, 2)});
  std::vector<uint8_t> zeros(whole.size());
  std::copy_n(whole.begin(), whole.size() - 2, zeros.begin());
  for (const std::vector<uint8_t>& bytes : {whole, zeros}) {
    ASSERT_TRUE(DecodeAll(fastest_, Padded(bytes), {}, sink_).ok());
  }
  EXPECT_EQ(fastest_.paths().accepted_truncated, 0u);
  EXPECT_EQ(fastest_.paths().no_end_marker, 1u);
  EXPECT_EQ(fastest_.paths().fast, 2u);
}

}  // namespace
}  // namespace stoker::testing
