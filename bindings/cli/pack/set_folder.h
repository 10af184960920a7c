// SetFolder: the folder of a packed set that is being written.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result/result.h"
#include "core/system/descriptor.h"
#include "io/packed/packed_merge.h"
#include "io/packed/packed_shard.h"

namespace stoker {

// Used by one thread at a time. While it exists no other process packs into the folder.
class SetFolder {
 public:
  // Makes the folder if it does not exist, reads the shards in it, and removes leftovers of a
  // killed run. InvalidArgument if anything else is in it, before anything is changed;
  // FailedPrecondition if another process packs into it.
  static Result<SetFolder> Open(const std::string& folder);

  const std::string& path() const { return path_; }  // as given
  bool has_index() const { return has_index_; }
  // Whether photographs are in class folders; nullopt if there are no photographs yet.
  std::optional<bool> has_classes() const {
    if (known_.empty()) return std::nullopt;
    return known_.begin()->first.find('/') != std::string_view::npos;
  }

  // The fields of the set; empty if samples have one image, or there are no samples yet.
  const std::vector<packed_set::PieceField>& fields() const { return fields_; }

  // Returns the set's entry for the path of a sample's first image, or null; the entries of its
  // further pieces follow it. A path that occurs in several shards counts once.
  const packed_set::Entry* Find(std::string_view path) const;
  // Returns the path of a further piece. Precondition: Find(path) is not null.
  std::string_view PathOfPiece(std::string_view path, size_t piece) const;
  uint64_t samples() const { return known_.size(); }
  // Returns the path of an image that is not restored to the byte; empty if there is none.
  std::string_view FindEqual() const;
  // Begins a shard that the folder does not have yet. `fields`: those of the set, if it has
  // samples.
  Result<PackedShardWriter> NewShard(const std::vector<packed_set::PieceField>& fields);

  struct Written {
    uint64_t samples = 0, images = 0;
    uint64_t packed = 0;                       // images
    uint64_t equal = 0;                        // of these: PNGs in Form::kEqualPng
    uint64_t file_bytes = 0, image_bytes = 0;  // of the files, and as stored
    uint32_t shards = 0;
    uint64_t shard_bytes = 0, index_bytes = 0;
  };
  // Reads the new shards, and writes the index of all. InvalidArgument if together they are not a
  // folder of classes: images next to class folders. Precondition: there is a shard with a record.
  Result<Written> WriteIndex();

 private:
  struct Location {
    uint32_t shard = 0, entry = 0;  // indexes in shards_ and its entries
  };

  SetFolder(std::string path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  Result<MergedSet> Merge() const;
  Status ReadShards(const std::vector<uint32_t>& numbers);

  std::string path_;
  Descriptor lock_;  // of the folder
  std::vector<packed_set::PieceField> fields_;
  std::deque<PackedShard> shards_;  // which do not move: known_ has views of their paths
  std::unordered_map<std::string_view, Location> known_;  // by path, in the shards' tables
  std::vector<uint32_t> begun_;                           // numbers of the shards of this run
  uint32_t next_ = 0;
  bool has_index_ = false;
};

}  // namespace stoker
