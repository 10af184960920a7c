// The index files of shards: what was found in a shard, so that it is read only once. This is the
// part that all kinds of them have in common: a header, columns, a checksum of everything.
//
// An index file lies beside its shard, as SHARD.stoker-index, and holds for the shard's size and
// modification time (in nanoseconds). A change that leaves both as they were goes unnoticed.
//
// It is believed if its owner is the shard's, this process' user or root, nobody else may write to
// it, and it is no symbolic link.
//
// That of an object behind a URL lies in $XDG_CACHE_HOME/stoker/index (~/.cache/stoker/index), and
// holds for the object's version. If there is none, one beside the object is used,
// URL.stoker-index, which was made when the shard was a file: it holds for the shard's size and a
// hash of parts of its content, if it is not older than the shard; it is never written.
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

// Numbers are little-endian. The columns are behind it.
struct ShardIndexHeader {
  std::array<char, 8> magic{};  // the kind of index
  uint32_t version = 2;
  uint32_t content = 0;  // a hash of parts of the shard; 0 of an object
  uint64_t shard_bytes = 0;
  int64_t shard_modified_ns = 0;
  std::array<uint64_t, 3> numbers{};  // what the kind stores in it: lengths of columns
  uint64_t checksum = 0;              // Hash64 of this header, with 0 here, and of the columns
};
static_assert(sizeof(ShardIndexHeader) == 64);

// The path of a shard's index file, or of the one for a part of what is in it.
std::string ShardIndexPath(const std::string& shard, std::string_view part = {});

// The bytes of an index file.
std::vector<uint8_t> PackShardIndex(const std::array<char, 8>& magic, const FileStamp& stamp,
                                    const std::array<uint64_t, 3>& numbers,
                                    std::initializer_list<std::span<const uint8_t>> columns);

// The header's numbers and, in `columns`, what follows it. nullopt if the bytes are damaged, of
// another kind, or do not hold for `stamp`. Whoever made the file may have given it any numbers and
// columns.
std::optional<std::array<uint64_t, 3>> UnpackShardIndex(std::span<const uint8_t> file,
                                                        const std::array<char, 8>& magic,
                                                        const FileStamp& stamp,
                                                        std::span<const uint8_t>& columns);

// Corrects the checksum and the stamp in the bytes of an index file, so that a fuzzer reaches what
// lies behind them. Returns whether they are long enough to have one.
bool SignShardIndex(std::span<uint8_t> file, const std::array<char, 8>& magic,
                    const FileStamp& stamp);

// The content of the shard's index file, or of a part's; nullopt if there is none that can be read,
// is believed, has this kind and stamp in its header, is smaller than 1 GiB, and for which there is
// memory.
std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
                                                   const std::array<char, 8>& magic,
                                                   const FileStamp& stamp,
                                                   std::string_view part = {});

// Replaces the index file of a shard, or of a part; readers see the old or the new one. Only its
// owner may write to it. `file`: its bytes, into which the hash of the shard's content is put.
// Unavailable: the shard has changed since. Errors name the file.
Status WriteShardIndex(const std::string& shard, std::vector<uint8_t> file,
                       std::string_view part = {});

// What is in a shard: what `indexed(shard, stamp)`, which reads index files, has or, if that is
// nullopt, what `scan(shard, stamp)` reads from the shard, whose state it sets. Then
// `write(content, stamp)` replaces the index files; that only saves time, so it cannot fail. Of an
// object, `version` is set.
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

// The elements of a column, as bytes.
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
