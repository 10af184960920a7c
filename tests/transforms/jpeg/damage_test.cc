// Damaged, foreign or hostile bytes give an error with an offset, or pixels; never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/transforms/jpeg/decode.h"

namespace stoker::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kTruncated[] = "truncated JPEG: no end-of-image marker";

Error ErrorOf(std::span<const uint8_t> bytes, const DecodeLimits& limits = {}, Rect region = {}) {
  JpegDecoder decoder(limits);
  KeepRows sink;
  Status status = DecodeAll(decoder, Padded(bytes), region, sink);
  if (status.ok()) return Error{Code::kCancelled, "no error"};
  return std::move(status).error();
}

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

// Returns the first marker with this second byte; its payload's length is after it.
size_t Find(const std::vector<uint8_t>& jpeg, uint8_t marker, size_t from = 0) {
  for (size_t i = from; i + 1 < jpeg.size(); ++i) {
    if (jpeg[i] == 0xFF && jpeg[i + 1] == marker) return i;
  }
  ADD_FAILURE() << "no marker " << int{marker};
  return 0;
}

int64_t PeakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(JpegDamage, RefusesOtherBytes) {
  for (const char* bytes :
       {"", "This is not an image at all, but text named .jpg\n", "\x89PNG\r\n\x1A\n and so on"}) {
    const Error error = ErrorOf(Bytes(bytes));
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_EQ(error.cause, "not a JPEG");
    EXPECT_EQ(error.offset, 0u);
  }
}

TEST(JpegDamage, RefusesTruncationAtEveryByte) {
  for (const JpegScans scans : {JpegScans::kOne, JpegScans::kProgressive}) {
    JpegOptions options{40, 24, JpegColor::kYCbCr, Luma(2, 2), scans};
    options.orientation = 6;
    options.restart_interval = 1;
    const std::vector<uint8_t> bytes = MakeJpeg(options);
    ASSERT_EQ(ErrorOf(bytes).cause, "no error");
    for (size_t size = 2; size < bytes.size(); ++size) {
      const auto part = std::span(bytes).first(size);
      const Error error = ErrorOf(part, {}, {0, 0, 1, 1});
      ASSERT_EQ(error.code, Code::kDataLoss) << size;
      ASSERT_EQ(error.cause, kTruncated) << size;
      ASSERT_EQ(error.offset, size);
    }
  }
}

TEST(JpegDamage, IgnoresTheEndMarkerOfAThumbnail) {
  const std::vector<uint8_t> thumbnail = MakeJpeg({16, 16});
  std::vector<uint8_t> segment = {0xFF, 0xE1, 0, 0};
  for (const uint8_t byte : thumbnail) segment.push_back(byte);
  segment[2] = static_cast<uint8_t>((segment.size() - 2) >> 8);
  segment[3] = static_cast<uint8_t>(segment.size() - 2);
  std::vector<uint8_t> bytes = WithSegment(MakeJpeg(), segment);
  EXPECT_EQ(ErrorOf(bytes).cause, "no error");
  bytes.resize(bytes.size() - 2);
  EXPECT_EQ(ErrorOf(bytes).cause, kTruncated);
  bytes.resize(bytes.size() - 8);
  EXPECT_EQ(ErrorOf(bytes).cause, kTruncated);
  for (int i = 0; i < 4096; ++i) bytes.push_back(0);  // as after a crash of the file system
  EXPECT_EQ(ErrorOf(bytes).cause, kTruncated);
}

