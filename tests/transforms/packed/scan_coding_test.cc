// Coding coefficients matches the reference, with every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "tests/testing/effort.h"
#include "tests/testing/on_target.h"
#include "transforms/packed/scan/pass_coding.h"
#include "transforms/packed/scan/scan_coding.h"
#include "transforms/packed/scan/scan_writer.h"

namespace stoker::testing {
namespace {

using packed::kGroupBlocks;
using packed::kGroupWords;

class ScanCoding : public OnTarget {};
INSTANTIATE_TEST_SUITE_P(Cpu, ScanCoding, EachTarget(), NameOfTarget);

// Codes of any lengths and bits, also such that no JPEG can have together.
packed::ScanCodes RandomCodes(RandomStream& random) {
  packed::ScanCodes codes{};
  const auto code = [&random](size_t size) {
    const uint64_t length = 1 + random.Below(16);
    return random.Below(uint64_t{1} << length) << (8 + size) | (length + size);
  };
  for (size_t symbol = 0; symbol < 256; ++symbol) codes.ac[symbol] = code(symbol & 15);
  for (size_t size = 0; size < 12; ++size) codes.dc[size] = code(size);
  return codes;
}

// The words of `groups` groups: few or many that are not zero, small or large.
std::vector<int16_t> RandomWords(int groups, RandomStream& random) {
  std::vector<int16_t> words(static_cast<size_t>(groups) * kGroupWords);
  for (size_t first = 0; first < words.size(); first += kGroupWords) {
    const uint64_t one_in = 1 + random.Below(random.Below(2) == 0 ? 4 : 60),
                   most = uint64_t{1} << random.Below(11);
    for (size_t i = first; i < first + kGroupWords; ++i) {
      if (random.Below(one_in) != 0) continue;
      words[i] = static_cast<int16_t>(random.Below(2 * most - 1) - (most - 1));
    }
  }
  return words;
}

packed::BlockRows RandomRows(RandomStream& random) {
  jpeg::FrameHeader header;
  header.components = random.Below(3) == 0 ? 1 : 3;
  header.component[0].columns = 1 + static_cast<int>(random.Below(2));
  header.component[0].rows = 1 + static_cast<int>(random.Below(2));
  header.size = {.width = 1 + static_cast<int>(random.Below(300)), .height = 8};
  return packed::BlockRows(header);
}

struct Coded {
  std::vector<uint8_t> bytes;
  std::array<int, 3> predictor;

