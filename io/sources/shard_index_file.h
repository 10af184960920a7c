// The index files of shards, which store what was found in a shard, so that it is scanned only
// once. This is the part that all kinds of index files share: a header, columns, a checksum of
// everything.
//
// An index file lies beside its shard, as SHARD.stoker-index, and is valid for the shard's size and
// modification time (in nanoseconds). A change that leaves both the same goes unnoticed.
//
// It is trusted if its owner is the shard's, this process' user or root, nobody else may write to
// it, and it is not a symbolic link.
//
// The index file of an object behind a URL lies in $XDG_CACHE_HOME/stoker/index
// (~/.cache/stoker/index), and is valid for the object's version. If there is none, one beside the
// object is used, URL.stoker-index, which was made when the shard was a file: it is valid for the
// shard's size and a hash of parts of its content, if it is not older than the shard; it is never
// written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/try.h"
#include "io/objects/object_version.h"
#include "io/sources/input_file.h"

namespace stoker {

inline constexpr char kShardIndexEnding[] = ".stoker-index";

// Numbers are little-endian. The columns follow the header.
struct ShardIndexHeader {
  std::array<char, 8> magic{};  // the kind of index
  uint32_t version = 2;
  uint32_t content = 0;  // a hash of parts of the shard; 0 for an object
  uint64_t shard_bytes = 0;
  int64_t shard_modified_ns = 0;
  std::array<uint64_t, 3> numbers{};  // numbers of the kind's own: lengths of columns
  uint64_t checksum = 0;              // Hash64 of this header, with 0 here, and of the columns
};
static_assert(sizeof(ShardIndexHeader) == 64);

// Returns the path of a shard's index file, or of the one for a part of the shard's content.
std::string ShardIndexPath(const std::string& shard, std::string_view part = {});

// Returns the bytes of an index file.
std::vector<uint8_t> PackShardIndex(const std::array<char, 8>& magic, const FileStamp& stamp,
                                    const std::array<uint64_t, 3>& numbers,
                                    std::initializer_list<std::span<const uint8_t>> columns);

// Returns the header's numbers and, in `columns`, the bytes after it; nullopt if the bytes are
// damaged, of another kind, or not valid for `stamp`. The numbers and columns are untrusted: the
// maker of the file may have given it any.
std::optional<std::array<uint64_t, 3>> UnpackShardIndex(std::span<const uint8_t> file,
                                                        const std::array<char, 8>& magic,
                                                        const FileStamp& stamp,
                                                        std::span<const uint8_t>& columns);

// Corrects the checksum and the stamp in the bytes of an index file, so that a fuzzer reaches the
// code behind those checks. Returns false if the bytes are too short to have them.
bool SignShardIndex(std::span<uint8_t> file, const std::array<char, 8>& magic,
                    const FileStamp& stamp);

// Returns the content of the shard's index file, or of a part's; nullopt unless it can be read, is
// trusted, has this kind and stamp in its header, is smaller than 1 GiB, and there is memory for
// it.
std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
                                                   const std::array<char, 8>& magic,
                                                   const FileStamp& stamp,
                                                   std::string_view part = {});

// Replaces the index file of a shard, or of a part; readers see the old or the new one. Only its
// owner may write to it. `file`: its bytes, in which this function sets the hash of the shard's
// content. Unavailable: the shard has changed since. Errors name the file.
Status WriteShardIndex(const std::string& shard, std::vector<uint8_t> file,
                       std::string_view part = {});

// Returns the content of a shard: from `indexed(shard, stamp)`, which reads index files, or, if
// that is nullopt, from `scan(shard, stamp)`, which reads the shard and sets its stamp. After a
// scan, `write(content, stamp)` replaces the index files; that only saves time, so it cannot fail.
// For an object, `version` is set.
template <typename Indexed, typename Scan, typename Write>
auto ContentOfShard(const std::string& path, ObjectVersion& version, const Indexed& indexed,
                    const Scan& scan, const Write& write)
    -> decltype(scan(std::declval<InputFile>(), std::declval<FileStamp&>())) {
  ASSIGN_OR_RETURN(InputFile shard, InputFile::Open(path));
  ASSIGN_OR_RETURN(FileStamp stamp, shard.Stamp());
  if (shard.version() != nullptr) version = *shard.version();
  if (auto known = indexed(std::as_const(shard), std::as_const(stamp))) return *std::move(known);
  auto content = scan(std::move(shard), stamp);
  if (content.ok()) write(*content, std::as_const(stamp));
  return content;
}

// Returns the elements of a column as bytes.
template <typename Column>
std::span<const uint8_t> BytesOfColumn(const Column& column) {
  return {reinterpret_cast<const uint8_t*>(column.data()), column.size() * sizeof(column[0])};
}

// Takes the next `count` elements from the columns. Precondition: they have as many.
template <typename Column>
void TakeColumn(std::span<const uint8_t>& columns, uint64_t count, Column& to) {
  to.resize(count);
  const size_t bytes = count * sizeof(to[0]);
  if (bytes != 0) std::memcpy(to.data(), columns.data(), bytes);
  columns = columns.subspan(bytes);
}

}  // namespace stoker