// Reduced images, too: the fast decoder accepts what libjpeg-turbo accepts, with the same pixels
// and errors.
TEST(JpegDamage, ReducedImagesAreThoseOfLibjpeg) {
  JpegDecoder fastest, libjpeg({}, nullptr, JpegDecoder::Backend::kLibjpegOnly);
  int accepted = 0, refused = 0;
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(600)); ++n) {
    RandomStream random({13, 0, n}, 0);
    JpegOptions options{71, 93, JpegColor::kYCbCr, Luma(1 + n % 2, 1 + n / 2 % 2)};
    options.seed = n;
    options.restart_interval = n % 5 == 0 ? 3 : 0;
    std::vector<uint8_t> bytes = MakeJpeg(options);
    const size_t scan = Find(bytes, 0xDA);
    for (uint64_t changes = 1 + random.Below(30); changes > 0; --changes) {
      bytes[scan + random.Below(bytes.size() - scan - 2)] = static_cast<uint8_t>(random.Below(256));
    }
    const std::vector<uint8_t> padded = Padded(bytes);
    const Result<ImageInfo> info = OpenPadded(fastest, padded);
    if (!info.ok()) continue;
    for (Reduction reduction = 2; reduction <= MaxReduction(*info); reduction *= 2) {
      const Rect region = RandomRegion(Reduced(info->size, reduction), random);
      KeepRows want, got;
      const Status wanted = DecodeAll(libjpeg, padded, region, want, {}, reduction);
      const Status status = DecodeAll(fastest, padded, region, got, {}, reduction);
      ASSERT_EQ(status.ok(), wanted.ok()) << n << " / " << reduction << " " << Text(region);
      ++(wanted.ok() ? accepted : refused);
      if (!wanted.ok()) {
        ASSERT_EQ(status.error().ToString(), wanted.error().ToString()) << n;
        continue;
      }
      for (int y = 0; y < region.height; ++y) {
        const auto row = [&](const KeepRows& rows) {
          return rows.Row(y) + (region.x - rows.region().covered.x) * 3;
        };
        ASSERT_EQ(std::memcmp(row(got), row(want), static_cast<size_t>(region.width) * 3), 0)
            << n << " / " << reduction << " " << Text(region);
      }
    }
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(refused, 10);
}

// Returns the bytes with zeros instead of the last `lost` bytes.
std::vector<uint8_t> WithZeros(const std::vector<uint8_t>& jpeg, size_t lost, size_t zeros) {
  std::vector<uint8_t> bytes(jpeg.size() - lost + zeros);
  std::copy_n(jpeg.begin(), jpeg.size() - lost, bytes.begin());
  return bytes;
}

// Every decoder accepts zeros instead of the end-of-image marker, for any region.
TEST(JpegDamage, AcceptsZerosInPlaceOfTheEndMarker) {
  for (const JpegOptions& options :
       {JpegOptions{70, 50, JpegColor::kYCbCr, Luma(2, 2)}, JpegOptions{64, 48},
        JpegOptions{50, 70, JpegColor::kGray},
        JpegOptions{.width = 90, .height = 70, .restart_interval = 3}}) {
    const std::vector<uint8_t> whole = MakeJpeg(options);
    const WholeImage wanted = DecodeWhole(whole).value();
    for (const size_t zeros : {2, 3, 100, 5000}) {
      const std::vector<uint8_t> bytes = WithZeros(whole, 2, zeros);
      const Result<WholeImage> reference = DecodeWhole(bytes);
      ASSERT_TRUE(reference.ok()) << zeros;
      EXPECT_EQ(reference->pixels, wanted.pixels);
      for (const auto backend :
           {JpegDecoder::Backend::kFastest, JpegDecoder::Backend::kLibjpegOnly}) {
        JpegDecoder decoder({}, nullptr, backend);
        KeepRows sink;
        for (const Rect& region : EdgeRegions(wanted.size)) {
          ASSERT_TRUE(DecodeAll(decoder, Padded(bytes), region, sink).ok()) << zeros;
          ASSERT_EQ(Difference(sink, region, wanted), "");
        }
        EXPECT_EQ(decoder.paths().no_end_marker, EdgeRegions(wanted.size).size());
        ASSERT_TRUE(DecodeAll(decoder, Padded(whole), {}, sink).ok());
        EXPECT_EQ(decoder.paths().no_end_marker, EdgeRegions(wanted.size).size()) << "of others";
      }
    }
  }
}

