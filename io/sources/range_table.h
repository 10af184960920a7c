// RangeTable: where samples lie in files that hold many, compact enough for tens of millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/sources/source.h"

namespace stoker {

// The ranges of files, in the order in which they were added. 4 bytes for each, and 24 for each run
// of neighbours that follow each other in a file without a gap. Thread-safe once the last one is
// added.
class RangeTable {
 public:
  // The ranges that are added from now on begin there.
  void BeginRun(uint32_t file, uint64_t offset);
  // Adds the range behind the last one. Preconditions: BeginRun was called, length < 2^32.
  void Add(uint64_t length);
  // Adds all ranges of another table.
  void Append(const RangeTable& other);
  void ShrinkToFit();

  size_t size() const { return ends_.size(); }
  // Precondition: id < size(). Time: logarithmic in the number of runs.
  ByteRange operator[](uint64_t id) const;

  uint64_t HashLengths() const;   // equal for the same lengths, wherever the ranges lie
  uint64_t memory_bytes() const;  // on the heap

 private:
  struct Run {
    uint64_t first = 0;   // the number of its first range
    uint64_t offset = 0;  // of that, in the file
    uint32_t file = 0;
  };

  std::vector<Run> runs_;
  std::vector<uint32_t> ends_;  // of each range, from its run's offset
};

}  // namespace stoker
