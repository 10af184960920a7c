// ScanData gives a parser the whole scan without its stuffed zeros, whatever the data and however
// much each round uses.
#include "transforms/jpeg/fast/entropy/scan_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/effort.h"

namespace stoker::testing {
namespace {

struct Scan {
  std::vector<uint8_t> file;                  // with markers, and 64 bytes after
  std::vector<std::vector<uint8_t>> segment;  // without stuffed zeros
};

// Returns random bytes of which one in `rare` is 0xFF; all are if that is 1.
Scan MakeScan(RandomStream& random, uint64_t rare) {
  Scan scan;
  const uint64_t segments = 1 + random.Below(3);
  for (uint64_t s = 0; s < segments; ++s) {
    scan.segment.emplace_back(random.Below(40'000));
    for (uint8_t& byte : scan.segment.back()) {
      byte = random.Below(rare) == 0 ? 0xFF : static_cast<uint8_t>(random.Below(255));
      scan.file.push_back(byte);
      if (byte == 0xFF) scan.file.push_back(0);
    }
    scan.file.push_back(0xFF);
    scan.file.push_back(static_cast<uint8_t>(s + 1 == segments ? 0xD9 : 0xD0 + s));
  }
  scan.file.resize(scan.file.size() + 64, 0xFF);
  return scan;
}

// Uses rounds of at most kRoundBytes, until the segment's data have been used up, or more bits than
// there are.
void ReadSegment(const std::vector<uint8_t>& bytes, RandomStream& random, jpeg::ScanData& data,
                 jpeg::EntropyState& state) {
  size_t used = 0;
  const size_t most = 1 + random.Below(jpeg::kRoundBytes);
  while (used <= bytes.size()) {
    const size_t round = 1 + random.Below(most), there = std::min(round, bytes.size() - used);
    ASSERT_TRUE(std::equal(state.reader.next, state.reader.next + there,
                           bytes.begin() + static_cast<ptrdiff_t>(used)))
        << "at " << used << " of " << bytes.size();
    state.reader.next += round;
    used += round;
    ASSERT_EQ(data.UsedBits(state), static_cast<int64_t>(8 * used));
    if (!jpeg::ScanData::Passed(state)) continue;
    ASSERT_EQ(data.Provide(state), used <= bytes.size());
    if (used == bytes.size()) return;
  }
}

TEST(ScanData, GivesTheScanInPieces) {
  const auto data = std::make_unique<jpeg::ScanData>();
  for (uint64_t n = 0; n < static_cast<uint64_t>(Effort(300)); ++n) {
    RandomStream random({9, 0, n}, 0);
    constexpr uint64_t kRare[] = {1, 2, 3, 50, 256, 1'000'000};
    const Scan scan = MakeScan(random, kRare[n % 6]);
    jpeg::EntropyState state;
    data->Start(std::span(scan.file).first(scan.file.size() - 64));
    ASSERT_TRUE(data->Provide(state));
    for (size_t s = 0; s < scan.segment.size(); ++s) {
      ReadSegment(scan.segment[s], random, *data, state);
      if (HasFatalFailure()) FAIL() << n;
      if (s + 1 == scan.segment.size()) break;
      ASSERT_FALSE(data->Restart(static_cast<int>(s) + 1, state)) << n;  // another number
      ASSERT_TRUE(data->Restart(static_cast<int>(s), state)) << n;
    }
  }
}

}  // namespace
}  // namespace stoker::testing
