// Decoding with a crop index gives the pixels of decoding without one.
#include "transforms/jpeg/fast/index/crop_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/hash/hash.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/decode.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/jpeg/fast/kinds.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

using jpeg::CropIndex;
using jpeg::CropIndexMaker;
using jpeg::EntryPoint;
using jpeg::IndexShape;

std::span<const uint8_t> File(const std::vector<uint8_t>& padded) {
  return std::span(padded).first(padded.size() - kBufferPadding);
}

std::vector<uint8_t> MakeIndex(const std::vector<uint8_t>& padded,
                               int interval = IndexShape::kInterval) {
  std::vector<uint8_t> packed;
  EXPECT_EQ(CropIndexMaker(interval).Make(File(padded), packed), Fallback::kNone);
  return packed;
}

CropIndex::Match OpenIndex(const std::vector<uint8_t>& packed, const std::vector<uint8_t>& padded) {
  jpeg::FrameHeader header;
  EXPECT_EQ(jpeg::ParseHeader(File(padded), header), Fallback::kNone);
  return CropIndex().Open(packed, File(padded), header);
}

// Signs the changed index as if it had been written so.
void Sign(std::vector<uint8_t>& packed) {
  const uint64_t checksum = Hash64(std::span<const uint8_t>(packed).subspan(8));
  std::memcpy(packed.data(), &checksum, sizeof(checksum));
}

class IndexedKind : public ::testing::TestWithParam<FastJpeg> {
 protected:
  JpegOptions Options(int width, int height) const {
    return {width, height, GetParam().color, GetParam().sampling};
  }
  // Sizes × qualities × restart intervals × tables × EXIF.
  std::vector<JpegOptions> Grid() const {
    std::vector<ImageSize> sizes = {{331, 207}, {64, 48}, {257, 5}, {7, 300}, {129, 130}};
    for (int side = 1; side <= 40; ++side) sizes.push_back({side, 1 + side * 11 % 40});
    std::vector<JpegOptions> grid;
    uint64_t n = 0;
    for (const ImageSize size : sizes) {
      if (size.width <= 4 && GetParam().color == JpegColor::kYCbCr &&
          GetParam().sampling[0].columns == 2) {
        continue;  // left to libjpeg-turbo
      }
      JpegOptions options = Options(size.width, size.height);
      static constexpr int kQualities[] = {1, 25, 60, 90, 97, 100};
      options.quality = kQualities[++n % 6];
      options.optimize = n % 4 == 1;
      options.restart_interval = n % 3 == 0 ? static_cast<int>(1 + n % 13) : 0;
      options.orientation = n % 7 == 0 ? 6 : 0;
      options.seed = n;
      grid.push_back(options);
    }
    return grid;
  }
};

TEST_P(IndexedKind, EqualsTheFullDecode) {
  ForEachTarget([this] {
    JpegDecoder decoder;
    KeepRows rows;
    uint64_t n = 0, decoded = 0;
    for (const JpegOptions& options : Grid()) {
      const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
      const Result<WholeImage> whole = DecodeWhole(File(bytes));
      ASSERT_TRUE(whole.ok());
      static constexpr int kIntervals[] = {4, 1, 3};
      const std::vector<uint8_t> index = MakeIndex(bytes, kIntervals[++n % 3]);
      const ImageSize size{options.width, options.height};
      RandomStream random({8, 0, n}, 0);
      std::vector<Rect> regions = EdgeRegions(size);
      for (int i = 0; i < 4; ++i) regions.push_back(RandomRegion(size, random));
      for (const Rect& region : regions) {
        ASSERT_TRUE(DecodeAll(decoder, bytes, region, rows, index).ok());
        ASSERT_EQ(Difference(rows, region, *whole), "") << n << " " << Text(region);
        ++decoded;
      }
    }
    EXPECT_EQ(decoder.paths().indexed, decoded);
    EXPECT_EQ(decoder.paths().fast, decoded);
  });
}