// Data may end in a stuffed zero, after 0xFF, or in a zero of coded bits, which cannot be told from
// the zeros after it.
TEST(JpegDamage, AcceptsZerosAfterDataThatEndInZero) {
  const auto find = [](JpegOptions options, bool stuffed) {
    for (options.seed = 1; options.seed <= 5000; ++options.seed) {
      std::vector<uint8_t> whole = MakeJpeg(options);
      const size_t end = whole.size() - 2;  // of the data
      if (whole[end - 1] == 0 && (whole[end - 2] == 0xFF) == stuffed) return whole;
    }
    ADD_FAILURE() << "none of the seeds";
    return MakeJpeg(options);
  };
  // Only data of a block's last coefficient end in ones.
  const JpegOptions fine{.width = 8, .height = 8, .color = JpegColor::kGray, .quality = 100};
  EXPECT_EQ(ErrorOf(WithZeros(find(fine, true), 2, 100)).cause, "no error");
  const JpegOptions coarse{.width = 8, .height = 8, .quality = 8};
  EXPECT_EQ(ErrorOf(WithZeros(find(coarse, false), 2, 100)).cause, kTruncated);
}

// Zeros are valid codes, so truncated data filled up with zeros parse to the end; they are refused
// nevertheless.
TEST(JpegDamage, RefusesTruncatedDataFilledWithZeros) {
  for (const int restart_interval : {0, 3}) {
    JpegOptions options{128, 96, JpegColor::kYCbCr, Luma(2, 2)};
    options.restart_interval = restart_interval;
    const std::vector<uint8_t> whole = MakeJpeg(options);
    for (size_t lost = 4; lost < whole.size() / 2; lost += lost < 60 ? 1 : 37) {
      const std::vector<uint8_t> bytes = WithZeros(whole, lost, 20000);
      for (const Rect region : {Rect{}, Rect{0, 0, 1, 1}}) {
        ASSERT_EQ(ErrorOf(bytes, {}, region).cause, kTruncated) << lost;
      }
    }
  }
  // In other files missing data cannot be distinguished from data that never existed.
  for (const JpegScans scans : {JpegScans::kProgressive, JpegScans::kOnePerComponent}) {
    const auto whole = MakeJpeg({64, 48, JpegColor::kYCbCr, Luma(2, 2), scans});
    EXPECT_EQ(ErrorOf(WithZeros(whole, 2, 1000)).cause, kTruncated);
  }
  // Other bytes in its place are no reason to guess, either.
  const std::vector<uint8_t> whole = MakeJpeg();
  EXPECT_EQ(ErrorOf(WithZeros(whole, 2, 1)).cause, kTruncated);
  for (const std::string_view behind : {"\xFF", "\xFF\xFF\xFF", "text", "\1"}) {
    std::vector<uint8_t> bytes = WithZeros(whole, 2, 10);
    std::copy(behind.begin(), behind.end(), bytes.end() - static_cast<ptrdiff_t>(behind.size()));
    EXPECT_EQ(ErrorOf(bytes).cause, kTruncated) << behind.size();
  }
}

TEST(JpegDamage, ReferenceAgreesOnTruncatedInput) {
  for (const bool arithmetic : {false, true}) {
    const std::vector<uint8_t> whole =
        MakeJpeg({128, 96, JpegColor::kYCbCr, Luma(2, 2), JpegScans::kOne, arithmetic});
    const size_t scan = Find(whole, 0xDA);
    for (const size_t size : {scan / 2, scan, (scan + whole.size()) / 2}) {
      const Result<WholeImage> reference = DecodeWhole(std::span(whole).first(size));
      ASSERT_FALSE(reference.ok()) << size;
      EXPECT_EQ(reference.error().code, Code::kDataLoss);
      if (size <= scan || arithmetic) {
        EXPECT_EQ(reference.error().cause, kTruncated) << size;
      }
    }
  }
}

TEST(JpegDamage, AcceptsBytesAfterTheEndAndBeforeMarkers) {
  std::vector<uint8_t> bytes = MakeJpeg();
  const size_t table = Find(bytes, 0xDB);
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(table), {1, 2, 3});
  bytes.insert(bytes.end() - 2, {0, 0, 7});
  for (int i = 0; i < 1000; ++i) bytes.push_back(static_cast<uint8_t>(i * 0xD9));
  EXPECT_EQ(ErrorOf(bytes).cause, "no error");
}

