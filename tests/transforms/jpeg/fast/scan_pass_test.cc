// The scans of progressive JPEGs are decoded as their bit-by-bit references do, for random bits,
// which include everything that a hostile file can contain; and blocks outside the region change
// nothing.
#include "transforms/jpeg/fast/progressive/scan_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/jpeg/fast/make_huffman.h"

namespace stoker::testing {
namespace {

constexpr int kBlocks = 45;
constexpr int kBlockGroups = (kBlocks + jpeg::kGroupBlocks - 1) / jpeg::kGroupBlocks;

// A row of blocks that keeps [from, to).
struct BlockRow {
  explicit BlockRow(int from = 0, int to = kBlocks)
      : groups(size_t{kBlockGroups} * jpeg::kGroupStride),
        masks(kBlocks),
        span{masks.data(), groups.data(), -from, to - from} {}

  int16_t& At(int block, int k) {
    const int at = span.first + block, natural = jpeg::kZigZag[static_cast<size_t>(k)];
    return groups[static_cast<size_t>(at / 4 * jpeg::kGroupStride + natural / 8 * jpeg::kGroupRow +
                                      at % 4 * 8 + natural % 8)];
  }

  std::vector<int16_t> groups;
  std::vector<uint64_t> masks;
  jpeg::BlockSpan span;
};

// Returns a code in which every second symbol of random bits ends its block, so that few blocks are
// too long; the others have 5 or 12 bits.
std::vector<uint8_t> EndingHuffman(std::vector<uint8_t> symbols, RandomStream& random) {
  symbols.erase(std::remove(symbols.begin(), symbols.end(), 0x00), symbols.end());
  for (size_t i = symbols.size(); i > 1; --i) std::swap(symbols[i - 1], symbols[random.Below(i)]);
  std::vector<uint8_t> spec(16, 0);
  spec[0] = 1;
  spec[4] = static_cast<uint8_t>(std::min<size_t>(symbols.size(), 14));
  spec[11] = static_cast<uint8_t>(symbols.size() - spec[4]);
  spec.push_back(0x00);
  spec.insert(spec.end(), symbols.begin(), symbols.end());
  return spec;
}

// Random bits.
struct RandomScan {
  RandomScan(uint64_t n, bool refines) {
    RandomStream random({11, refines ? 1u : 0u, n}, 0);
    std::vector<uint8_t> symbols;
    for (unsigned run = 0; run < 16; ++run) {
      for (unsigned size = 0; size <= (refines ? 1u : 10u); ++size) {
        symbols.push_back(static_cast<uint8_t>(run << 4 | size));
      }
    }
    if (n % 15 == 0) symbols.push_back(0x25);  // too large for a refinement
    symbols = SomeOf(symbols, random);
    const std::vector<uint8_t> ac =
        n % 4 == 0 ? RandomHuffman(symbols, random) : EndingHuffman(symbols, random);
    EXPECT_TRUE(jpeg::BuildScanTable(ac.data(), table));
    const std::vector<uint8_t> codes = RandomHuffman(SomeOf(DcSymbols(), random), random);
    EXPECT_TRUE(jpeg::BuildDcTable(codes.data(), dc));
    data.resize(4000 + jpeg::kRoundBytes + 64);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Below(256));
    size = n % 3 == 0 ? random.Below(300) : 4000;
    first = 1 + static_cast<int>(random.Below(63));
    if (n % 2 == 0) first = 1;
    last =
        n % 4 == 2 ? 63 : first + static_cast<int>(random.Below(static_cast<uint64_t>(64 - first)));
    low = static_cast<int>(random.Below(n % 8 == 1 ? 14 : 4));
  }

  jpeg::AcScan ac() const { return {&table, first, last, low, 0}; }

  jpeg::ScanTable table;
  jpeg::DcTable dc;
  std::vector<uint8_t> data;
  size_t size = 0;
  int first = 1, last = 63, low = 0;
};

// The state of a pass before or after it.
struct Pass {
  explicit Pass(const RandomScan& scan) : ac(scan.ac()) {
    state.reader.next = scan.data.data();
    state.stop = scan.data.data() + scan.size;
  }

