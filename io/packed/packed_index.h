// PackedIndex: the index of a packed set, and how it is written (packed_format.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/index/image_list.h"
#include "io/packed/packed_format.h"
#include "io/remote/object_version.h"
#include "io/source/source.h"

namespace stoker {

// Immutable after Open; thread-safe.
class PackedIndex {
 public:
  // Reads `path` in a few large pieces and checks every byte. For any bytes, even with
  // correct checksums: the list is as ReadImageList (image_list_sections.h) promises, which also
  // bounds the memory, and each record lies in its shard, according to the shard's length here.
  //
  // NotFound, PermissionDenied; InvalidArgument if it is not such an index; DataLoss if the bytes
  // have changed since they were written; Unimplemented for another version; ResourceExhausted.
  static Result<PackedIndex> Open(const std::string& path);

  const ImageList& list() const { return list_; }
  const std::vector<packed_set::Shard>& shards() const { return shards_; }
  const std::vector<packed_set::Sample>& samples() const { return samples_; }  // of each file
  uint64_t fingerprint() const { return fingerprint_; }                        // of the list
  const ObjectVersion& version() const { return version_; }                    // of an object

  ImageFacts FactsOf(uint64_t id) const;  // of the file

  uint64_t memory_bytes() const;  // on the heap

 private:
  PackedIndex() = default;

  ImageList list_;
  std::vector<packed_set::Shard> shards_;
  std::vector<packed_set::Sample> samples_;
  uint64_t fingerprint_ = 0;
  ObjectVersion version_;
};

// Replaces the index at `path` and returns its size. Preconditions: one sample for each file of the
// list, and each in one of the shards.
Result<uint64_t> WritePackedIndex(const std::string& path, const ImageList& list,
                                  const std::vector<packed_set::Shard>& shards,
                                  const std::vector<packed_set::Sample>& samples);

}  // namespace stoker