TEST(JpegDamage, AcceptsUnknownVersions) {
  std::vector<uint8_t> bytes = MakeJpeg();
  bytes[Find(bytes, 0xE0) + 9] = 7;  // JFIF 7.01
  EXPECT_EQ(ErrorOf(bytes).cause, "no error");
}

TEST(JpegDamage, RefusesAScanThatEndsEarly) {
  std::vector<uint8_t> bytes = MakeJpeg({128, 128});
  const size_t middle = bytes.size() * 3 / 4;
  bytes.resize(middle);
  bytes.push_back(0xFF);
  bytes.push_back(0xD9);
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.cause, "damaged JPEG: the compressed data of a scan ends too early");
  EXPECT_GE(error.offset, middle - 64);
  EXPECT_LE(error.offset, bytes.size());
  // Complete rows can be decoded: damage after them goes unnoticed.
  EXPECT_EQ(ErrorOf(bytes, {}, {0, 0, 128, 16}).cause, "no error");
}

TEST(JpegDamage, RefusesAMissingRestartMarker) {
  JpegOptions options{128, 128};
  options.restart_interval = 4;
  std::vector<uint8_t> bytes = MakeJpeg(options);
  const size_t marker = Find(bytes, 0xD1);
  bytes[marker + 1] = 0xD5;
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.cause, "damaged JPEG: a restart marker is missing");
  EXPECT_NEAR(static_cast<double>(*error.offset), static_cast<double>(marker), 4);
}

// libjpeg-turbo looks for such codes near the end of the data only: this image is all near the end.
TEST(JpegDamage, RefusesAnInvalidHuffmanCode) {
  std::vector<uint8_t> bytes = MakeJpeg({32, 32});
  const size_t scan = Find(bytes, 0xDA) + 50;
  for (size_t i = scan; i < scan + 20; i += 2) {
    bytes[i] = 0xFF;  // ones, stuffed: the standard's tables have no such code
    bytes[i + 1] = 0;
  }
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.cause, "damaged JPEG: invalid Huffman code");
  EXPECT_GE(error.offset, scan);
}

TEST(JpegDamage, RefusesMissingTables) {
  std::vector<uint8_t> bytes = MakeJpeg();
  bytes[Find(bytes, 0xDB) + 1] = 0xFE;  // the first quantisation table becomes a comment
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_THAT(error.cause, HasSubstr("uantization table"));
}

TEST(JpegDamage, RefusesAMissingScan) {
  JpegOptions options;
  options.scans = JpegScans::kOnePerComponent;
  std::vector<uint8_t> bytes = MakeJpeg(options);
  const size_t second = Find(bytes, 0xDA, Find(bytes, 0xDA) + 2);
  const size_t third = Find(bytes, 0xDA, second + 2);
  bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(second),
              bytes.begin() + static_cast<ptrdiff_t>(third));
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.cause, "damaged JPEG: a colour component has no scan");
}

TEST(JpegDamage, RefusesZeroSizes) {
  for (const ImageSize size : {ImageSize{0, 48}, ImageSize{64, 0}, ImageSize{0, 0}}) {
    std::vector<uint8_t> bytes = MakeJpeg();
    SetJpegSize(bytes, size.width, size.height);
    const Error error = ErrorOf(bytes);
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_EQ(error.cause, "damaged JPEG: its width or height is zero");
    EXPECT_TRUE(error.offset.has_value());
  }
}

