#include "gpu/backend/host_streams.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <vector>

namespace stoker {
namespace {

std::shared_ptr<HostStream> Start(BeforeWork before = {}) {
  return HostStream::Start(std::move(before)).value();
}

TEST(HostStreamsTest, WorkIsDoneInOrder) {
  std::vector<int> done;  // by one thread
  {
    const auto stream = Start();
    for (int i = 0; i < 100; ++i) stream->Give([&done, i] { done.push_back(i); });
  }
  ASSERT_EQ(done.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
}

TEST(HostStreamsTest, AnEventNeverRecordedIsDone) {
  const HostEvent event;
  EXPECT_TRUE(event.Done());
  event.Synchronize();
  const auto stream = Start();
  event.HoldBack(*stream);
}

TEST(HostStreamsTest, AnEventIsDoneAfterTheWorkBeforeIt) {
  std::binary_semaphore gate(0);
  const auto stream = Start();
  HostEvent event;
  stream->Give([&] { gate.acquire(); });
  event.Record(*stream);
  EXPECT_FALSE(event.Done());
  gate.release();
  event.Synchronize();
  EXPECT_TRUE(event.Done());
}

TEST(HostStreamsTest, TheLastRecordCounts) {
  std::binary_semaphore gate(0);
  const auto slow = Start(), quick = Start();
  HostEvent event;
  slow->Give([&] { gate.acquire(); });
  event.Record(*slow);
  event.Record(*quick);
  event.Synchronize();  // does not wait for `slow`
  gate.release();
}

TEST(HostStreamsTest, AStreamWaitsForTheRecordMadeBeforeItsWait) {
  std::binary_semaphore gate(0), later(0);
  std::atomic<bool> made = false, seen = false;
  const auto first = Start(), second = Start();
  HostEvent event, end;
  first->Give([&] {
    gate.acquire();
    made = true;
  });
  event.Record(*first);
  event.HoldBack(*second);
  second->Give([&] { seen = made.load(); });
  end.Record(*second);
  // Recorded again: what `second` waits for is as it was.
  first->Give([&] { later.acquire(); });
  event.Record(*first);
  EXPECT_FALSE(end.Done());
  gate.release();
  end.Synchronize();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(event.Done());
  later.release();
}

TEST(HostStreamsTest, AnEventMayBeDestroyedWhileAStreamWaitsForIt) {
  std::binary_semaphore gate(0);
  std::atomic<bool> made = false, seen = false;
  const auto first = Start(), second = Start();
  {
    HostEvent event;
    first->Give([&] {
      gate.acquire();
      made = true;
    });
    event.Record(*first);
    event.HoldBack(*second);
  }
  second->Give([&] { seen = made.load(); });
  HostEvent end;
  end.Record(*second);
  gate.release();
  end.Synchronize();
  EXPECT_TRUE(seen);
}

TEST(HostStreamsTest, TheHookIsCalledBeforeEachPieceOfWork) {
  int calls = 0, at_work = 0;  // by one thread
  {
    const auto stream = Start([&] { ++calls; });
    for (int i = 0; i < 10; ++i) stream->Give([&] { at_work += calls; });
  }
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(at_work, 55);
}

}  // namespace
}  // namespace stoker
