// PackedIndex: the index of a packed set, and how it is written (packed_format.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/index/image_list.h"
#include "io/packed/packed_format.h"
#include "io/remote/object_version.h"
#include "io/source/path_table.h"
#include "io/source/source.h"

namespace stoker {

// The part of the index that only sets of several images a sample have.
struct PackedPieces {
  std::vector<packed_set::PieceField> fields;  // empty if samples have one image, as all below
  // The further pieces: the second field's of all samples, then the third field's, and so on.
  std::vector<packed_set::Sample> samples;
  PathTable paths;
  uint64_t fingerprint = 0;  // that of Files() with these paths and fields
};

// Immutable after Open; thread-safe.
class PackedIndex {
 public:
  // Reads `path` in a few large pieces and checks every byte. For any bytes, even with
  // correct checksums: the list is as ReadImageList (image_list_sections.h) promises, which also
  // bounds the memory, each record lies in its shard, according to the shard's length here, and
  // paths are IsPackedPath.
  //
  // NotFound, PermissionDenied; InvalidArgument if it is not such an index; DataLoss if the bytes
  // have changed since they were written; Unimplemented for another version; ResourceExhausted.
  static Result<PackedIndex> Open(const std::string& path);

  const ImageList& list() const { return list_; }
  const std::vector<packed_set::Shard>& shards() const { return shards_; }
  const std::vector<packed_set::Sample>& samples() const { return samples_; }  // of each file
  const PackedPieces& further() const { return pieces_; }
  size_t pieces() const { return pieces_.fields.empty() ? 1 : pieces_.fields.size(); }
  const packed_set::Sample& SampleOf(uint64_t id, size_t piece) const {
    return piece == 0 ? samples_[id] : pieces_.samples[(piece - 1) * samples_.size() + id];
  }
  // Appends the path of a sample's file, below the folder of its field.
  void AppendPath(uint64_t id, size_t piece, std::string& to) const;
  uint64_t fingerprint() const { return fingerprint_; }      // of the list
  const ObjectVersion& version() const { return version_; }  // of an object

  ImageFacts FactsOf(uint64_t id) const;  // of the file

  uint64_t memory_bytes() const;  // on the heap

 private:
  PackedIndex() = default;
  Status ReadPieces(const SectionFile& file);

  ImageList list_;
  std::vector<packed_set::Shard> shards_;
  std::vector<packed_set::Sample> samples_;
  PackedPieces pieces_;
  uint64_t fingerprint_ = 0;
  ObjectVersion version_;
};

// Replaces the index at `path` and returns its size. Preconditions: one sample for each file of the
// list and piece, and each in one of the shards; with several pieces the list is flat.
Result<uint64_t> WritePackedIndex(const std::string& path, const ImageList& list,
                                  const std::vector<packed_set::Shard>& shards,
                                  const std::vector<packed_set::Sample>& samples,
                                  const PackedPieces& further = {});

}  // namespace stoker