// Each byte of small files is changed in several ways (in one, and another for the next byte, where
// Effort is less than full). Decoding ends, and errors have an offset.
TEST(JpegDamage, EveryChangedByteGivesPixelsOrAnErrorWithAnOffset) {
  JpegDecoder decoder({1 << 22, 50});
  KeepRows sink;
  for (const JpegScans scans :
       {JpegScans::kOne, JpegScans::kProgressive, JpegScans::kOnePerComponent}) {
    for (const bool arithmetic : {false, true}) {
      JpegOptions options{33, 20, JpegColor::kYCbCr, Luma(2, 2), scans, arithmetic};
      options.orientation = 3;
      options.restart_interval = 2;
      const std::vector<uint8_t> good = Padded(MakeJpeg(options));
      for (size_t i = 0; i < good.size() - kBufferPadding; ++i) {
        for (int backend = 0; backend < Effort(4); ++backend) {
          constexpr uint8_t kChanges[] = {0x01, 0x10, 0x80, 0xFF};
          std::vector<uint8_t> bytes = good;
          bytes[i] ^= kChanges[(i + static_cast<size_t>(backend)) % 4];
          const Status status = DecodeAll(decoder, bytes, {}, sink);
          if (status.ok()) continue;
          ASSERT_TRUE(status.error().offset.has_value()) << i;
          ASSERT_LE(*status.error().offset, good.size() - kBufferPadding) << i;
          ASSERT_FALSE(status.error().cause.empty());
        }
      }
      // The decoder is not affected by it.
      ASSERT_TRUE(DecodeAll(decoder, good, {}, sink).ok());
    }
  }
}

TEST(JpegDamage, UnsupportedKindsAreUnimplemented) {
  std::vector<uint8_t> lossless = MakeJpeg();
  lossless[Find(lossless, 0xC0) + 1] = 0xC3;
  EXPECT_EQ(ErrorOf(lossless).code, Code::kUnimplemented);

  std::vector<uint8_t> deep = MakeJpeg();
  deep[Find(deep, 0xC0) + 4] = 12;  // bits a sample
  EXPECT_EQ(ErrorOf(deep).code, Code::kUnimplemented);

  std::vector<uint8_t> fractional = MakeJpeg();
  const size_t frame = Find(fractional, 0xC0);
  fractional[frame + 11] = 0x31;  // 3 × 1 …
  fractional[frame + 14] = 0x21;  // … and 2 × 1
  EXPECT_EQ(ErrorOf(fractional).code, Code::kUnimplemented);
}

TEST(JpegLimits, HugeHeaderAllocatesNothing) {
  for (const bool progressive : {false, true}) {
    for (const int side : {65500, 16000}) {
      JpegOptions options{8, 8};
      if (progressive) options.scans = JpegScans::kProgressive;
      std::vector<uint8_t> bytes = MakeJpeg(options);
      SetJpegSize(bytes, side, side, progressive ? 0xC2 : 0xC0);
      const int64_t before = PeakKilobytes();
      const Error error = ErrorOf(bytes);
      EXPECT_LT(PeakKilobytes() - before, 4096);
      EXPECT_TRUE(error.offset.has_value());
      if (side == 65500) {
        EXPECT_EQ(error.code, Code::kResourceExhausted);
        EXPECT_EQ(error.detail, Error::Detail::kOverLimits);
        EXPECT_THAT(error.cause, HasSubstr("65500 × 65500 pixels"));
        EXPECT_THAT(error.Advice(), HasSubstr("max_pixels"));
      } else if (!progressive) {
        EXPECT_EQ(error.code, Code::kDataLoss);
        EXPECT_EQ(error.detail, Error::Detail::kNone) << "nobody knows that its end is missing";
        EXPECT_THAT(error.cause, HasSubstr("cannot hold an image of 16000 × 16000 pixels"));
      } else {
        EXPECT_EQ(error.code, Code::kResourceExhausted);
        EXPECT_EQ(error.detail, Error::Detail::kOverLimits);
        EXPECT_THAT(error.cause, HasSubstr("more than the limit of 1073741824"));
        EXPECT_THAT(error.Advice(), HasSubstr("raise max_pixels"));
      }
    }
  }
}

TEST(JpegLimits, PixelLimitIsExact) {
  const std::vector<uint8_t> bytes = MakeJpeg({30, 20});
  DecodeLimits limits;
  limits.max_pixels = 600;
  EXPECT_EQ(ErrorOf(bytes, limits).cause, "no error");
  limits.max_pixels = 599;
  EXPECT_EQ(ErrorOf(bytes, limits).code, Code::kResourceExhausted);
}

