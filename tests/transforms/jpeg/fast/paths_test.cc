// Our decoder and libjpeg-turbo give the same pixels, and the same errors, for any bytes; and the
// test knows which of them decoded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/transforms/jpeg/decode.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/jpeg/fast/kinds.h"
#include "transforms/resize/resampler.h"

namespace stoker::testing {
namespace {

using Backend = JpegDecoder::Backend;

// Decodes in both ways in turn.
class BothBackends {
 public:
  // Returns an empty text if they agree.
  std::string Compare(const std::vector<uint8_t>& padded, const Rect& region) {
    const Status fast = DecodeAll(fast_, padded, region, fast_rows_);
    const Status slow = DecodeAll(slow_, padded, region, slow_rows_);
    if (fast.ok() != slow.ok()) {
      return (fast.ok() ? "accepted, not refused: " + slow.error().ToString()
                        : "refused: " + fast.error().ToString());
    }
    if (!slow.ok()) {
      return fast.error().ToString() == slow.error().ToString() ? "" : "another error";
    }
    return Difference();
  }

  // Compares what the headers say; returns an empty text if they agree.
  std::string CompareInfo(const std::vector<uint8_t>& padded) {
    const Result<ImageInfo> a = OpenPadded(fast_, padded), b = OpenPadded(slow_, padded);
    if (a.ok() != b.ok()) return "accepted by one";
    if (!a.ok()) return a.error().ToString() == b.error().ToString() ? "" : "another error";
    const bool same = a->size == b->size && a->orientation == b->orientation &&
                      a->components == b->components && a->chroma_columns == b->chroma_columns &&
                      a->chroma_rows == b->chroma_rows && a->progressive == b->progressive;
    return same ? "" : "another header";
  }

  const DecodePaths& paths() const { return fast_.paths(); }

 private:
  std::string Difference() const {
    const Rect& a = fast_rows_.region().covered;
    const Rect& b = slow_rows_.region().covered;
    if (!fast_rows_.complete() || !slow_rows_.complete()) return "incomplete";
    if (a.y != b.y || a.height != b.height || a.x < b.x || a.x + a.width > b.x + b.width) {
      return "another region";
    }
    const int bytes = BytesPerPixel(slow_rows_.region().layout);
    for (int y = 0; y < a.height; ++y) {
      const uint8_t* const want = slow_rows_.Row(y) + (a.x - b.x) * bytes;
      if (std::memcmp(fast_rows_.Row(y), want, static_cast<size_t>(a.width * bytes)) != 0) {
        return "row " + std::to_string(a.y + y);
      }
    }
    return {};
  }