  friend bool operator==(const Coded&, const Coded&) = default;
};

// Codes the MCUs in two steps.
template <class Code>
Coded CodeAll(const packed::BlockRows& rows, const packed::McuWords& mcus,
              std::span<const packed::ScanCodes, 3> codes, const Code& code) {
  Coded coded;
  coded.predictor = {3, -5, 7};
  std::vector<uint8_t> bytes(static_cast<size_t>(rows.mcus + 1) * packed::kMcuRoom);
  packed::BitSink bits;
  bits.MoveTo(bytes.data());
  bits.Put(1, 3);
  code(rows, mcus, 0, rows.mcus / 2, codes, coded.predictor, bits);
  code(rows, mcus, rows.mcus / 2, rows.mcus, codes, coded.predictor, bits);
  bits.Fill(false);
  coded.bytes.assign(bytes.data(), bits.next());
  return coded;
}

TEST_P(ScanCoding, MatchesTheReference) {
  size_t bytes = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    RandomStream random({4, 0, n}, 0);
    const packed::BlockRows rows = RandomRows(random);
    MemoryBudget memory(1 << 24);
    std::vector<GrowingBuffer> aligned;
    std::vector<std::vector<uint64_t>> want, got;
    packed::McuWords mcus;
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const int groups = rows.row[r].groups();
      const std::vector<int16_t> words = RandomWords(groups, random);
      ASSERT_TRUE(aligned.emplace_back(memory).Grow(words.size() * sizeof(int16_t)).ok());
      auto* const copy = reinterpret_cast<int16_t*>(aligned.back().data());
      std::copy(words.begin(), words.end(), copy);
      const auto blocks = static_cast<size_t>(groups) * kGroupBlocks;
      packed::FindNonZeroPlain(copy, groups, want.emplace_back(blocks).data());
      packed::FindNonZero(copy, groups, got.emplace_back(blocks).data());
      ASSERT_EQ(got.back(), want.back()) << n;
      mcus.words[r] = copy;
      mcus.masks[r] = got.back().data();
    }
    const std::array<packed::ScanCodes, 3> codes = {RandomCodes(random), RandomCodes(random),
                                                    RandomCodes(random)};
    const Coded wanted = CodeAll(rows, mcus, codes, packed::CodeMcusPlain);
    ASSERT_TRUE(CodeAll(rows, mcus, codes, packed::CodeMcus) == wanted) << n;
    bytes += wanted.bytes.size();
  }
  EXPECT_GT(bytes, 500'000u);
}

packed::ScanCodes LongestCodes() {
  packed::ScanCodes longest{};
  for (size_t symbol = 0; symbol < 256; ++symbol) {
    longest.ac[symbol] = uint64_t{0xFFFF} << 8 << (symbol & 15) | (16 + (symbol & 15));
    longest.dc[symbol] = uint64_t{0xFFFF} << 8 << (symbol & 31) | (16 + (symbol & 31));
  }
  return longest;
}

// In a damaged file a DC coefficient may have any 16 bits, and an AC coefficient any 12: the memory
// for the MCUs suffices.
TEST_P(ScanCoding, KeepsToItsMemory) {
  for (uint64_t n = 0; n < 500; ++n) {
    RandomStream random({5, 0, n}, 0);
    const packed::BlockRows rows = RandomRows(random);
    const packed::ScanCodes longest = LongestCodes();
    packed::McuWords mcus;
    int groups = 0;
    for (const packed::BlockRow& row : rows.all()) groups = std::max(groups, row.groups());
    MemoryBudget memory(1 << 24);
    GrowingBuffer words(memory);
    const size_t count = static_cast<size_t>(groups) * kGroupWords;
    ASSERT_TRUE(words.Grow(count * sizeof(int16_t)).ok());
    auto* const word = reinterpret_cast<int16_t*>(words.data());
    for (size_t i = 0; i < count; ++i) {
      // Mostly the longest: AC coefficients of ±1023, DC coefficients far apart.
      const bool dc = i % kGroupWords < 16 && i % 4 == 0;
      word[i] = static_cast<int16_t>(n % 2 == 0 ? random.Below(65536)
                                     : dc       ? (i / 4 % 2 == 0 ? 32767 : -32767)
                                                : 1023);
    }
    std::vector<uint64_t> non_zero(static_cast<size_t>(groups) * kGroupBlocks);
    packed::FindNonZero(word, groups, non_zero.data());
    mcus.words.fill(word);
    mcus.masks.fill(non_zero.data());
    const std::array<packed::ScanCodes, 3> codes = {longest, longest, longest};
    const Coded coded = CodeAll(rows, mcus, codes, packed::CodeMcus);
    EXPECT_LE(coded.bytes.size(), static_cast<size_t>(rows.mcus) * packed::kMcuRoom);
  }
}

class PassCoding : public OnTarget {};
INSTANTIATE_TEST_SUITE_P(Cpu, PassCoding, EachTarget(), NameOfTarget);

// A row of a component's blocks, and a scan that codes them.
struct RandomPass {
  static constexpr int kBlocks = 100, kGroups = kBlocks / kGroupBlocks;

  explicit RandomPass(RandomStream& random)
      : words(memory), masks(size_t{kBlocks} * packed::MasksOf(packed::kMostLevels)) {
    EXPECT_TRUE(words.Grow(size_t{kGroups} * kGroupWords * sizeof(int16_t)).ok());
    header.components = 1;
    header.size = {.width = 8 * kBlocks, .height = 8};
    pass.first = static_cast<int>(random.Below(4) == 0 ? 0 : 1 + random.Below(63));
    pass.last = pass.first == 0 ? 0 : 63 - static_cast<int>(random.Below(64 - pass.first));
    pass.low = static_cast<int>(random.Below(random.Below(2) == 0 ? 3 : 14));
    pass.refines = random.Below(3) != 0;
    pass.jpegli_runs = random.Below(4) == 0;
    mcus.levels = std::min(pass.low + 1 + static_cast<int>(random.Below(3)), packed::kMostLevels);
  }

  int16_t* first() { return reinterpret_cast<int16_t*>(words.data()); }
  // After `words` has been set.
  void FindBits() {
    packed::FindBits(first(), kGroups, mcus.levels, masks.data());
    mcus.words[0] = first();
    mcus.masks[0] = masks.data();
  }

  // Codes the blocks in two steps.
  template <class Code>
  std::vector<uint8_t> Coded(const packed::ScanCodes& codes, const Code& code) const {
    const std::array<packed::ScanCodes, 3> all = {codes, codes, codes};
    const packed::BlockRows rows(header);
    packed::Pass its = pass;
    std::vector<uint8_t> bytes(size_t{kBlocks + 2} * packed::kMcuRoom);
    packed::BitSink bits;
    bits.MoveTo(bytes.data());
    code(rows, mcus, 0, kBlocks / 3, all, its, bits);
    code(rows, mcus, kBlocks / 3, kBlocks, all, its, bits);
    EXPECT_LE(bits.next(), bytes.data() + kBlocks * packed::kMcuRoom);
    EndRun(codes, its, bits);
    bits.Fill(false);
    bytes.resize(static_cast<size_t>(bits.next() - bytes.data()));
    return bytes;
  }

