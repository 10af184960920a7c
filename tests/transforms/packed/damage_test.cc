// Every changed byte is found where the changed part is used, and no byte is trusted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "tests/transforms/whole.h"
#include "transforms/packed/decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

std::vector<uint8_t> PackedImage(int width = 48, int height = 40,
                                 JpegScans scans = JpegScans::kOne) {
  const std::vector<uint8_t> jpeg =
      MakeJpeg({.width = width, .height = height, .sampling = Luma(2, 2), .scans = scans});
  return PackJpeg(Unpadded(Padded(jpeg))).value();
}

class PackedDamage : public ::testing::TestWithParam<JpegScans> {};
INSTANTIATE_TEST_SUITE_P(OfBaselineAndProgressive, PackedDamage,
                         ::testing::Values(JpegScans::kOne, JpegScans::kProgressive));

TEST_P(PackedDamage, OfOneByteIsFound) {
  const std::vector<uint8_t> sound = PackedImage(48, 40, GetParam());
  PackedJpegDecoder decoder;
  for (size_t at = 0; at < sound.size(); ++at) {
    for (const uint8_t change : {0x01, 0x80}) {
      std::vector<uint8_t> file = sound;
      file[at] ^= change;
      const Error error = ErrorOf(decoder, Padded(file));
      ASSERT_NE(error.cause, "") << at;
      ASSERT_TRUE(error.code == Code::kDataLoss || (at == 7 && error.code == Code::kUnimplemented))
          << at << ": " << error.ToString();
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= file.size()) << at;
      ASSERT_FALSE(RestoreJpeg(Unpadded(Padded(file))).ok()) << at;
    }
  }
}

TEST_P(PackedDamage, TruncatedFilesAreRefused) {
  const std::vector<uint8_t> sound = PackedImage(48, 40, GetParam());
  PackedJpegDecoder decoder;
  for (size_t size = 0; size < sound.size(); ++size) {
    const Error error = ErrorOf(decoder, Padded(std::span(sound).first(size)));
    ASSERT_EQ(error.code, Code::kDataLoss) << size;
    ASSERT_EQ(error.detail, Error::Detail::kTruncated) << size;
    ASSERT_EQ(error.offset, size);
  }
  std::vector<uint8_t> longer = sound;
  longer.push_back(0);
  EXPECT_EQ(ErrorOf(decoder, Padded(longer)).cause, "damaged packed JPEG: bytes after its end");
}

// A file of 20 rows of MCUs before the header and 20 after it, and its parts.
class PackedRows : public ::testing::TestWithParam<size_t> {
 protected:
  static constexpr size_t kRows = 40, kMiddle = kRows / 2;

  // The error of decoding one row of MCUs.
  Error ErrorOfRow(const std::vector<uint8_t>& file, size_t row) {
    return ErrorOf(decoder_, Padded(file), {0, static_cast<int>(8 * row), 64, 8});
  }
  size_t MiddleOf(std::span<const uint8_t> bytes) const {
    return static_cast<size_t>(bytes.data() - sound_.data()) + bytes.size() / 2;
  }
  std::span<const uint8_t> Row(size_t row) const { return BytesOfRow(sound_, parts_, row); }

  const std::vector<uint8_t> sound_ =
      PackJpeg(Unpadded(Padded(MakeJpeg({.height = 320, .sampling = Luma(1, 1)})))).value();
  const PackedParts parts_ = PartsOf(sound_);
  PackedJpegDecoder decoder_;
};

TEST_P(PackedRows, AreNeededOrNotIfOneIsDamaged) {
  const size_t damaged = GetParam();
  for (const bool half : {false, true}) {
    std::vector<uint8_t> file = sound_;
    const size_t at = MiddleOf(Row(damaged));
    file[at] ^= 1;
    const auto from = file.begin() + static_cast<ptrdiff_t>(at);
    if (half) std::fill_n(from, Row(damaged).size() - Row(damaged).size() / 2, uint8_t{0});
    for (size_t row = 0; row < kRows; ++row) {
      const Error error = ErrorOfRow(file, row);
      ASSERT_EQ(error.cause,
                row == damaged ? "damaged packed JPEG: the checksum of a row of MCUs" : "")
          << row;
    }
    EXPECT_EQ(RestoreJpeg(Unpadded(Padded(file))).error().code, Code::kDataLoss);
  }
}

