// LateReader: a FakeReader whose reads take time on the simulation's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/testing/storage/fake_reader.h"

namespace stoker::testing {

class LateReader final : public Reader {
 public:
  // `longest_ns`: of a wait for reads in flight; if `blocks`, of Submit, too, as when files are
  // read by pread or samples by calls of the program.
  LateReader(std::shared_ptr<const FakeDisk> disk, uint32_t depth, uint64_t seed,
             uint64_t longest_ns, bool blocks)
      : reader_(std::move(disk), depth, seed), longest_ns_(longest_ns), blocks_(blocks) {}

  size_t Submit(std::span<ReadRequest* const> requests) override;
  size_t Reap(std::span<ReadRequest*> done, bool wait) override;
  size_t in_flight() const override { return reader_.in_flight(); }
  size_t capacity() const override { return reader_.capacity(); }
  const char* name() const override { return "late"; }

 private:
  FakeReader reader_;
  const uint64_t longest_ns_;
  const bool blocks_;
};

}  // namespace stoker::testing
