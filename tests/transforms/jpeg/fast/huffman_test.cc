// Lookup tables match those filled by decoding each window bit by bit.
#include "transforms/jpeg/fast/entropy/huffman.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/jpeg/fast/make_huffman.h"

namespace stoker::testing {
namespace {

struct Tables {
  jpeg::DcTable dc, dc_plain;
  jpeg::AcTable ac, ac_plain;
  jpeg::SkipTable skip, skip_plain;
};

template <typename Entries>
size_t FirstDifference(const Entries& a, const Entries& b) {
  size_t i = 0;
  while (i < a.size() - jpeg::kTableSlack && std::memcmp(&a[i], &b[i], sizeof(a[i])) == 0) ++i;
  return i;
}

TEST(Huffman, TablesMatchTheReference) {
  const auto t = std::make_unique<Tables>();
  for (uint64_t n = 0; n < 200; ++n) {
    RandomStream random({3, 0, n}, 0);
    const std::vector<uint8_t> dc = RandomHuffman(SomeOf(DcSymbols(), random), random);
    const std::vector<uint8_t> ac = RandomHuffman(SomeOf(AcSymbols(), random), random);
    jpeg::PlainTables::FillDc(dc.data(), t->dc_plain);
    jpeg::PlainTables::FillAc(ac.data(), t->ac_plain);
    jpeg::PlainTables::FillSkip(ac.data(), t->skip_plain);
    ForEachTarget([&] {
      ASSERT_TRUE(jpeg::BuildDcTable(dc.data(), t->dc)) << n;
      ASSERT_TRUE(jpeg::BuildAcTable(ac.data(), t->ac)) << n;
      jpeg::BuildSkipTable(ac.data(), t->skip);
      ASSERT_EQ(FirstDifference(t->dc.entry, t->dc_plain.entry),
                t->dc.entry.size() - jpeg::kTableSlack)
          << n;
      ASSERT_EQ(FirstDifference(t->ac.entry, t->ac_plain.entry),
                t->ac.entry.size() - jpeg::kTableSlack)
          << n;
      ASSERT_EQ(FirstDifference(t->skip.entry, t->skip_plain.entry),
                t->skip.entry.size() - jpeg::kTableSlack)
          << n;
    });
    if (HasFatalFailure()) return;
  }
}

// Counts of codes by length, and symbols.
std::vector<uint8_t> Spec(std::initializer_list<int> counts, std::initializer_list<int> symbols) {
  std::vector<uint8_t> spec(16, 0);
  size_t at = 0;
  for (const int count : counts) spec[at++] = static_cast<uint8_t>(count);
  for (const int symbol : symbols) spec.push_back(static_cast<uint8_t>(symbol));
  return spec;
}

TEST(Huffman, RefusesNonBaselineTables) {
  const auto t = std::make_unique<Tables>();
  EXPECT_TRUE(jpeg::BuildDcTable(Spec({1, 1}, {0, 11}).data(), t->dc));
  EXPECT_FALSE(jpeg::BuildDcTable(Spec({1, 1}, {0, 12}).data(), t->dc));
  EXPECT_FALSE(jpeg::BuildDcTable(Spec({2}, {0, 1}).data(), t->dc));           // a code of all ones
  EXPECT_FALSE(jpeg::BuildDcTable(Spec({1, 3}, {0, 1, 2, 3}).data(), t->dc));  // too many codes
  EXPECT_TRUE(jpeg::BuildAcTable(Spec({1, 1, 1}, {0x00, 0xF0, 0xFA}).data(), t->ac));
  EXPECT_FALSE(jpeg::BuildAcTable(Spec({1, 1}, {0x00, 0x10}).data(), t->ac));
  EXPECT_FALSE(jpeg::BuildAcTable(Spec({1, 1}, {0x00, 0x0B}).data(), t->ac));
  EXPECT_FALSE(jpeg::BuildAcTable(Spec({0, 4}, {1, 2, 3, 4}).data(), t->ac));
  EXPECT_TRUE(jpeg::BuildAcTable(Spec({}, {}).data(), t->ac));  // as libjpeg: without any code
}

}  // namespace
}  // namespace stoker::testing