  int64_t Position(const RandomScan& scan) const {
    return (state.reader.next - scan.data.data()) * 8 - state.reader.count;
  }

  jpeg::EntropyState state;
  jpeg::AcScan ac;
  int reached = 0;
};

void ExpectSame(const RandomScan& scan, const Pass& got, const Pass& plain) {
  ASSERT_EQ(got.state.damaged, plain.state.damaged);
  if (plain.state.damaged) return;  // the position where it stops does not matter then
  ASSERT_EQ(got.reached, plain.reached);
  ASSERT_EQ(got.Position(scan), plain.Position(scan));
  ASSERT_EQ(got.ac.end_run, plain.ac.end_run);
  ASSERT_EQ(got.state.dc, plain.state.dc);
}

// Blocks [from, to) are the same, and every mask says which AC coefficients are not zero.
void ExpectSame(BlockRow& got, BlockRow& plain, int from, int to) {
  for (int block = 0; block < kBlocks; ++block) {
    for (int k = 0; k < 64; ++k) {
      const bool kept = from <= block && block < to;
      ASSERT_TRUE(!kept || got.At(block, k) == plain.At(block, k)) << block << " " << k;
      const bool set = (got.masks[static_cast<size_t>(block)] >> (63 - k) & 1) != 0;
      ASSERT_EQ(set, k != 0 && plain.At(block, k) != 0) << block << " " << k;
    }
  }
}

// The passes over one component: its AC coefficients are decoded, then refined as long as that
// finds no damage. Counts the passes without damage that decoded all blocks.
void TryAc(uint64_t n, int from, int to, uint64_t& decoded, uint64_t& refined) {
  BlockRow row(from, to), plain_row;
  const RandomScan scan(n, false);
  Pass got(scan), plain(scan);
  got.reached = jpeg::DecodeAc(got.state, got.ac, row.span, 0, kBlocks);
  plain.reached = jpeg::PlainPass::DecodeAc(plain.state, plain.ac, plain_row.span, 0, kBlocks);
  ExpectSame(scan, got, plain);
  if (::testing::Test::HasFatalFailure() || plain.state.damaged) return;
  ExpectSame(row, plain_row, from, to);
  decoded += plain.reached == kBlocks ? 1 : 0;
  for (int bit = scan.low; bit-- > 0 && !::testing::Test::HasFatalFailure();) {
    RandomScan refining(n + 1000 * static_cast<uint64_t>(bit), true);
    refining.first = 1;
    refining.last = 63;
    refining.low = bit;
    Pass got_bit(refining), plain_bit(refining);
    got_bit.reached = jpeg::RefineAc(got_bit.state, got_bit.ac, row.span, 0, kBlocks);
    plain_bit.reached =
        jpeg::PlainPass::RefineAc(plain_bit.state, plain_bit.ac, plain_row.span, 0, kBlocks);
    ExpectSame(refining, got_bit, plain_bit);
    if (::testing::Test::HasFatalFailure() || plain_bit.state.damaged) return;
    ExpectSame(row, plain_row, from, to);
    refined += plain_bit.reached == kBlocks ? 1 : 0;
  }
}

TEST(ScanPass, AcScansMatchTheReference) {
  ForEachTarget([] {
    uint64_t decoded = 0, refined = 0;
    const auto cases = static_cast<uint64_t>(Effort(3000));
    for (uint64_t n = 0; n < cases; ++n) {
      SCOPED_TRACE(n);
      RandomStream random({12, 0, n}, 0);
      const int from = n % 3 == 0 ? 0 : static_cast<int>(random.Below(kBlocks));
      const auto right = static_cast<uint64_t>(kBlocks - from);
      TryAc(n, from, from + static_cast<int>(n % 3 == 0 ? right : random.Below(right + 1)), decoded,
            refined);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(decoded, cases / 10);
    EXPECT_GT(refined, cases / 20);
  });
}

// 4:2:0: two rows of two blocks an MCU, and two components of one.
struct Mcus {
  explicit Mcus(const RandomScan& scan, int kept_from = 0, int kept_to = kBlocks)
      : from(kept_from), to(kept_to) {
    rows.reserve(4);
    for (int i = 0; i < 4; ++i) rows.emplace_back(from, to);
    for (size_t i = 0; i < 4; ++i) {
      rows[i].span.mask = nullptr;  // not used
      dc.span[i] = {rows[i].span, &scan.dc, i < 2 ? 0 : static_cast<int>(i) - 1, i < 2 ? 2 : 1};
    }
    dc.spans = 4;
    dc.low = scan.low;
  }

  int from, to;
  std::vector<BlockRow> rows;
  jpeg::DcScan dc;
};

TEST(ScanPass, DcScansMatchTheReference) {
  constexpr int kMcus = kBlocks / 2;
  ForEachTarget([] {
    for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(500)); ++n) {
      SCOPED_TRACE(n);
      const RandomScan scan(n, false);
      const int from = static_cast<int>(n % 20);
      Mcus mcus(scan, from, from + static_cast<int>(n % 7)), plain_mcus(scan);
      for (const bool refines : {false, true}) {
        Pass got(scan), plain(scan);
        got.reached = (refines ? jpeg::RefineDc : jpeg::DecodeDc)(got.state, mcus.dc, 0, kMcus);
        plain.reached = (refines ? jpeg::PlainPass::RefineDc : jpeg::PlainPass::DecodeDc)(
            plain.state, plain_mcus.dc, 0, kMcus);
        ExpectSame(scan, got, plain);
        if (::testing::Test::HasFatalFailure()) return;
        if (plain.state.damaged) break;
        for (size_t i = 0; i < 4; ++i) {
          BlockRow& row = mcus.rows[i];
          for (int block = mcus.from; block < mcus.to; ++block) {
            ASSERT_EQ(row.At(block, 0), plain_mcus.rows[i].At(block, 0)) << i << " " << block;
          }
        }
        mcus.dc.low = plain_mcus.dc.low = 0;
      }
    }
  });
}

