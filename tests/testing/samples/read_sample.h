// Reads the bytes of a sample that is in files.
#pragma once

#include <cstdint>

#include "core/memory/memory_budget.h"
#include "io/readers/plain_read.h"
#include "io/source/source.h"

namespace stoker::testing {

// Returns the read after it has ended; its buffer belongs to `budget`.
inline ReadRequest ReadSample(const SampleSource& source, uint64_t id, MemoryBudget& budget) {
  const ByteRange range = source.RangeOf(id);
  ReadRequest read;
  read.buffer = GrowingBuffer(budget);
  source.PathOf(range.file, read.path);
  read.offset = range.offset;
  read.length = range.length;
  ReadPlainly(read);
  return read;
}

}  // namespace stoker::testing
