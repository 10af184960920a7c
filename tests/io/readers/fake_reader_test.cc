#include "tests/testing/storage/fake_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "core/memory/memory_budget.h"

namespace stoker::testing {
namespace {

std::shared_ptr<FakeDisk> DiskOf(int files) {
  auto disk = std::make_shared<FakeDisk>();
  for (int i = 0; i < files; ++i) {
    disk->files[std::to_string(i)] = std::vector<uint8_t>(100 + i, static_cast<uint8_t>(i));
  }
  return disk;
}

// Reads files 0 … n - 1 at depth 16. Returns the order in which they completed, failures as
// "!path".
std::vector<std::string> ReadAll(std::shared_ptr<const FakeDisk> disk, int n, uint64_t seed) {
  MemoryBudget budget(1 << 20);
  FakeReader reader(disk, 16, seed);
  std::vector<ReadRequest> requests(n);
  std::vector<ReadRequest*> waiting, done(4);
  for (int i = 0; i < n; ++i) {
    requests[i].path = std::to_string(i);
    requests[i].buffer = GrowingBuffer(budget);
    waiting.push_back(&requests[i]);
  }
  std::vector<std::string> order;
  size_t submitted = 0;
  while (order.size() < waiting.size()) {
    submitted += reader.Submit(std::span(waiting).subspan(submitted));
    EXPECT_LE(reader.in_flight(), reader.capacity());
    const size_t got = reader.Reap(done, /*wait=*/true);
    EXPECT_GT(got, 0u);
    for (size_t i = 0; i < got; ++i) {
      const ReadRequest& r = *done[i];
      order.push_back(r.status.ok() ? r.path : "!" + r.path);
      if (!r.status.ok()) continue;
      const std::vector<uint8_t>& bytes = disk->files.at(r.path);
      EXPECT_EQ(r.size, bytes.size());
      EXPECT_EQ(std::memcmp(r.buffer.data(), bytes.data(), bytes.size()), 0);
    }
  }
  EXPECT_EQ(reader.Reap(done, true), 0u);
  return order;
}

TEST(FakeReader, CompletesAllInASeededRandomOrder) {
  const auto disk = DiskOf(60);
  const std::vector<std::string> order = ReadAll(disk, 60, 1);
  EXPECT_EQ(order, ReadAll(disk, 60, 1));
  EXPECT_NE(order, ReadAll(disk, 60, 2));
  std::vector<std::string> sorted = order;
  std::ranges::sort(sorted, {}, [](const std::string& s) { return std::stoi(s); });
  EXPECT_NE(order, sorted);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(sorted[i], std::to_string(i));
}

TEST(FakeReader, InjectsThePlannedFaults) {
  auto disk = DiskOf(30);
  disk->faults["3"] = {EACCES};
  disk->faults["4"] = {EIO, 0};  // never
  disk->files.erase("5");
  std::vector<std::string> failed = ReadAll(disk, 30, 7);
  std::erase_if(failed, [](const std::string& s) { return s[0] != '!'; });
  std::ranges::sort(failed);
  EXPECT_EQ(failed, (std::vector<std::string>{"!3", "!5"}));
  disk->random_failures = 1;
  failed = ReadAll(disk, 30, 7);
  EXPECT_TRUE(std::ranges::all_of(failed, [](const std::string& s) { return s[0] == '!'; }));
}

TEST(FakeReader, TransientFaultsEnd) {
  auto disk = DiskOf(1);
  disk->faults["0"] = {EIO, 2};
  disk->at_once = 1;
  MemoryBudget budget(1 << 20);
  ReadRequest request;
  request.path = "0";
  request.buffer = GrowingBuffer(budget);
  ReadRequest* pointer = &request;
  FakeReader reader(disk, 1, 1);
  for (bool works : {false, false, true, true}) {
    EXPECT_EQ(reader.Submit({&pointer, 1}), 1u);
    EXPECT_EQ(reader.Submit({&pointer, 1}), 0u);       // full
    EXPECT_EQ(reader.Reap({&pointer, 1}, false), 1u);  // at once
    EXPECT_EQ(request.status.ok(), works);
    EXPECT_EQ(request.size, works ? 100u : 0u);
  }
}

TEST(FakeReader, LateReadsNeedSeveralReaps) {
  auto disk = DiskOf(1);
  disk->at_once = 0;
  disk->longest_delay = 3;
  MemoryBudget budget(1 << 20);
  ReadRequest request;
  request.path = "0";
  request.offset = 90;
  request.length = 10;
  request.buffer = GrowingBuffer(budget);
  ReadRequest* pointer = &request;
  FakeReader reader(disk, 1, 3);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(reader.Submit({&pointer, 1}), 1u);
    EXPECT_EQ(reader.Reap({&pointer, 1}, false), 0u);
    int calls = 1;
    while (reader.Reap({&pointer, 1}, false) == 0) ++calls;
    EXPECT_LE(calls, 3);
    EXPECT_EQ(request.size, 10u);
  }
  request.length = 11;
  ASSERT_EQ(reader.Submit({&pointer, 1}), 1u);
  ASSERT_EQ(reader.Reap({&pointer, 1}, true), 1u);
  EXPECT_EQ(request.status.error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace stoker::testing