  JpegDecoder fast_{{}, nullptr, Backend::kFastest}, slow_{{}, nullptr, Backend::kLibjpegOnly};
  KeepRows fast_rows_, slow_rows_;
};

constexpr JpegScans kProgressiveScripts[] = {JpegScans::kProgressive, JpegScans::kSpectral,
                                             JpegScans::kSuccessive, JpegScans::kRefinedDc,
                                             JpegScans::kBands};

// Every second file is progressive.
JpegScans ScansOf(uint64_t n) {
  return n % 2 == 0 ? JpegScans::kOne : kProgressiveScripts[n / 2 % std::size(kProgressiveScripts)];
}

class FastKind : public ::testing::TestWithParam<FastJpeg> {
 protected:
  JpegOptions Options(int width, int height) const {
    return {width, height, GetParam().color, GetParam().sampling};
  }
};

// Sizes × qualities × restart intervals × tables, on each instruction set.
TEST_P(FastKind, EqualsTheFullDecode) {
  ForEachTarget([this] {
    JpegDecoder decoder;
    KeepRows rows;
    uint64_t n = 0, decoded = 0;
    std::vector<ImageSize> sizes = {{331, 207}, {64, 48}, {257, 5}, {7, 300}};
    for (int side = 5; side <= 75; ++side) sizes.push_back({side, 1 + side * 11 % 40});
    for (const ImageSize size : sizes) {
      JpegOptions options = Options(size.width, size.height);
      static constexpr int kQualities[] = {1, 25, 60, 90, 97, 100};
      options.quality = kQualities[++n % 6];
      options.optimize = n % 4 == 1;
      options.restart_interval = n % 3 == 0 ? static_cast<int>(1 + n % 5) : 0;
      options.seed = n;
      options.scans = ScansOf(n / 6);
      const std::vector<uint8_t> bytes = Padded(MakeJpeg(options));
      const Result<WholeImage> whole =
          DecodeWhole(std::span(bytes).first(bytes.size() - kBufferPadding));
      ASSERT_TRUE(whole.ok());
      RandomStream random({8, 0, n}, 0);
      std::vector<Rect> regions = EdgeRegions(size);
      for (int i = 0; i < 4; ++i) regions.push_back(RandomRegion(size, random));
      for (const Rect& region : regions) {
        ASSERT_TRUE(DecodeAll(decoder, bytes, region, rows).ok());
        ASSERT_EQ(Difference(rows, region, *whole), "") << n << " " << Text(region);
        ++decoded;
      }
    }
    EXPECT_EQ(decoder.paths().fast, decoded);
  });
}

// Files are damaged at every place and decoded through regions of every height. In the rows that it
// parses, the fast decoder reports the same as libjpeg-turbo, and accepts the same.
TEST_P(FastKind, BackendsAgreeOnDamage) {
  BothBackends both;
  uint64_t accepted = 0, refused = 0;
  const auto cases = static_cast<uint64_t>(std::max(600, testing::Effort(3000)));
  for (uint64_t n = 0; n < cases; ++n) {
    RandomStream random({9, 0, n}, 0);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random.Below(limit)); };
    JpegOptions options = Options(70 + static_cast<int>(n % 7), 75 + static_cast<int>(n % 11));
    options.restart_interval = n % 2 == 0 ? static_cast<int>(1 + below(12)) : 0;
    options.quality = n % 3 == 0 ? 30 : 92;
    options.optimize = n % 5 == 0;
    options.seed = n % 16;
    options.scans = ScansOf(n / 7);
    std::vector<uint8_t> bytes = MakeJpeg(options);
    const size_t header = bytes.size() < 700 ? bytes.size() / 2 : 620;
    switch (below(4)) {
      case 0:  // a few bits
        for (size_t i = 0; i < 1 + below(3); ++i) {
          bytes[below(bytes.size())] ^= static_cast<uint8_t>(1u << below(8));
        }
        break;
      case 1:  // an early end
        bytes.resize(header + below(bytes.size() - header));
        bytes.insert(bytes.end(), {0xFF, 0xD9});
        break;
      case 2: {  // a marker, stuffed zero or fill byte where none was
        const size_t at = header + below(bytes.size() - header - 2);
        bytes[at] = 0xFF;
        static constexpr uint8_t kSecond[] = {0, 0xFF, 0xD0, 0xD3, 0xD7, 0xD9, 0x01, 0xC4};
        bytes[at + 1] = kSecond[below(8)];
        break;
      }
      default: {  // bytes too many or too few
        const size_t at = header + below(bytes.size() - header - 2);
        if (below(2) == 0) {
          bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at));
        } else {
          bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), 1 + below(3), 0x5A);
        }
      }
    }
    const std::vector<uint8_t> padded = Padded(bytes);
    KeepRows rows;
    for (int i = 0; i < 4; ++i) {
      Rect region = RandomRegion({options.width, options.height}, random);
      if (i == 0) region = {0, 0, options.width, options.height};
      JpegDecoder opened;
      const Result<ImageInfo> info = OpenPadded(opened, padded);
      if (info.ok() && info->size != ImageSize{options.width, options.height}) break;
      const std::string difference = both.Compare(padded, region);
      if (difference == "another error" && !info.ok()) break;
      ASSERT_EQ(difference, "") << n << " " << Text(region);
      ++(info.ok() ? accepted : refused);
    }
  }
  EXPECT_GT(both.paths().fast, 500u);
  EXPECT_GT(accepted, 500u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FastKind, ::testing::ValuesIn(FastJpegs()),
                         [](const auto& info) { return std::string(info.param.name); });

