// A simulated kernel side of io_uring, in the test's process: a program that is linked with
// fake_ring.cc has liburing's functions replaced. Operations are done by a reader's FileCalls, so
// that they meet the faults of a FaultyDisk; they complete late and out of order, entries are
// refused or take a part of the queue, and the ring may die. Only functions that UringReader uses
// exist.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/readers/plain_read.h"

namespace stoker::testing {

// The numbers are fractions; each entry into the ring draws again.
struct RingFaults {
  uint64_t seed = 1;
  double late = 0;     // of the chains that could go on and of the completions: wait for the next
                       // entry
  double refused = 0;  // entries that take nothing: EINTR, EAGAIN, EBUSY. Above 0, each ring's
                       // first entry is one of them
  double partly = 0;   // entries that take only the first operations
  // After that many entries the ring is dead: they all fail with EBADF. Below 0: never.
  int64_t lives = -1;
  bool loses = false;  // nothing in a dead ring completes
  // Operations on a file for which this returns true wait until it returns false, unless they are
  // cancelled. May be called on any reader's thread.
  std::function<bool(const std::string& path)> hangs{};
  bool cancels = true;  // false: what hangs cannot be cancelled
};

// Counts of all rings together. Thread-safe.
struct RingCounts {
  std::atomic<uint64_t> entries{0}, refused{0}, partly{0}, dead{0}, late{0}, cancelled{0};
};

// For its lifetime, rings that are set up have these faults. One at a time; it outlives the rings.
class FakeRings {
 public:
  // `calls` makes the calls of one ring. It is called on the thread that sets up the ring.
  FakeRings(RingFaults faults, std::function<std::shared_ptr<const FileCalls>()> calls);
  ~FakeRings();
  FakeRings(const FakeRings&) = delete;
  FakeRings& operator=(const FakeRings&) = delete;

  const RingFaults& faults() const { return faults_; }
  std::shared_ptr<const FileCalls> MakeCalls() const { return calls_(); }
  uint64_t NextSeed() { return faults_.seed * 1000 + made_++; }
  RingCounts& counts() { return counts_; }
  int open_rings() const { return open_rings_; }
  int lost() const { return lost_; }  // operations that rings held when they were closed
  void Lost(int operations) { lost_ += operations; }
  void Opened(int by) { open_rings_ += by; }

 private:
  const RingFaults faults_;
  const std::function<std::shared_ptr<const FileCalls>()> calls_;
  std::atomic<uint64_t> made_{0};
  std::atomic<int> open_rings_{0};
  std::atomic<int> lost_{0};
  RingCounts counts_;
};

}  // namespace stoker::testing
