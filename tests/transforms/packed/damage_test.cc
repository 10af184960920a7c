// Every changed byte is found where the changed part is used, and no byte is trusted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "tests/transforms/whole.h"
#include "transforms/packed/decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"
#include "transforms/packed/restorer.h"

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

// Other bytes in the JPEG's header.
TEST(PackedProgressive, ForgedHeadersAreNotTrusted) {
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

// A packed progressive JPEG whose JPEG's header is replaced.
class PackedScript {
 public:
  using Bytes = std::vector<uint8_t>;

  explicit PackedScript(Bytes file) : sound_(std::move(file)) {
    const PackedParts parts = PartsOf(sound_);
    header_at_ = parts.header_at;
    directory_at_ = parts.directory_at;
    std::memcpy(&fixed_, &sound_[header_at_], sizeof(fixed_));
    const auto all = std::span(sound_).first(directory_at_).subspan(header_at_ + sizeof(fixed_));
    const auto header = all.first(fixed_.header_bytes);
    tail.assign(all.begin() + fixed_.header_bytes, all.end());
    jpeg::FrameHeader frame;
    EXPECT_EQ(ParseHeader(header, frame, jpeg::Process::kProgressive), Fallback::kNone);
    start.assign(header.begin(), header.begin() + static_cast<ptrdiff_t>(frame.scan_marker));
    for (size_t at = frame.scan_marker; at < header.size();) {
      const size_t bytes = 2 + size_t{header[at + 2]} * 256 + header[at + 3];
      const auto segment = header.subspan(at, bytes);
      if (segment[1] == jpeg::kSos) scans.push_back(segments.size());
      segments.emplace_back(segment.begin(), segment.end());
      at += bytes;
    }
  }

  // Why it is not restored; empty if it is. `moved`: bytes at the header's end that the tail has.
  std::string Refused(size_t moved = 0) const {
    Bytes markers = start;
    for (const Bytes& segment : segments) {
      markers.insert(markers.end(), segment.begin(), segment.end());
    }
    packed::FixedPart fixed = fixed_;
    fixed.header_bytes = static_cast<uint32_t>(markers.size() - moved);
    fixed.tail_bytes = static_cast<uint32_t>(tail.size() + moved);
    markers.insert(markers.end(), tail.begin(), tail.end());
    Bytes file(sound_.begin(), sound_.begin() + static_cast<ptrdiff_t>(header_at_));
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&fixed);
    file.insert(file.end(), bytes, bytes + sizeof(fixed));
    file.insert(file.end(), markers.begin(), markers.end());
    file.insert(file.end(), sound_.begin() + static_cast<ptrdiff_t>(directory_at_), sound_.end());
    EXPECT_TRUE(PartsOf(file).sound);
    SignPackedJpeg(file);
    const Result<Bytes> jpeg = RestoreJpeg(Unpadded(Padded(file)));
    if (jpeg.ok()) return "";
    EXPECT_EQ(jpeg.error().code, Code::kDataLoss);
    EXPECT_LE(jpeg.error().offset.value_or(~uint64_t{0}), file.size());
    return jpeg.error().cause;
  }

  Bytes start;                  // up to the first scan
  std::vector<Bytes> segments;  // from there to the tail
  std::vector<size_t> scans;    // the indices of SOS segments
  Bytes tail;

 private:
  Bytes sound_;
  packed::FixedPart fixed_;
  size_t header_at_ = 0, directory_at_ = 0;
};

constexpr char kItsScans[] = "damaged packed JPEG: its scans";
constexpr char kOtherSize[] = "damaged packed JPEG: another size when it is restored";

TEST(PackedProgressive, ForgedScansAreRefused) {
  const PackedScript sound(PackedImage(70, 40, JpegScans::kProgressive));
  ASSERT_EQ(sound.scans.size(), 10u);
  ASSERT_EQ(sound.Refused(), "");
  for (const size_t scan : sound.scans) {
    PackedScript forged = sound;
    forged.segments.erase(forged.segments.begin() + static_cast<ptrdiff_t>(scan));
    EXPECT_EQ(forged.Refused(), kItsScans) << "without " << scan;
    forged = sound;
    forged.segments.push_back(sound.segments[scan]);
    EXPECT_EQ(forged.Refused(), kItsScans) << "again " << scan;
    forged = sound;
    forged.segments.insert(forged.segments.begin() + static_cast<ptrdiff_t>(scan),
                           {0xFF, jpeg::kDri, 0, 4, 0, 1});
    EXPECT_EQ(forged.Refused(), kOtherSize) << "restarts from " << scan;
  }
  // A refinement before what it refines.
  PackedScript forged = sound;
  std::swap(forged.segments[sound.scans.front()], forged.segments[sound.scans.back()]);
  EXPECT_EQ(forged.Refused(), kItsScans);
  // A segment that begins in the header and ends in the tail.
  for (size_t moved = 1; moved < sound.segments.back().size(); ++moved) {
    EXPECT_EQ(sound.Refused(moved), kItsScans) << moved;
  }
}

// The most scans are read; one more is not.
TEST(PackedProgressive, HasAtMostTheFormatsScans) {
  const std::vector<uint8_t> jpeg = MakeJpeg(
      {.width = 70, .height = 40, .color = JpegColor::kGray, .scans = JpegScans::kProgressive});
  PackedScript file(PackJpeg(Unpadded(Padded(jpeg))).value());
  std::erase_if(file.segments, [](const auto& segment) { return segment[1] == jpeg::kSos; });
  const auto append = [&file](int first, int last, int low) {
    for (int bit = low; bit >= 0; --bit) {
      const int high = bit == low ? 0 : bit + 1;
      file.segments.push_back({0xFF, jpeg::kSos, 0, 8, 1, 1, 0, static_cast<uint8_t>(first),
                               static_cast<uint8_t>(last), static_cast<uint8_t>(high << 4 | bit)});
    }
  };
  append(0, 0, 2);                                // 3 scans
  for (int k = 1; k <= 49; ++k) append(k, k, 3);  // 196
  PackedScript more = file;
  append(50, 63, 0);
  EXPECT_EQ(file.Refused(), kOtherSize);
  file = std::move(more);
  append(50, 63, 1);
  EXPECT_EQ(file.Refused(), kItsScans);
}

// A forged file does not take more memory than the JPEG that it announces, and a row of MCUs.
TEST(PackedJpeg, ThatBecomesTooLargeIsRefusedAtOnce) {
  const std::vector<uint8_t> jpeg = MakeJpeg({.width = 320, .height = 320});
  std::vector<uint8_t> file = PackJpeg(Unpadded(Padded(jpeg))).value();
  packed::FixedPart fixed;
  uint8_t* const fixed_at = file.data() + PartsOf(file).header_at;
  std::memcpy(&fixed, fixed_at, sizeof(fixed));
  fixed.jpeg_bytes = fixed.header_bytes + fixed.tail_bytes;
  std::memcpy(fixed_at, &fixed, sizeof(fixed));
  SignPackedJpeg(file);
  const std::vector<uint8_t> padded = Padded(file);
  const packed::PackedFile opened = packed::PackedFile::Open(Unpadded(padded)).value();
  std::vector<uint8_t> out;
  EXPECT_EQ(packed::JpegRestorer().Restore(opened, out).error().cause, kOtherSize);
  EXPECT_LT(out.size(), jpeg.size() / 8);
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