TEST_P(IndexedKind, PositionsMatchTheReference) {
  for (const int interval : {1, 3, 4, 8, 255}) {
    for (const JpegOptions& options : Grid()) {
      const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
      const std::vector<uint8_t> packed = MakeIndex(bytes, interval);
      jpeg::FrameHeader header;
      ASSERT_EQ(jpeg::ParseHeader(File(bytes), header), Fallback::kNone);
      CropIndex index;
      ASSERT_EQ(index.Open(packed, File(bytes), header), CropIndex::Match::kUsable);
      const std::vector<EntryPoint> want =
          jpeg::FindEntryPointsPlain(File(bytes), header, IndexShape(header, interval));
      ASSERT_EQ(static_cast<size_t>(index.shape().entry_points()), want.size());
      for (int64_t i = 0; i < index.shape().entry_points(); ++i) {
        ASSERT_EQ(index.At(i), want[static_cast<size_t>(i)]) << i;
      }
    }
  }
}

// One bit of the index is wrong, under a valid checksum: the pixels never change. (This holds for
// these images. In general an entry point that is wrong by a few bits, under a valid checksum, can
// still lead to the next one, because Huffman codes synchronise themselves.) Every bit meets every
// region; if Effort is less than full, one of the four.
TEST_P(IndexedKind, AWrongBitChangesNoPixel) {
  for (const int restart_interval : {0, 5}) {
    JpegOptions options = Options(150, 60);
    options.restart_interval = restart_interval;
    const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
    const Result<WholeImage> whole = DecodeWhole(File(bytes));
    ASSERT_TRUE(whole.ok());
    const std::vector<uint8_t> good = MakeIndex(bytes);
    constexpr Rect kRegions[] = {
        {0, 0, 150, 60}, {70, 20, 40, 30}, {131, 40, 19, 20}, {3, 7, 11, 9}};
    JpegDecoder decoder;
    KeepRows rows;
    uint64_t n = 0;
    for (size_t bit = 64; bit < 8 * good.size(); ++bit) {
      std::vector<uint8_t> index = good;
      index[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      Sign(index);
      for (int i = 0; i < Effort(4); ++i) {
        const Rect& region = kRegions[(bit / 8 + bit + static_cast<size_t>(i)) % 4];
        ASSERT_TRUE(DecodeAll(decoder, bytes, region, rows, index).ok());
        ASSERT_EQ(Difference(rows, region, *whole), "") << bit << " " << Text(region);
        ++n;
      }
    }
    EXPECT_EQ(decoder.paths().fast, n);
    EXPECT_GT(decoder.paths().contradicted, n / 20);
    EXPECT_GT(decoder.paths().stale, static_cast<uint64_t>(Effort(64)));
    EXPECT_GT(decoder.paths().indexed, n / 8);  // the bit was of no consequence to the region
  }
}

// Any change that leaves the checksum the same is noticed when the index is opened.
TEST_P(IndexedKind, ChecksumNoticesEveryChangedByte) {
  const std::vector<uint8_t> bytes = Padded(MakeJpeg(Options(70, 40)));
  const std::vector<uint8_t> good = MakeIndex(bytes);
  ASSERT_EQ(OpenIndex(good, bytes), CropIndex::Match::kUsable);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const uint8_t change : {0x01, 0x10, 0x80, 0xFF}) {
      std::vector<uint8_t> index = good;
      index[at] ^= change;
      ASSERT_EQ(OpenIndex(index, bytes), CropIndex::Match::kDamaged) << at;
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {
    std::vector<uint8_t> index(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_EQ(OpenIndex(index, bytes), CropIndex::Match::kDamaged) << size;
    if (size >= 8) Sign(index);
    ASSERT_NE(OpenIndex(index, bytes), CropIndex::Match::kUsable) << size;
  }
}

// Bytes are changed and cut off at random, under a valid checksum. Two entry points that are wrong
// in the same way can confirm each other, so the pixels may differ; but all rows come, and no other
// memory is touched.
TEST_P(IndexedKind, HostileIndexesAreHarmless) {
  JpegDecoder decoder;
  KeepRows rows;
  uint64_t same = 0, all = 0;
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(3000)); ++n) {
    RandomStream random({12, 0, n}, 0);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random.Below(limit)); };
    JpegOptions options = Options(90 + static_cast<int>(n % 7), 50 + static_cast<int>(n % 11));
    options.restart_interval = n % 3 == 0 ? static_cast<int>(1 + below(20)) : 0;
    options.seed = n % 8;
    const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
    std::vector<uint8_t> index = MakeIndex(bytes, static_cast<int>(1 + below(9)));
    for (size_t i = 0; i < 1 + below(6); ++i) {
      // The content's hash is kept, because a stale index would not be used.
      const size_t at = 16 + below(index.size() - 16);
      index[at] = static_cast<uint8_t>(below(256));
    }
    if (n % 8 == 0) index.resize(16 + below(index.size() - 16));
    Sign(index);
    const ImageSize size{options.width, options.height};
    const Result<WholeImage> whole = DecodeWhole(File(bytes));
    const Rect region = RandomRegion(size, random);
    ASSERT_TRUE(DecodeAll(decoder, bytes, region, rows, index).ok());
    ASSERT_TRUE(rows.complete());
    same += Difference(rows, region, *whole).empty();
    ++all;
  }
  EXPECT_GT(same, all - all / 20);  // nearly always
  EXPECT_GT(decoder.paths().contradicted, all / 4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, IndexedKind, ::testing::ValuesIn(FastJpegs()),
                         [](const auto& info) { return std::string(info.param.name); });