// Without a part of the header no row can be decoded.
TEST_P(PackedRows, AreNeededOrNotIfTheFileEndsInOne) {
  const size_t last = GetParam();
  std::vector<uint8_t> file = sound_;
  file.resize(MiddleOf(Row(last)));
  for (size_t row = 0; row < kRows; ++row) {
    const Error error = ErrorOfRow(file, row);
    const bool there = last >= kMiddle && row < last;
    ASSERT_EQ(error.cause, there ? "" : "truncated packed JPEG") << row;
    ASSERT_EQ(error.detail, there ? Error::Detail::kNone : Error::Detail::kTruncated);
  }
  EXPECT_EQ(RestoreJpeg(Unpadded(Padded(file))).error().code, Code::kDataLoss);
}

// The first, one in the middle and the last of both halves.
INSTANTIATE_TEST_SUITE_P(OfBothHalves, PackedRows, ::testing::Values(0, 10, 19, 20, 30, 39));

// At its start, in the JPEG's header and in the directory.
TEST_F(PackedRows, AllNeedTheHeader) {
  for (const size_t at : {parts_.header_at, (parts_.header_at + parts_.directory_at) / 2,
                          parts_.directory_at, parts_.rows_at - 1}) {
    std::vector<uint8_t> damaged = sound_, truncated = sound_;
    damaged[at] ^= 1;
    truncated.resize(at);
    for (size_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(ErrorOfRow(damaged, row).code, Code::kDataLoss) << at << ", " << row;
      ASSERT_EQ(ErrorOfRow(truncated, row).detail, Error::Detail::kTruncated) << at << ", " << row;
    }
  }
}

// Forged bytes give other pixels or an error. (With a sanitizer this also finds accesses outside
// the file.)
TEST_P(PackedDamage, ForgedBytesAreNotTrusted) {
  const std::vector<uint8_t> sound = PackedImage(70, 40, GetParam());
  const PackedParts parts = PartsOf(sound);
  PackedJpegDecoder decoder;
  int decoded = 0, failed = 0;
  for (uint64_t n = 0; n < 3000; ++n) {
    RandomStream random({1, 0, n}, 0);
    std::vector<uint8_t> file = sound;
    // In the directory or in the rows.
    const size_t from = n % 4 == 0 ? parts.directory_at : parts.rows_at;
    const size_t end = n % 4 == 0 ? parts.rows_at : file.size();
    for (uint64_t i = 0; i <= random.Below(8); ++i) {
      file[from + random.Below(end - from)] = static_cast<uint8_t>(random.Below(256));
    }
    SignPackedJpeg(file);
    const Error error = ErrorOf(decoder, Padded(file), RandomRegion({70, 40}, random));
    ++(error.cause.empty() ? decoded : failed);
    (void)RestoreJpeg(Unpadded(Padded(file)));
  }
  EXPECT_GT(decoded, 100);
  EXPECT_GT(failed, 100);
}

// Codes that no table can have together, too many of them, and symbols of other sizes.
TEST_P(PackedDamage, ForgedHuffmanTablesAreNotTrusted) {
  const std::vector<uint8_t> sound = PackedImage(70, 40, GetParam());
  const std::vector<uint8_t> marker = {0xFF, 0xC4};
  int restored = 0, refused = 0;
  for (uint64_t n = 0; n < 3000; ++n) {
    RandomStream random({2, 0, n}, 0);
    std::vector<uint8_t> file = sound;
    auto table = file.begin();
    for (uint64_t skip = random.Below(4) + 1; skip > 0; --skip) {
      table = std::search(table + 1, file.end(), marker.begin(), marker.end());
      ASSERT_NE(table, file.end());
    }
    // A table's counts and symbols, of which a DC table has 12.
    const size_t counts = static_cast<size_t>(table - file.begin()) + 5;
    for (uint64_t i = 0; i <= random.Below(6); ++i) {
      file[counts + random.Below(28)] = static_cast<uint8_t>(random.Below(n % 2 == 0 ? 20 : 256));
    }
    SignPackedJpeg(file);
    const std::vector<uint8_t> padded = Padded(file);
    ++(RestoreJpeg(Unpadded(padded)).ok() ? restored : refused);
  }
  EXPECT_GT(restored, GetParam() == JpegScans::kOne ? 20 : 10);
  EXPECT_GT(refused, 100);
}

