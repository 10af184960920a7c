// RangeTable: the byte ranges of samples in files that hold many, compact enough for tens of
// millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/source/source.h"

namespace stoker {

// Holds ranges of files, in the order in which they were added. Each takes 4 bytes, and each run of
// ranges that follow each other in a file without a gap takes 24. Thread-safe once the last range
// is added.
class RangeTable {
 public:
  // Begins a run: the ranges that are added from now on begin at this offset of this file.
  void BeginRun(uint32_t file, uint64_t offset);
  // Adds the range after the last one. Preconditions: BeginRun was called, length < 2^32.
  void Add(uint64_t length);
  // Adds all ranges of another table.
  void Append(const RangeTable& other);
  void ShrinkToFit();

  size_t size() const { return ends_.size(); }
  // Precondition: id < size(). Time: logarithmic in the number of runs.
  ByteRange operator[](uint64_t id) const;

  uint64_t HashLengths() const;   // equal for the same lengths, regardless of positions
  uint64_t memory_bytes() const;  // on the heap

 private:
  struct Run {
    uint64_t first = 0;   // the number of its first range
    uint64_t offset = 0;  // the offset of that range in the file
    uint32_t file = 0;
  };

  std::vector<Run> runs_;
  std::vector<uint32_t> ends_;  // of each range, from its run's offset
};

}  // namespace stoker