// Tries the index of another photograph, and that of the same one before it was changed.
TEST(CropIndex, IgnoresTheIndexOfAnotherFile) {
  const std::vector<uint8_t> one = Padded(MakeJpeg({.width = 100, .height = 80, .seed = 1}));
  const std::vector<uint8_t> two = Padded(MakeJpeg({.width = 100, .height = 80, .seed = 2}));
  const std::vector<uint8_t> index = MakeIndex(one);
  EXPECT_EQ(OpenIndex(index, two), CropIndex::Match::kStale);
  JpegDecoder decoder;
  KeepRows rows;
  ASSERT_TRUE(DecodeAll(decoder, two, {}, rows, index).ok());
  EXPECT_EQ(decoder.paths().stale, 1u);
  EXPECT_EQ(decoder.paths().indexed, 0u);

  std::vector<uint8_t> longer(File(one).begin(), File(one).end());
  longer.push_back(0);
  EXPECT_EQ(OpenIndex(index, Padded(longer)), CropIndex::Match::kStale);
  std::vector<uint8_t> tables = one;  // a quantiser's last factor
  for (size_t i = 0; i + 1 < tables.size(); ++i) {
    if (tables[i] == 0xFF && tables[i + 1] == 0xDB) tables[i + 68] ^= 1;
  }
  EXPECT_EQ(OpenIndex(index, tables), CropIndex::Match::kStale);
  std::vector<uint8_t> end = one;
  end[File(end).size() - 5] ^= 1;
  EXPECT_EQ(OpenIndex(index, end), CropIndex::Match::kStale);
}

// Changes a byte that ContentHash does not cover. If the byte is decoded, it contradicts the index
// or gives the same as without one; if not, the pixels are those of the sound file. Tries one byte
// in 97, or Effort's share of those.
TEST(CropIndex, SurvivesDamageThatTheHashMisses) {
  const JpegOptions options{.width = 500, .height = 400, .quality = 97};
  const std::vector<uint8_t> good = Padded(MakeJpeg(options));
  const std::vector<uint8_t> index = MakeIndex(good);
  const Rect region{200, 150, 120, 90};
  JpegDecoder decoder, plain;
  KeepRows rows, without, sound;
  ASSERT_TRUE(DecodeAll(plain, good, region, sound).ok());
  uint64_t used = 0;
  const auto step = static_cast<size_t>(9700 / Effort(100));
  for (size_t at = 700; at < File(good).size() - 100; at += step) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 0x10;
    if (bytes[at] == 0xFF || bytes[at - 1] == 0xFF || good[at] == 0xFF) continue;
    const uint64_t indexed = decoder.paths().indexed;
    const Status got = DecodeAll(decoder, bytes, region, rows, index);
    const Status want = DecodeAll(plain, bytes, region, without);
    if (decoder.paths().indexed == indexed) {
      ASSERT_EQ(got.ok(), want.ok()) << at;
      if (!got.ok()) continue;
    }
    ASSERT_TRUE(got.ok()) << at;
    used += decoder.paths().indexed - indexed;
    bool as_sound = true, as_without = want.ok();
    for (int y = 0; y < region.height; ++y) {
      const auto same = [&](const KeepRows& other) {
        return std::memcmp(rows.Row(y), other.Row(y), static_cast<size_t>(region.width) * 3) == 0;
      };
      as_sound &= same(sound);
      as_without &= want.ok() && same(without);
    }
    ASSERT_TRUE(as_sound || as_without) << at;
  }
  EXPECT_GT(used, static_cast<uint64_t>(Effort(100)));
  EXPECT_GT(decoder.paths().contradicted, static_cast<uint64_t>(Effort(10)));
}