TEST(JpegLimits, LimitScans) {
  JpegOptions options{16, 16};
  options.scans = JpegScans::kMany;
  const std::vector<uint8_t> bytes = MakeJpeg(options);
  const Error error = ErrorOf(bytes);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(error.detail, Error::Detail::kOverLimits);
  EXPECT_EQ(error.cause, "more than 200 scans in a JPEG of this size");
  EXPECT_LT(error.offset, bytes.size() / 2);
  DecodeLimits limits;
  limits.max_scans = 1135;  // 1 + 3 × 63 × 6
  EXPECT_EQ(ErrorOf(bytes, limits).cause, "no error");
  limits.max_scans = 1134;
  EXPECT_EQ(ErrorOf(bytes, limits).code, Code::kResourceExhausted);
}

TEST(JpegLimits, LimitScansOfLargeImagesByPixels) {
  JpegOptions options{16, 16};
  options.sampling = Luma(2, 2);
  options.scans = JpegScans::kMany;
  const std::vector<uint8_t> many = MakeJpeg(options);
  DecodeLimits limits;
  limits.max_scans = 1135;
  limits.max_pixels = 16 * 16;
  Error error = ErrorOf(many, limits);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_EQ(error.cause, "more than 16 scans in a JPEG of this size");
  EXPECT_THAT(error.Advice(), HasSubstr("max_pixels"));
  limits.max_pixels = 16 * 16 * 1134 / 16;  // as the advice says, and not enough
  EXPECT_EQ(ErrorOf(many, limits).cause, "more than 1134 scans in a JPEG of this size");
  limits.max_pixels = 16 * 16 * 1136 / 16;
  EXPECT_EQ(ErrorOf(many, limits).cause, "no error");
  // Common progressive files, and sequential ones with a scan for each component, are never too
  // much.
  limits.max_pixels = 16 * 16;
  for (const JpegScans scans : {JpegScans::kProgressive, JpegScans::kOnePerComponent}) {
    options.scans = scans;
    EXPECT_EQ(ErrorOf(MakeJpeg(options), limits).cause, "no error");
  }
}

TEST(JpegLimits, LimitCoefficientsByPixels) {
  JpegOptions options{64, 64};
  options.scans = JpegScans::kProgressive;
  const std::vector<uint8_t> bytes = MakeJpeg(options);  // 4:4:4: 6 bytes a pixel
  DecodeLimits limits;
  limits.max_pixels = 64 * 64 * 6 / 4 - 1;
  const Error error = ErrorOf(bytes, limits);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.cause, HasSubstr("needs 24576 bytes to decode"));
  EXPECT_THAT(error.Advice(), HasSubstr("raise max_pixels"));
  ++limits.max_pixels;
  EXPECT_EQ(ErrorOf(bytes, limits).cause, "no error");
}