  jpeg::FrameHeader header;
  packed::Pass pass;
  packed::McuWords mcus;
  MemoryBudget memory{1 << 24};
  GrowingBuffer words;
  std::vector<uint64_t> masks;
};

TEST_P(PassCoding, MatchesTheReference) {
  const auto tries = static_cast<uint64_t>(Effort(2000));
  size_t bytes = 0;
  for (uint64_t n = 0; n < tries; ++n) {
    RandomStream random({6, 0, n}, 0);
    RandomPass scan(random);
    const std::vector<int16_t> words = RandomWords(RandomPass::kGroups, random);
    std::copy(words.begin(), words.end(), scan.first());
    scan.FindBits();
    std::vector<uint64_t> masks(scan.masks.size());
    packed::FindBitsPlain(scan.first(), RandomPass::kGroups, scan.mcus.levels, masks.data());
    ASSERT_EQ(scan.masks, masks) << n;
    const packed::ScanCodes codes = RandomCodes(random);
    const std::vector<uint8_t> want = scan.Coded(codes, packed::CodePassPlain);
    ASSERT_EQ(scan.Coded(codes, packed::CodePass), want) << n;
    bytes += want.size();
  }
  EXPECT_GT(bytes, 100 * tries);
}

// As ScanCoding.KeepsToItsMemory, also where bits that correct coefficients have been kept.
TEST_P(PassCoding, KeepsToItsMemory) {
  const packed::ScanCodes longest = LongestCodes();
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(1000)); ++n) {
    RandomStream random({7, 0, n}, 0);
    RandomPass scan(random);
    for (size_t i = 0; i < size_t{RandomPass::kGroups} * kGroupWords; ++i) {
      scan.first()[i] = static_cast<int16_t>(n % 3 == 0   ? random.Below(65536)
                                             : n % 3 == 1 ? 1023
                                                          : 2);
    }
    scan.FindBits();
    const std::array<packed::ScanCodes, 3> codes = {longest, longest, longest};
    const packed::BlockRows rows(scan.header);
    std::vector<uint8_t> room(3 * packed::kMcuRoom);
    packed::BitSink bits;
    const auto bytes = [&] { return static_cast<size_t>(bits.next() - room.data()); };
    for (int i = 0; i < 5 * RandomPass::kBlocks; ++i) {
      const int block = i % RandomPass::kBlocks;
      bits.MoveTo(room.data());
      packed::CodePass(rows, scan.mcus, block, block + 1, codes, scan.pass, bits);
      ASSERT_LE(bytes(), packed::kMcuRoom) << n << ", " << i;
    }
    bits.MoveTo(room.data());
    EndRun(longest, scan.pass, bits);
    ASSERT_LE(bytes(), packed::kMcuRoom) << n;
  }
}

// A writer's room for a row, with the longest codes and any restart interval.
TEST_P(PassCoding, KeepsToTheRoomOfARow) {
  std::vector<uint8_t> table(16 + 255);  // all codes of 16 bits
  table[15] = 255;
  for (size_t i = 16; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i - 16);
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(300)); ++n) {
    RandomStream random({8, 0, n}, 0);
    RandomPass one(random);
    for (size_t i = 0; i < size_t{RandomPass::kGroups} * kGroupWords; ++i) {
      one.first()[i] = static_cast<int16_t>(n % 2 == 0 ? random.Below(65536) : 2);
    }
    one.FindBits();
    constexpr int kRows = 5;
    one.header.size.height = 8 * kRows;
    jpeg::Scan scan{.components = 1, .ac = table.data()};
    scan.dc[0] = table.data();
    scan.first = one.pass.first;
    scan.last = one.pass.last;
    scan.low = one.pass.low;
    scan.refines = one.pass.refines;
    scan.restart_interval = static_cast<int>(random.Below(2 * RandomPass::kBlocks));
    constexpr size_t kRoom = (RandomPass::kBlocks + 1) * packed::kMcuRoom;
    std::vector<uint8_t> room(kRoom + 1000, 0xA5), out;
    packed::ScanWriter writer;
    writer.Start({one.header, 0, room}, scan, out);
    for (int row = 0; row < kRows; ++row) writer.WriteRow(packed::BlockRows(one.header), one.mcus);
    writer.Finish();
    ASSERT_EQ(std::count(room.begin() + kRoom, room.end(), 0xA5), 1000) << n;
  }
}

}  // namespace
}  // namespace stoker::testing