// ---- The checksums of the photograph

constexpr size_t kPieceBytes = CropIndex::kPieceBytes;
constexpr size_t kFormatByte = 25;  // of a packed index

// A photograph of many pieces, with its index.
class Checksums : public ::testing::Test {
 protected:
  Checksums() {
    EXPECT_EQ(jpeg::ParseHeader(file(), header_), Fallback::kNone);
    EXPECT_EQ(index_.Open(packed_, file(), header_), CropIndex::Match::kUsable);
    data_bits_ = 8 * static_cast<int64_t>(file().size() - header_.scan_offset);
    EXPECT_GT(file().size(), 10 * kPieceBytes);
  }

  std::span<const uint8_t> file() const { return File(padded_); }

  bool Intact(std::span<const uint8_t> file, int64_t from, int64_t until) const {
    return index_.Intact(file, {from, {}}, {until, {}});
  }

  const std::vector<uint8_t> padded_ =
      Padded(MakeJpeg({.width = 500, .height = 400, .quality = 97}));
  const std::vector<uint8_t> packed_ = MakeIndex(padded_);
  jpeg::FrameHeader header_;
  CropIndex index_;
  int64_t data_bits_ = 0;
};

TEST_F(Checksums, AreOfTheWholeFile) {
  EXPECT_TRUE(index_.HeaderIntact(file()));
  EXPECT_TRUE(Intact(file(), 0, data_bits_));
  for (int64_t begin = 0; begin < data_bits_; begin += 8101) {
    EXPECT_TRUE(Intact(file(), begin, begin)) << begin;
    EXPECT_TRUE(Intact(file(), begin, data_bits_)) << begin;
    EXPECT_TRUE(Intact(file(), 0, begin)) << begin;
  }
}

// A changed byte of the header, or of the piece in which it ends, is noticed there; any other by
// the ranges that touch its piece.
TEST_F(Checksums, NoticeAChangedByteOfThePiecesInQuestion) {
  std::vector<uint8_t> changed(file().begin(), file().end());
  const size_t header_end = (header_.scan_offset + kPieceBytes - 1) / kPieceBytes * kPieceBytes;
  const auto bit_at = [this](size_t at) {
    return 8 * static_cast<int64_t>(std::min(at, file().size()) - header_.scan_offset);
  };
  for (size_t at = 0; at < changed.size(); at += at < header_end ? 29 : 331) {
    for (const uint8_t change : {0x01, 0x80}) {
      changed[at] ^= change;
      ASSERT_EQ(index_.HeaderIntact(changed), at >= header_end) << at;
      if (at >= header_end) {
        const size_t piece = at / kPieceBytes * kPieceBytes;
        const int64_t begin = bit_at(piece), end = bit_at(piece + kPieceBytes);
        ASSERT_FALSE(Intact(changed, 0, data_bits_)) << at;
        ASSERT_FALSE(Intact(changed, begin, begin)) << at;
        ASSERT_FALSE(Intact(changed, end - 1, end)) << at;
        // The bits before an entry point may reach into the byte of its position and the next one.
        ASSERT_FALSE(Intact(changed, 0, begin - 8)) << at;
        ASSERT_TRUE(Intact(changed, 0, begin - 9)) << at;
        ASSERT_TRUE(end == data_bits_ || Intact(changed, end, data_bits_)) << at;
      }
      changed[at] ^= change;
    }
  }
}

TEST_F(Checksums, KnowNoOtherBytes) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t far : {kLeast, kLeast + 1, int64_t{-1}, data_bits_ + 8, kMost - 1, kMost}) {
    EXPECT_FALSE(Intact(file(), far, data_bits_)) << far;
    EXPECT_FALSE(Intact(file(), 0, far)) << far;
    EXPECT_FALSE(Intact(file(), far, far)) << far;
  }
  EXPECT_FALSE(Intact(file(), 2, 1));
  for (const auto other : {std::span<const uint8_t>(), file().first(file().size() - 1),
                           std::span<const uint8_t>(padded_)}) {
    EXPECT_FALSE(index_.HeaderIntact(other)) << other.size();
    EXPECT_FALSE(Intact(other, 0, 0)) << other.size();
  }
}

