// Restores the files from which a packed set was made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "io/packed/packed_index.h"
#include "io/readers/reader.h"
#include "io/samples/sample_reads.h"
#include "io/source/source.h"

namespace stoker {

// PNGs that are not restored to the byte, but have the same pixels and metadata.
struct EqualPngs {
  uint64_t count = 0;
  uint64_t other_zlib = 0;  // of these: PNGs that came back to the byte when they were packed

  // A line of a report.
  std::string Text() const;
};

// Keeps memory for the next file. One thread at a time. Source and index must outlive it.
class FileRestorer {
 public:
  // `source`: made from `index` (packed.h).
  FileRestorer(const SampleSource& source, const PackedIndex& index);

  // Returns the bytes of the file of a piece of sample `id`, valid until the next call. DataLoss if
  // the record's checksum, the file's size or the file's checksum is wrong (except that a packed
  // PNG then comes back as an equal one), or if a packed mask or PNG is not equal to the file that
  // is stored with it. Unimplemented if it is stored in a form that this version does not know.
  // Errors name shard, offset and path.
  Result<std::span<const uint8_t>> Restore(uint64_t id, size_t piece = 0);
  // Whether the last file is one of these.
  const EqualPngs& equal() const { return equal_; }

 private:
  Result<std::span<const uint8_t>> RestoreRecord(uint64_t id, size_t piece);
  Result<std::span<const uint8_t>> ReadFile(const packed_set::Sample& sample);

  const SampleSource& source_;
  const PackedIndex& index_;
  SampleReads reads_;
  MemoryBudget budget_;
  ReadRequest request_;
  std::vector<uint8_t> file_;
  EqualPngs equal_;
};

}  // namespace stoker
