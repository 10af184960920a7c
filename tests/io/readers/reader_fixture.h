// A fixture with a reader of each kind, a folder to read from, and expectations about requests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/memory_budget.h"
#include "io/readers/reader.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker::testing {

// Skips if io_uring is not available.
class ReaderFixture : public ::testing::TestWithParam<ReaderKind> {
 protected:
  void SetUp() override { Make(8); }

  // `files`: how many files it keeps open. `limit`: time limit of a read of the ring.
  void Make(uint32_t depth, uint32_t files = 64, std::chrono::nanoseconds limit = {}) {
    reader.reset();
    Result<std::unique_ptr<Reader>> made = GetParam() == ReaderKind::kUring
                                               ? MakeUringReader(depth, files, nullptr, limit)
                                               : MakePreadReader(depth, files);
    if (!made.ok()) {
      ASSERT_EQ(GetParam(), ReaderKind::kUring) << made.error().ToString();
      GTEST_SKIP() << made.error().ToString();
    }
    reader = *std::move(made);
  }

  ReadRequest Request(const std::string& path, uint64_t offset = 0,
                      uint64_t length = kUnknownLength) {
    ReadRequest request;
    request.path = path;
    request.offset = offset;
    request.length = length;
    request.buffer = GrowingBuffer(budget);
    return request;
  }

  // Submits one request and waits for it.
  void Read(ReadRequest& request) {
    request.size = 12345;  // must be overwritten
    request.status = Error{.code = Code::kCancelled, .cause = "stale"};
    ReadRequest* in = &request;
    ASSERT_EQ(reader->Submit({&in, 1}), 1u);
    EXPECT_EQ(reader->in_flight(), 1u);
    ReadRequest* out = nullptr;
    size_t reaped = 0;
    while (reaped == 0) reaped = reader->Reap({&out, 1}, /*wait=*/true);  // may return 0
    ASSERT_EQ(reaped, 1u);
    EXPECT_EQ(out, &request);
    EXPECT_EQ(reader->in_flight(), 0u);
  }

  void ExpectBytes(const ReadRequest& request, const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(request.status.ok()) << request.status.error().ToString();
    ASSERT_EQ(request.size, bytes.size());
    ASSERT_GE(request.buffer.capacity(), request.size);
    ASSERT_NE(request.buffer.data(), nullptr);
    if (!bytes.empty()) {
      EXPECT_EQ(std::memcmp(request.buffer.data(), bytes.data(), bytes.size()), 0);
    }
    int sum = 0;  // kBufferPadding readable bytes follow, as the address sanitizer checks
    for (size_t i = 0; i < kBufferPadding; ++i) sum += request.buffer.data()[request.size + i];
    EXPECT_GE(sum, 0);
  }

  void ExpectError(const ReadRequest& request, Code code, const std::string& words = "") {
    ASSERT_FALSE(request.status.ok());
    EXPECT_EQ(request.size, 0u);
    EXPECT_EQ(request.status.error().code, code) << request.status.error().ToString();
    EXPECT_EQ(request.status.error().file, request.path);
    EXPECT_NE(request.status.error().ToString().find(words), std::string::npos)
        << request.status.error().ToString();
  }

  TempFolder folder;
  MemoryBudget budget{256 << 20};
  std::unique_ptr<Reader> reader;
};

inline const auto kReaderKinds = ::testing::Values(ReaderKind::kPread, ReaderKind::kUring);

inline std::string NameOf(const ::testing::TestParamInfo<ReaderKind>& info) {
  return info.param == ReaderKind::kPread ? "pread" : "uring";
}

}  // namespace stoker::testing