// Each byte of the headers is changed in several ways, and headers are truncated.
TEST_P(FastKind, BackendsAgreeOnHeaders) {
  BothBackends both;
  JpegOptions options = Options(23, 19);
  options.restart_interval = 2;
  options.orientation = 6;
  for (const JpegScans scans : {JpegScans::kOne, JpegScans::kProgressive}) {
    options.scans = scans;
    const std::vector<uint8_t> good = Padded(MakeJpeg(options));
    ASSERT_EQ(both.CompareInfo(good), "");
    for (size_t at = 0; at < good.size() - kBufferPadding; ++at) {
      for (const uint8_t change : {0x01, 0x02, 0x04, 0x10, 0x20, 0x80, 0xFF}) {
        std::vector<uint8_t> bytes = good;
        bytes[at] ^= change;
        ASSERT_EQ(both.CompareInfo(bytes), "") << at << " " << int{change};
      }
      const std::vector<uint8_t> part = Padded(std::span(good).first(at));
      ASSERT_EQ(both.CompareInfo(part), "") << at;
    }
  }
}

// The segments of a JPEG after its first marker: each a marker, and what follows up to the next
// one.
std::vector<std::vector<uint8_t>> SegmentsOf(const std::vector<uint8_t>& bytes) {
  std::vector<std::vector<uint8_t>> segments;
  for (size_t at = 2; at < bytes.size(); ++at) {
    const bool begins = bytes[at] == 0xFF && at + 1 < bytes.size() && bytes[at + 1] >= 0xC0 &&
                        (bytes[at + 1] < 0xD0 || bytes[at + 1] > 0xD7);
    if (begins) segments.emplace_back();
    segments.back().push_back(bytes[at]);
  }
  return segments;
}

std::vector<uint8_t> Joined(const std::vector<std::vector<uint8_t>>& segments) {
  std::vector<uint8_t> bytes = {0xFF, 0xD8};
  for (const auto& s : segments) bytes.insert(bytes.end(), s.begin(), s.end());
  return bytes;
}

// Scripts that are illegal, unusual or incomplete: scans are changed, repeated, moved and lost, and
// segments inserted between them.
TEST(Paths, BackendsAgreeOnScripts) {
  BothBackends both;
  const Rect region{3, 5, 20, 17};
  uint64_t different = 0;
  for (const JpegScans scans : kProgressiveScripts) {
    const JpegOptions options{40, 33, JpegColor::kYCbCr, Luma(2, 2), scans};
    const auto good = SegmentsOf(MakeJpeg(options));
    const auto try_file = [&](const std::vector<std::vector<uint8_t>>& segments, size_t at,
                              int what) {
      const uint64_t fast = both.paths().fast;
      ASSERT_EQ(both.Compare(Padded(Joined(segments)), region), "") << at << " " << what;
      different += both.paths().fast == fast ? 1 : 0;
    };
    ASSERT_NO_FATAL_FAILURE(try_file(good, 0, 0));
    for (size_t at = 0; at < good.size(); ++at) {
      if (good[at][1] != 0xDA) continue;
      for (const int change : {1, 2, 3, 4, 8, 16, 32, 64, 128}) {  // components, tables, band, bits
        for (size_t byte = 2; byte < 4 + 2 * size_t{good[at][4]} + 4; ++byte) {
          auto changed = good;
          changed[at][byte] ^= static_cast<uint8_t>(change);
          ASSERT_NO_FATAL_FAILURE(try_file(changed, at, change));
        }
      }
      static const std::vector<std::vector<uint8_t>> others = {
          {0xFF, 0xDD, 0, 4, 0, 0},      // restart interval: none
          {0xFF, 0xDD, 0, 4, 0, 3},      // of three MCUs
          {0xFF, 0xFE, 0, 4, 'h', 'i'},  // comment
          {0xFF, 0xDC, 0, 4, 0, 33},     // number of lines
          {0xFF, 0xD0},                  // restart
          {0xFF},                        // fill byte
          {0x00},                        // no marker
          {0xFF, 0xD9},                  // end of image
          {0xFF, 0xC4, 0, 2},            // no table
          {0xFF, 0xC4, 0, 3, 0x55},      // half a table
      };
      for (const auto& inserted : others) {
        auto changed = good;
        changed.insert(changed.begin() + static_cast<ptrdiff_t>(at), inserted);
        ASSERT_NO_FATAL_FAILURE(try_file(changed, at, inserted[inserted.size() / 2]));
      }
      for (size_t other = 0; other < good.size(); ++other) {
        auto repeated = good, moved = good, lost = good;
        repeated.insert(repeated.begin() + static_cast<ptrdiff_t>(at), good[other]);
        std::swap(moved[at], moved[other]);
        lost.erase(lost.begin() + static_cast<ptrdiff_t>(other));
        ASSERT_NO_FATAL_FAILURE(try_file(repeated, at, static_cast<int>(other)));
        ASSERT_NO_FATAL_FAILURE(try_file(moved, at, static_cast<int>(other)));
        ASSERT_NO_FATAL_FAILURE(try_file(lost, at, static_cast<int>(other)));
      }
    }
  }
  EXPECT_GT(both.paths().progressive, 50u);
  EXPECT_GT(different, 500u);
}