// Blocks without a code of their own have a bit for each of up to 63 coefficients.
TEST(ScanPass, CorrectsAnyNumberOfCoefficients) {
  ForEachTarget([] {
    for (int ones = 0; ones <= 63; ++ones) {
      SCOPED_TRACE(ones);
      RandomScan scan(static_cast<uint64_t>(ones), true);
      scan.first = 1;
      scan.last = 63;
      scan.low = 0;
      scan.size = 4000;
      BlockRow row, plain_row;
      for (int block = 0; block < kBlocks; ++block) {
        for (int k = 63; k > 63 - ones; --k) {
          for (BlockRow* r : {&row, &plain_row}) r->At(block, k) = k % 2 == 0 ? 2 : -2;
          row.masks[static_cast<size_t>(block)] |= uint64_t{1} << (63 - k);
        }
      }
      Pass got(scan), plain(scan);
      got.ac.end_run = plain.ac.end_run = kBlocks;
      got.reached = jpeg::RefineAc(got.state, got.ac, row.span, 0, kBlocks);
      plain.reached = jpeg::PlainPass::RefineAc(plain.state, plain.ac, plain_row.span, 0, kBlocks);
      ASSERT_EQ(plain.reached, kBlocks);
      ExpectSame(scan, got, plain);
      ExpectSame(row, plain_row, 0, kBlocks);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(ScanTable, RefusesValuesThatAreTooLarge) {
  std::vector<uint8_t> spec(16);
  spec[0] = 1;
  spec.push_back(0x0A);
  jpeg::ScanTable table;
  EXPECT_TRUE(jpeg::BuildScanTable(spec.data(), table));
  spec[16] = 0x0B;
  EXPECT_FALSE(jpeg::BuildScanTable(spec.data(), table));
  spec[0] = 2;  // both codes of one bit
  spec[16] = 0x01;
  spec.push_back(0x02);
  EXPECT_FALSE(jpeg::BuildScanTable(spec.data(), table));
}

}  // namespace
}  // namespace stoker::testing