TEST(JpegLimits, MayBeUnlimited) {
  const DecodeLimits none{.max_pixels = std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(none.ScansOf({65535, 65535}), 16);
  EXPECT_EQ(none.CoefficientBytes(), int64_t{65535} * 65535 * 4);
  EXPECT_EQ(ErrorOf(MakeJpeg({30, 20}), none).cause, "no error");
}

// Counts all memory of libjpeg-turbo: that of a whole image's coefficients, and the rest.
TEST(JpegLimits, LibjpegsCoefficientsAreChargedToTheBudget) {
  JpegOptions options{64, 64};
  options.scans = JpegScans::kProgressive;
  options.arithmetic = true;
  const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
  KeepRows sink;
  MemoryBudget plenty(uint64_t{1} << 30);
  JpegDecoder rich({}, &plenty);
  EXPECT_TRUE(DecodeAll(rich, bytes, {}, sink).ok());
  const uint64_t needed = plenty.peak();
  EXPECT_GE(needed, 64u * 64 * 3 * 2);
  EXPECT_EQ(plenty.used(), 0u);
  MemoryBudget enough(needed);
  JpegDecoder decoder({}, &enough);
  EXPECT_TRUE(DecodeAll(decoder, bytes, {}, sink).ok());
  MemoryBudget little(needed - 1);
  JpegDecoder poor({}, &little);
  const Status status = DecodeAll(poor, bytes, {}, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_EQ(little.used(), 0u);
  // A single scan needs none.
  EXPECT_TRUE(DecodeAll(poor, Padded(MakeJpeg()), {}, sink).ok());
}

// The fast decoder keeps the memory of small images for the next one, and returns that of others.
TEST(JpegLimits, CoefficientsAreChargedToTheBudget) {
  JpegOptions options{1500, 1200};
  options.scans = JpegScans::kProgressive;
  const std::vector<uint8_t> large = Padded(MakeJpeg(options));
  options.width = options.height = 64;
  const std::vector<uint8_t> small = Padded(MakeJpeg(options));
  KeepRows sink;
  MemoryBudget plenty(uint64_t{1} << 30);
  JpegDecoder rich({}, &plenty);
  EXPECT_TRUE(DecodeAll(rich, small, {}, sink).ok());
  EXPECT_EQ(plenty.used(), plenty.peak());
  EXPECT_TRUE(DecodeAll(rich, large, {}, sink).ok());
  const uint64_t needed = plenty.peak();
  EXPECT_GE(needed, uint64_t{1500} * 1200 * 3 * 2);
  EXPECT_LT(plenty.used(), uint64_t{1} << 20);
  EXPECT_TRUE(DecodeAll(rich, large, {0, 0, 600, 500}, sink).ok());
  EXPECT_LT(plenty.used(), uint64_t{5} << 18);  // 1 MiB, and rows of samples
  MemoryBudget enough(needed), little(needed - 1);
  JpegDecoder decoder({}, &enough), poor({}, &little);
  EXPECT_TRUE(DecodeAll(decoder, large, {}, sink).ok());
  const Status status = DecodeAll(poor, large, {}, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_GT(status.error().wanted_bytes, 0u);
  EXPECT_THAT(status.error().Advice(), HasSubstr("baseline"));
  EXPECT_LT(little.used(), uint64_t{1} << 20);
  EXPECT_TRUE(DecodeAll(poor, small, {}, sink).ok());
  EXPECT_EQ(poor.paths().fast, 1u);
}

TEST(JpegDecoder, RefusesMisuse) {
  JpegDecoder decoder;
  KeepRows sink;
  Status status = decoder.Decode({0, 0, 1, 1}, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kFailedPrecondition);
  const std::vector<uint8_t> bytes = Padded(MakeJpeg({30, 20}));
  for (const Rect region : {Rect{0, 0, 31, 20}, Rect{0, 0, 30, 21}, Rect{-1, 0, 2, 2},
                            Rect{0, -1, 2, 2}, Rect{0, 0, 0, 5}, Rect{0, 0, 5, 0},
                            Rect{30, 0, 1, 1}, Rect{1, 1, 2147483647, 2147483647}}) {
    ASSERT_TRUE(OpenPadded(decoder, bytes).ok());
    status = decoder.Decode(region, sink);
    ASSERT_FALSE(status.ok()) << Text(region);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
  ASSERT_TRUE(OpenPadded(decoder, bytes).ok());
  EXPECT_TRUE(decoder.Decode({0, 0, 30, 20}, sink).ok());
  EXPECT_FALSE(decoder.Decode({0, 0, 30, 20}, sink).ok());  // once after each Open
}

class NoRoom : public KeepRows {
 public:
  Status Begin(const DecodedRegion&) override {
    return Error{Code::kResourceExhausted, "no room for rows"};
  }
};

TEST(JpegDecoder, PropagatesErrorsOfTheSink) {
  JpegDecoder decoder;
  NoRoom full;
  const std::vector<uint8_t> bytes = Padded(MakeJpeg());
  const Status status = DecodeAll(decoder, bytes, {}, full);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().cause, "no room for rows");
  KeepRows sink;
  EXPECT_TRUE(DecodeAll(decoder, bytes, {}, sink).ok());
}

}  // namespace
}  // namespace stoker::testing
