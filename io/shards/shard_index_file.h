// The index files of shards, which store the results of scanning a shard, so that it is scanned
// only once. This is the part that all kinds of index files share: a header, columns, a checksum of
// everything.
//
// Index files lie in the user's cache folder, $XDG_CACHE_HOME/stoker/index (~/.cache/stoker/index),
// and not next to the shards: reading a data set must not change what other programs see there.
// Their names are hashes of the shard's absolute path, or of its URL, and of its stamp: machines
// that share the folder may have different files under one path. Files unused for 90 days are
// removed when index files are written.
//
// An index file is valid for the shard's stamp (core/system/file_stamp.h), and for an object's
// version.
//
// It is trusted if its owner is this process' user or root, nobody else may write to it, and it is
// not a symbolic link. Only its owner may read it, because it has the shard's labels and texts:
// each user has their own folder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "core/result/try.h"
#include "core/system/file_stamp.h"
#include "io/files/input_file.h"
#include "io/remote/object_version.h"

namespace stoker {

// Earlier versions left files with this ending next to the shards.
inline constexpr char kShardIndexEnding[] = ".stoker-index";

// Numbers are little-endian. The columns follow the header.
struct ShardIndexHeader {
  std::array<char, 8> magic{};  // the kind of index
  uint32_t version = 3;
  uint32_t unused = 0;
  FileStamp shard;
  uint64_t content = 0;               // InputFile::ContentHash of the shard
  std::array<uint64_t, 3> numbers{};  // numbers of the kind's own: lengths of columns
  uint64_t checksum = 0;              // Hash64 of this header, with 0 here, and of the columns
};
static_assert(sizeof(ShardIndexHeader) == 88);

// Returns the path of the index file for a shard with this stamp, or for a part of the shard's
// content. Empty if there is no home folder.
std::string ShardIndexPath(const std::string& shard, const FileStamp& stamp,
                           std::string_view part = {});

// Returns the bytes of an index file.
std::vector<uint8_t> PackShardIndex(const std::array<char, 8>& magic, const FileStamp& stamp,
                                    const std::array<uint64_t, 3>& numbers,
                                    std::initializer_list<std::span<const uint8_t>> columns);

// Returns the header's numbers and, in `columns`, the bytes after it; nullopt if the bytes are
// damaged, of another kind, or not valid for `stamp`. The numbers and columns are untrusted:
// a hostile file may hold any value.
std::optional<std::array<uint64_t, 3>> UnpackShardIndex(std::span<const uint8_t> file,
                                                        const std::array<char, 8>& magic,
                                                        const FileStamp& stamp,
                                                        std::span<const uint8_t>& columns);

// Corrects the checksum and the stamp in the bytes of an index file, so that a fuzzer reaches the
// code after those checks. Returns false if the bytes are too short to have them.
bool SignShardIndex(std::span<uint8_t> file, const FileStamp& stamp);

// Returns the content of the shard's index file, or of a part's; nullopt unless it can be read, is
// trusted, has this kind and stamp in its header, is smaller than 1 GiB, and there is memory for
// it.
std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
                                                   const std::array<char, 8>& magic,
                                                   const FileStamp& stamp,
                                                   std::string_view part = {});

// Returns what `unpack` returns for that content; nullopt also if there is no memory for it: a scan
// of the shard holds less at a time.
template <typename Unpack>
auto UnpackedShardIndex(const InputFile& shard, const std::array<char, 8>& magic,
                        const FileStamp& stamp, std::string_view part, const Unpack& unpack)
    -> decltype(unpack(std::span<const uint8_t>())) {
  const std::optional<std::vector<uint8_t>> file = ReadShardIndex(shard, magic, stamp, part);
  if (!file) return std::nullopt;
  try {
    return unpack(*file);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// Replaces the index file of a shard, or of a part; readers see the old or the new one. `file`: the
// bytes that PackShardIndex returned, in which this function sets the hash of the shard's content.
// Unavailable: the shard has changed since. Errors name the file. Precondition: the shard was at
// rest when it was read (IsAtRest).
Status WriteShardIndex(const std::string& shard, std::vector<uint8_t> file,
                       std::string_view part = {});

// Returns the content of a shard: from `indexed(shard, stamp)`, which reads index files, or, if
// that is nullopt, from `scan(shard, stamp)`, which reads the shard and sets its stamp. After a
// scan, `write(content, stamp)` replaces the index files; that only saves time, so it cannot fail.
// The scan of a shard that has just changed is not kept: another change may get the same stamp. For
// an object, `version` is set.
template <typename Indexed, typename Scan, typename Write>
auto ContentOfShard(const std::string& path, ObjectVersion& version, const Indexed& indexed,
                    const Scan& scan, const Write& write)
    -> decltype(scan(std::declval<InputFile>(), std::declval<FileStamp&>())) {
  ASSIGN_OR_RETURN(InputFile shard, InputFile::Open(path));
  TRY(shard.Identify());
  const int64_t now_ns = NowNs();
  ASSIGN_OR_RETURN(FileStamp stamp, shard.Stamp());
  if (shard.version() != nullptr) version = *shard.version();
  if (auto known = indexed(std::as_const(shard), std::as_const(stamp))) return *std::move(known);
  auto content = scan(std::move(shard), stamp);
  if (content.ok() && IsAtRest(stamp, now_ns)) write(*content, std::as_const(stamp));
  return content;
}

// Returns the elements of a column as bytes.
template <typename Column>
std::span<const uint8_t> BytesOfColumn(const Column& column) {
  return {reinterpret_cast<const uint8_t*>(column.data()), column.size() * sizeof(column[0])};
}

// Takes the next `count` elements from the columns. Precondition: there are that many left.
template <typename Column>
void TakeColumn(std::span<const uint8_t>& columns, uint64_t count, Column& to) {
  to.resize(count);
  const size_t bytes = count * sizeof(to[0]);
  if (bytes != 0) std::memcpy(to.data(), columns.data(), bytes);
  columns = columns.subspan(bytes);
}

}  // namespace stoker