// Both decoders agree which row of MCUs is the last that counts: a restart marker is missing before
// each row in turn, and regions end everywhere.
TEST(Extent, MatchesLibjpeg) {
  for (const FastJpeg& kind : FastJpegs()) {
    JpegOptions options{40, 70, kind.color, kind.sampling};
    const int mcu = kind.color == JpegColor::kYCbCr && kind.sampling[0].columns == 2 ? 16 : 8;
    options.restart_interval = (40 + mcu - 1) / mcu;
    const std::vector<uint8_t> good = MakeJpeg(options);
    BothBackends both;
    for (size_t at = 0; at + 1 < good.size(); ++at) {
      if (good[at] != 0xFF || good[at + 1] < 0xD0 || good[at + 1] > 0xD7) continue;
      std::vector<uint8_t> bytes = Padded(good);
      bytes[at + 1] ^= 4;
      for (int end = 1; end <= 70; ++end) {
        for (const int first : {0, end / 2, end - 1}) {
          const Rect region{end % 20, first, 13, end - first};
          ASSERT_EQ(both.Compare(bytes, region), "") << kind.name << " " << at << Text(region);
        }
      }
    }
    EXPECT_GT(both.paths().fast, 50u) << kind.name;
    EXPECT_GT(both.paths().fallback[static_cast<size_t>(Fallback::kRestart)], 50u) << kind.name;
  }
}

Fallback ReasonFor(const std::vector<uint8_t>& bytes) {
  JpegDecoder decoder;
  KeepRows rows;
  EXPECT_TRUE(DecodeAll(decoder, Padded(bytes), {}, rows).ok());
  for (size_t i = 1; i < kFallbacks; ++i) {
    if (decoder.paths().fallback[i] == 1) return static_cast<Fallback>(i);
  }
  EXPECT_EQ(decoder.paths().fast, 1u);
  return Fallback::kNone;
}

TEST(Paths, CountTheReasonOfAFallback) {
  const auto color = JpegColor::kYCbCr;
  EXPECT_EQ(ReasonFor(MakeJpeg()), Fallback::kNone);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, {}, JpegScans::kProgressive})), Fallback::kNone);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, {}, JpegScans::kCoarse})), Fallback::kScan);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, {}, JpegScans::kOne, true})), Fallback::kProcess);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, JpegColor::kCmyk})), Fallback::kColor);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, JpegColor::kRgb})), Fallback::kColor);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, Luma(4, 1)})), Fallback::kSampling);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, {{2, 2}, {2, 1}, {2, 1}}})), Fallback::kSampling);
  EXPECT_EQ(ReasonFor(MakeJpeg({20, 20, color, {}, JpegScans::kOnePerComponent})), Fallback::kScan);
  EXPECT_EQ(ReasonFor(MakeJpeg({4, 20, color, Luma(2, 2)})), Fallback::kNarrow);
  EXPECT_EQ(ReasonFor(MakeJpeg({4, 20, color, Luma(1, 2)})), Fallback::kNone);
  std::vector<uint8_t> odd = MakeJpeg();
  odd.insert(odd.begin() + 20, 0x55);  // a byte before the second marker
  EXPECT_EQ(ReasonFor(odd), Fallback::kHeader);
  for (size_t i = 0; i < kFallbacks; ++i) {
    EXPECT_STRNE(NameOf(static_cast<Fallback>(i)), "unknown");
  }
}

