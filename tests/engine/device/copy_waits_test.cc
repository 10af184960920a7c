#include "engine/device/copy_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace stoker {
namespace {

// The copier asked the host at 100 and had the batch at 180: 60 storage, 20 decode.
HostWait Host(BatchName name = {}) {
  return {.name = name,
          .asked_ns = 100,
          .taken_ns = 180,
          .causes = {.storage_ns = 60, .decode_ns = 20}};
}

void ExpectCauses(const WaitCauses& causes, uint64_t storage, uint64_t decode, uint64_t copy,
                  uint64_t other) {
  EXPECT_EQ(causes.storage_ns, storage);
  EXPECT_EQ(causes.decode_ns, decode);
  EXPECT_EQ(causes.copy_ns, copy);
  EXPECT_EQ(causes.other_ns, other);
}

TEST(CopyWaits, TakeTheCausesOfTheHostsWait) {
  ExpectCauses(ExplainCopyWait(Host(), 190, 90, 195), 60, 20, 10, 10 + 5);
  ExpectCauses(ExplainCopyWait(Host(), 190, 140, 195), 30, 10, 10, 5);  // half of the host's wait
  ExpectCauses(ExplainCopyWait(Host(), 190, 185, 195), 0, 0, 5, 5);
  ExpectCauses(ExplainCopyWait(Host(), 190, 192, 195), 0, 0, 0, 3);  // the batch was ready
}

TEST(CopyWaits, UnexplainedTimeIsOther) {
  HostWait host = Host();
  host.causes = {.decode_ns = 20};
  ExpectCauses(ExplainCopyWait(host, 180, 100, 180), 0, 20, 0, 60);
}

TEST(CopyWaits, AlwaysAddUp) {
  std::mt19937_64 random(1);
  const auto some = [&]() -> uint64_t {
    switch (random() % 8) {
      case 0:
        return 0;
      case 1:
        return random();
      case 2:
        return std::numeric_limits<uint64_t>::max();
      default:
        return random() % 100;
    }
  };
  for (int round = 0; round < 20'000; ++round) {
    const uint64_t asked = some();
    const uint64_t taken = std::max(asked, some());
    const HostWait host{{}, some(), some(), {some(), some(), some(), some()}};
    ASSERT_EQ(ExplainCopyWait(host, some(), asked, taken).sum(), taken - asked);
  }
}

TEST(CopyWaits, MatchHostAndDeviceWaitsByBatchName) {
  CopyWaits waits;
  waits.AddHostWait(Host({0, 0}));
  waits.AddHostWait(Host({0, 1}));
  waits.AddDeviceWait({0, 1}, 190, 140, 195);  // the first wait was dropped
  waits.AddHostWait(Host({0, 1}));
  waits.AddDeviceWait({0, 0}, 190, 200, 205);  // no host wait is known for it
  waits.AddOtherWait(215, 217);
  CopyWaits::Totals totals = waits.totals();
  EXPECT_EQ(totals.wait_ns, 55 + 5 + 2);
  EXPECT_EQ(totals.consumer_ns, 5 + 10);
  ExpectCauses(totals.waited, 30, 10, 10, 5 + 5 + 2);
  waits.Drop();
  waits.AddDeviceWait({0, 1}, 290, 300, 305);
  totals = waits.totals();
  EXPECT_EQ(totals.wait_ns, 55 + 5 + 2 + 5);
  EXPECT_EQ(totals.consumer_ns, 5 + 10);
}

}  // namespace
}  // namespace stoker