TEST_F(Checksums, AreNotThereBeforeAnIndexIsOpen) {
  const CropIndex closed;
  EXPECT_FALSE(closed.HeaderIntact(file()));
  EXPECT_FALSE(closed.Intact(file(), {}, {}));
  std::vector<uint8_t> damaged = packed_;
  damaged.back() ^= 1;
  EXPECT_EQ(index_.Open(damaged, file(), header_), CropIndex::Match::kDamaged);
  EXPECT_FALSE(index_.HeaderIntact(file()));
  EXPECT_FALSE(Intact(file(), 0, 1));
}

TEST_F(Checksums, AWrongOneChangesNoEntryPoint) {
  std::vector<uint8_t> wrong = packed_;
  wrong.back() ^= 1;  // of the last piece
  Sign(wrong);
  ASSERT_EQ(index_.Open(wrong, file(), header_), CropIndex::Match::kUsable);
  EXPECT_FALSE(Intact(file(), data_bits_ - 1, data_bits_));
  EXPECT_TRUE(Intact(file(), 0, data_bits_ - int64_t{8 * (kPieceBytes + 2)}));
  CropIndex right;
  ASSERT_EQ(right.Open(packed_, file(), header_), CropIndex::Match::kUsable);
  for (int64_t i = 0; i < right.shape().entry_points(); ++i) {
    ASSERT_EQ(index_.At(i), right.At(i)) << i;
  }
}

TEST_F(Checksums, GoWithTheirFormat) {
  const size_t pieces = (file().size() + kPieceBytes - 1) / kPieceBytes;
  const auto end = packed_.end() - static_cast<ptrdiff_t>(pieces * sizeof(uint32_t));
  const std::vector<uint8_t> without(packed_.begin(), end);
  for (const auto& [packed, format] :
       {std::pair{packed_, 0}, {packed_, 2}, {without, 0}, {without, 1}}) {
    std::vector<uint8_t> index = packed;
    index[kFormatByte] = static_cast<uint8_t>(format);
    Sign(index);
    EXPECT_EQ(OpenIndex(index, padded_), CropIndex::Match::kDamaged) << format;
  }
}

Fallback WhyNot(const std::vector<uint8_t>& bytes) {
  std::vector<uint8_t> packed;
  return CropIndexMaker().Make(File(Padded(bytes)), packed);
}

TEST(CropIndexMaker, IndexesOnlyFilesThatDecodeCleanly) {
  const std::vector<uint8_t> good = MakeJpeg();
  EXPECT_EQ(WhyNot(good), Fallback::kNone);
  const auto color = JpegColor::kYCbCr;
  EXPECT_EQ(WhyNot(MakeJpeg({20, 20, color, {}, JpegScans::kProgressive})), Fallback::kProcess);
  EXPECT_EQ(WhyNot({}), Fallback::kHeader);
  std::vector<uint8_t> bytes(good.begin(), good.end() - 2);  // no marker
  EXPECT_EQ(WhyNot(bytes), Fallback::kBits);
  bytes.insert(bytes.end(), 100, 0);  // zeros in its place, as JpegDecoder takes them
  EXPECT_EQ(WhyNot(bytes), Fallback::kNone);
  bytes.assign(good.begin(), good.end() - 2);
  bytes.insert(bytes.end(), {0x12, 0xFF, 0xD9});  // a byte too many
  EXPECT_EQ(WhyNot(bytes), Fallback::kBits);
  bytes.assign(good.begin(), good.end() - 40);
  bytes.insert(bytes.end(), {0xFF, 0xD9});
  EXPECT_EQ(WhyNot(bytes), Fallback::kBits);
  bytes = MakeJpeg({.restart_interval = 3});
  for (size_t i = 600; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0xFF && bytes[i + 1] == 0xD1) bytes[i + 1] = 0xD2;
  }
  EXPECT_EQ(WhyNot(bytes), Fallback::kRestart);
}