// Our decoder gives up after it has delivered rows, and libjpeg-turbo finds nothing wrong: the
// resampler, begun again, gives what it would have given at once.
TEST(Paths, RowsDeliveredBeforeDamageLeaveNothingBehind) {
  MemoryBudget budget(64 << 20);
  Resampler resampler(budget);
  const Resampling task{{96, 200}, {3, 2, 90, 190}, {40, 60}, {0, 0, 40, 60}, true, {}};
  const auto row_of = [&](JpegDecoder& decoder, const std::vector<uint8_t>& bytes) {
    std::vector<uint8_t> row(40 * 60 * 3);
    resampler.Reset();
    const Result<Rect> region = resampler.Start(task, {row.data(), DType::kU8, nullptr, nullptr});
    if (!OpenPadded(decoder, bytes).ok() || !decoder.Decode(*region, resampler).ok()) row.clear();
    return row;
  };
  JpegDecoder fast, slow({}, nullptr, Backend::kLibjpegOnly);
  const std::vector<uint8_t> good = Padded(MakeJpeg({96, 200, JpegColor::kYCbCr, Luma(2, 2)}));
  for (size_t at = good.size() * 2 / 3; at < good.size() - kBufferPadding - 2; at += 4) {
    std::vector<uint8_t> bytes = good;
    bytes[at] ^= 0x40;
    ASSERT_EQ(row_of(fast, bytes), row_of(slow, bytes)) << at;
  }
  EXPECT_GT(fast.paths().fallback[static_cast<size_t>(Fallback::kBits)], 20u);
  EXPECT_GT(fast.paths().fast, 20u);
}

// Coefficients far beyond what samples give: a quantisation table with large factors instead of
// the file's own.
TEST(Paths, FallBackOnCoefficientsOutOfRange) {
  JpegOptions options;
  options.quality = 100;
  std::vector<uint8_t> bytes = MakeJpeg(options);
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] != 0xFF || bytes[i + 1] != 0xDB) continue;
    for (size_t k = 0; k < 64; ++k) bytes[i + 5 + k] = 255;
  }
  EXPECT_EQ(ReasonFor(bytes), Fallback::kCoefficient);
  BothBackends both;
  EXPECT_EQ(both.Compare(Padded(bytes), {}), "");
}

TEST(Photos, BackendsAgreeOnDamagedPhotographs) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  BothBackends both;
  uint64_t n = 0;
  for (const auto& path : paths) {
    const std::vector<uint8_t> good = ReadFile(path);
    JpegDecoder decoder;
    const Result<ImageInfo> info = OpenPadded(decoder, Padded(good));
    ASSERT_TRUE(info.ok()) << path;
    for (int i = 0; i < Effort(25); ++i) {
      RandomStream random({10, 0, ++n}, 0);
      std::vector<uint8_t> bytes = good;
      // In the data: headers of other sizes have no such regions.
      for (uint64_t flips = random.Below(4); flips > 0; --flips) {
        const size_t at = bytes.size() / 8 + random.Below(bytes.size() * 7 / 8);
        bytes[at] = static_cast<uint8_t>(random.Below(256));
      }
      const Rect region = RandomRegion(info->size, random);
      ASSERT_EQ(both.Compare(Padded(bytes), region), "") << path << " " << Text(region);
    }
  }
  EXPECT_GT(both.paths().fast, paths.size() / 4);
}

}  // namespace
}  // namespace stoker::testing
