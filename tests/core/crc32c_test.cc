// CRC-32C: the vectors of RFC 3720, and the CPU's instruction against the table.
#include "core/hash/crc32c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace stoker {
namespace {

void ExpectCrc(std::span<const uint8_t> bytes, uint32_t crc) {
  EXPECT_EQ(Crc32cPlain(bytes), crc);
  EXPECT_EQ(Crc32c(bytes), crc);
}

// RFC 3720, B.4.
TEST(Crc32c, GivesThePublishedValues) {
  std::array<uint8_t, 32> bytes{};
  ExpectCrc(bytes, 0x8A9136AA);
  bytes.fill(0xFF);
  ExpectCrc(bytes, 0x62A8AB43);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  ExpectCrc(bytes, 0x46DD794E);
  std::ranges::reverse(bytes);
  ExpectCrc(bytes, 0x113FDB5C);
  constexpr std::string_view kDigits = "123456789";
  ExpectCrc({reinterpret_cast<const uint8_t*>(kDigits.data()), kDigits.size()}, 0xE3069283);
  ExpectCrc({}, 0);
}

TEST(Crc32c, TheInstructionGivesWhatTheTableGives) {
  if (!Crc32cByInstruction({})) GTEST_SKIP() << "this CPU has no instruction for it";
  std::mt19937_64 random(1);
  std::vector<uint8_t> bytes(40'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (int i = 0; i < 2000; ++i) {
    // Sizes around the places where three parts, and words, begin and end.
    const size_t size = i < 1000 ? static_cast<size_t>(i) : random() % 7 * 3072 + random() % 40;
    const auto part = std::span(bytes).subspan(random() % 64, size);
    const auto before = static_cast<uint32_t>(random());
    ASSERT_EQ(Crc32cByInstruction(part, before), Crc32cPlain(part, before)) << size << " bytes";
  }
}

TEST(Crc32c, FoldingGivesWhatTheTableGives) {
  if (!Crc32cByFolding({})) GTEST_SKIP() << "this CPU has no instructions for it";
  std::mt19937_64 random(2);
  std::vector<uint8_t> bytes(40'000);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (int i = 0; i < 2000; ++i) {
    const size_t size = i < 1000 ? static_cast<size_t>(i) : random() % 130 * 256 + random() % 20;
    const auto part = std::span(bytes).subspan(random() % 64, size);
    const auto before = static_cast<uint32_t>(random());
    ASSERT_EQ(Crc32cByFolding(part, before), Crc32cPlain(part, before)) << size << " bytes";
    ASSERT_EQ(Crc32c(part, before), Crc32cPlain(part, before)) << size << " bytes";
  }
}

TEST(Crc32c, GoesOnFromThePart) {
  std::vector<uint8_t> bytes(10'000);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  for (const size_t cut : {0, 1, 100, 5000, 10'000}) {
    const uint32_t before = Crc32c(std::span(bytes).first(cut));
    EXPECT_EQ(Crc32c(std::span(bytes).subspan(cut), before), Crc32cPlain(bytes)) << cut;
  }
}

}  // namespace
}  // namespace stoker
