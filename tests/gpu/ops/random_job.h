// Random jobs for the kernel: every type and layout, and all deferred operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "gpu/ops/deferred_ops_job.h"
#include "tests/testing/random.h"

namespace stoker::testing {

// A job without addresses, and the data they will point to.
struct MadeJob {
  DeferredOpsJob job;
  std::vector<uint8_t> from;
  std::vector<uint64_t> work;  // words, so that it is aligned; empty means none

  size_t values() const { return from.size(); }
  size_t result_bytes() const { return values() * SizeOf(job.dtype); }
  size_t work_bytes() const { return work.size() * sizeof(uint64_t); }
  std::string ToString() const;
};

MadeJob RandomJob(Random& random);

struct JobSize {
  int64_t rows = 1;
  int height = 1, width = 1;
};
MadeJob RandomJobOf(Random& random, JobSize size);

// Returns the result in host memory.
using ApplyDeferred = std::function<void(const DeferredOpsJob& job)>;
std::vector<uint8_t> ResultOf(const MadeJob& made, const ApplyDeferred& finish, size_t shift = 0);

}  // namespace stoker::testing