// Scans that no script can have, in any order, with other restart intervals; or too few of them.
TEST(PackedProgressive, ForgedScansAreNotTrusted) {
  const std::vector<uint8_t> sound = PackedImage(70, 40, JpegScans::kProgressive);
  const PackedParts parts = PartsOf(sound);
  const size_t from = parts.header_at + sizeof(packed::FixedPart);
  int restored = 0, refused = 0;
  for (uint64_t n = 0; n < 3000; ++n) {
    RandomStream random({3, 0, n}, 0);
    std::vector<uint8_t> file = sound;
    for (uint64_t i = 0; i <= random.Below(3); ++i) {
      file[from + random.Below(parts.directory_at - from)] =
          static_cast<uint8_t>(random.Below(n % 2 == 0 ? 4 : 256));
    }
    SignPackedJpeg(file);
    const Result<std::vector<uint8_t>> jpeg = RestoreJpeg(Unpadded(Padded(file)));
    ++(jpeg.ok() ? restored : refused);
    if (!jpeg.ok()) {
      ASSERT_LE(jpeg.error().offset.value_or(~uint64_t{0}), file.size()) << n;
    }
  }
  EXPECT_GT(restored, 20);
  EXPECT_GT(refused, 100);
}

// A progressive JPEG with changed bytes, or without its end.
TEST(PackedProgressive, DamageIsAReason) {
  const std::vector<uint8_t> sound = MakeJpeg(
      {.width = 70, .height = 40, .scans = JpegScans::kProgressive, .restart_interval = 5});
  JpegPacker packer;
  int packed = 0, refused = 0;
  for (uint64_t n = 0; n < 3000; ++n) {
    RandomStream random({4, 0, n}, 0);
    std::vector<uint8_t> jpeg = sound;
    if (n % 3 == 0) jpeg.resize(random.Below(jpeg.size()));
    for (uint64_t i = 0; i < (n % 3) && !jpeg.empty(); ++i) {
      jpeg[random.Below(jpeg.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
    }
    const Result<std::vector<uint8_t>> file = packer.Pack(Unpadded(Padded(jpeg)));
    ++(file.ok() ? packed : refused);
    if (file.ok()) {
      ASSERT_EQ(RestoreJpeg(Unpadded(Padded(*file))).value(), jpeg) << n;
    } else {
      ASSERT_EQ(file.error().code, Code::kUnimplemented) << n;
      ASSERT_NE(file.error().cause, "this JPEG is not packed: none") << n;
    }
  }
  EXPECT_GT(packed, 50);
  EXPECT_GT(refused, 1000);
}

TEST(PackedLimits, OfProgressiveJpegs) {
  const std::vector<uint8_t> jpeg =
      Padded(MakeJpeg({.width = 640, .height = 480, .scans = JpegScans::kProgressive}));
  const std::string begin = "this JPEG is not packed: ";
  JpegPacker few_scans(nullptr, {.max_scans = 9});
  EXPECT_EQ(few_scans.Pack(Unpadded(jpeg)).error().cause, begin + NameOf(Fallback::kScan));
  JpegPacker poor(nullptr, {.max_pixels = 400'000});
  EXPECT_EQ(poor.Pack(Unpadded(jpeg)).error().cause,
            begin + "its coefficients need too much memory");
}

TEST(PackedLimits, AreTheJpegs) {
  const std::vector<uint8_t> file = Padded(PackedImage());
  PackedJpegDecoder decoder(DecodeLimits{.max_pixels = 48 * 40 - 1});
  EXPECT_EQ(decoder.Open(Unpadded(file)).error().code, Code::kResourceExhausted);
  MemoryBudget nothing(100);
  PackedJpegDecoder poor({}, &nothing);
  const Error error = ErrorOf(poor, file);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_GT(error.wanted_bytes, 0u);
}

TEST(PackedJpeg, OfAnotherVersionIsUnimplemented) {
  std::vector<uint8_t> file = PackedImage();
  PackedJpegDecoder decoder;
  file[7] = 4;
  Error error = ErrorOf(decoder, Padded(file));
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "a packed JPEG of version 4");
  file[7] = 1;
  error = ErrorOf(decoder, Padded(file));
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.advice, "Pack the photograph again");
}

}  // namespace
}  // namespace stoker::testing