// Decoders skip them, but not with an index: the marker must follow an entry point.
TEST(CropIndexMaker, IndexesNoFileWithSurplusBytesBeforeARestartMarker) {
  const std::vector<uint8_t> good = MakeJpeg({.restart_interval = 3});
  const std::array<uint8_t, 2> marker = {0xFF, 0xD3};
  for (const size_t surplus : {0, 1, 3, 30'000}) {
    std::vector<uint8_t> bytes = good;
    const auto at = std::search(bytes.begin() + 600, bytes.end(), marker.begin(), marker.end());
    ASSERT_NE(at, bytes.end());
    bytes.insert(at, surplus, 0x12);
    bytes = Padded(bytes);
    std::vector<uint8_t> packed;
    EXPECT_EQ(CropIndexMaker().Make(File(bytes), packed),
              surplus == 0 ? Fallback::kNone : Fallback::kRestart)
        << surplus;
    jpeg::FrameHeader header;
    ASSERT_EQ(jpeg::ParseHeader(File(bytes), header), Fallback::kNone);
    const IndexShape shape(header, IndexShape::kInterval);
    EXPECT_EQ(jpeg::FindEntryPointsPlain(File(bytes), header, shape).empty(), surplus != 0);
    JpegDecoder decoder;
    KeepRows rows;
    const Rect all{0, 0, header.size.width, header.size.height};
    EXPECT_TRUE(DecodeAll(decoder, bytes, all, rows, {}).ok()) << surplus;
    EXPECT_EQ(decoder.paths().fast, 1u) << surplus;
  }
}

// A damaged file gets no index, or one with the entry points of the reference.
TEST(CropIndexMaker, IndexesDamagedFilesCorrectlyOrNotAtAll) {
  uint64_t made = 0, refused = 0;
  CropIndexMaker maker;
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(3000)); ++n) {
    RandomStream random({13, 0, n}, 0);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random.Below(limit)); };
    const FastJpeg& kind = FastJpegs()[n % FastJpegs().size()];
    JpegOptions options{60, 50, kind.color, kind.sampling};
    options.restart_interval = n % 2 == 0 ? static_cast<int>(1 + below(12)) : 0;
    options.seed = n % 16;
    std::vector<uint8_t> bytes = MakeJpeg(options);
    for (size_t i = 0; i < 1 + below(3); ++i) {
      bytes[620 + below(bytes.size() - 620)] = static_cast<uint8_t>(below(256));
    }
    bytes = Padded(bytes);
    std::vector<uint8_t> packed;
    if (maker.Make(File(bytes), packed) != Fallback::kNone) {
      ++refused;
      continue;
    }
    ++made;
    jpeg::FrameHeader header;
    ASSERT_EQ(jpeg::ParseHeader(File(bytes), header), Fallback::kNone);
    CropIndex index;
    ASSERT_EQ(index.Open(packed, File(bytes), header), CropIndex::Match::kUsable);
    const auto want = jpeg::FindEntryPointsPlain(File(bytes), header, index.shape());
    ASSERT_EQ(static_cast<size_t>(index.shape().entry_points()), want.size());
    for (int64_t i = 0; i < index.shape().entry_points(); ++i) {
      ASSERT_EQ(index.At(i), want[static_cast<size_t>(i)]) << n << " " << i;
    }
  }
  EXPECT_GT(made, static_cast<uint64_t>(Effort(500)));
  EXPECT_GT(refused, static_cast<uint64_t>(Effort(500)));
}

TEST(Photos, IndexedCropsEqualTheFullDecode) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  JpegDecoder decoder;
  CropIndexMaker maker;
  KeepRows rows;
  std::vector<uint8_t> index;
  uint64_t n = 0, indexed = 0;
  for (const auto& path : paths) {
    const std::vector<uint8_t> bytes = Padded(ReadFile(path));
    if (maker.Make(File(bytes), index) != Fallback::kNone) continue;
    const Result<WholeImage> whole = DecodeWhole(File(bytes));
    ASSERT_TRUE(whole.ok()) << path;
    for (int i = 0; i < Effort(20); ++i) {
      RandomStream random({14, 0, ++n}, 0);
      const Rect region = RandomRegion(whole->size, random);
      ASSERT_TRUE(DecodeAll(decoder, bytes, region, rows, index).ok());
      ASSERT_EQ(Difference(rows, region, *whole), "") << path << " " << Text(region);
      ++indexed;
    }
  }
  EXPECT_EQ(decoder.paths().indexed, indexed);
  EXPECT_GT(indexed, n * 9 / 10);
}

}  // namespace
}  // namespace stoker::testing
