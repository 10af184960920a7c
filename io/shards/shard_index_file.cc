#include "io/shards/shard_index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "core/hash/hash.h"
#include "core/hash/sha256.h"
#include "core/result/try.h"
#include "core/system/output_file.h"
#include "io/cache/cache_folder.h"
#include "io/files/section_format.h"
#include "io/remote/object_settings.h"
#include "io/remote/object_url.h"
#include "io/remote/object_version.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
using sections::BytesOf;

constexpr uint64_t kMostShardIndexBytes = (uint64_t{1} << 30) - 1;

uint64_t ChecksumOf(ShardIndexHeader header, std::span<const uint8_t> columns) {
  header.checksum = 0;
  return Hash64(columns, Hash64(BytesOf(std::as_const(header))));
}

std::optional<ShardIndexHeader> HeaderIn(std::span<const uint8_t> file) {
  ShardIndexHeader header;
  if (file.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof(header));
  return header;
}

ShardIndexHeader HeaderOf(const std::array<char, 8>& magic, const FileStamp& stamp,
                          const std::array<uint64_t, 3>& numbers, uint64_t content) {
  return {.magic = magic, .shard = stamp, .content = content, .numbers = numbers};
}

// Applies the rule in shard_index_file.h.
bool IsTrusted(const InputFile& index) {
  const Result<FileRights> rights = index.Rights();
  if (!rights.ok() || (rights->mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  return rights->user == geteuid() || rights->user == 0;
}

// Returns the folder of the index files; empty means there is none.
std::string IndexFolder() {
  const auto folder = [](const char* variable, const char* below) {
    const char* const value = std::getenv(variable);
    return value == nullptr || value[0] != '/' ? std::string() : std::string(value) + below;
  };
  const std::string cache = folder("XDG_CACHE_HOME", "/stoker/index");
  return cache.empty() ? folder("HOME", "/.cache/stoker/index") : cache;
}

// Returns the text whose hash names a shard's index files.
std::string NamedBy(const std::string& shard) {
  if (IsObjectUrl(shard)) return ObjectIdentity(shard);  // a signed URL has another query each time
  std::error_code failed;
  const fs::path folder = shard.starts_with('/') ? "" : fs::current_path(failed);
  return (folder / shard).lexically_normal().string();
}

// Reads the index `file` of a shard; returns empty bytes if it is not valid for the shard.
Result<std::vector<uint8_t>> ContentOf(const InputFile& file, const InputFile& shard,
                                       const std::array<char, 8>& magic, const FileStamp& stamp) {
  ASSIGN_OR_RETURN(const FileStamp now, file.Stamp());
  std::vector<uint8_t> bytes(sizeof(ShardIndexHeader));
  if (now.bytes < bytes.size() || now.bytes > kMostShardIndexBytes) return std::vector<uint8_t>();
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, bytes));
  const std::optional<ShardIndexHeader> header = HeaderIn(std::span(bytes).first(got));
  if (!header || header->shard != stamp) return std::vector<uint8_t>();
  ASSIGN_OR_RETURN(const uint64_t content, shard.ContentHash(stamp));
  ShardIndexHeader wanted = HeaderOf(magic, stamp, header->numbers, content);
  wanted.checksum = header->checksum;
  if (std::memcmp(&wanted, &*header, sizeof(wanted)) != 0) return std::vector<uint8_t>();
  bytes.resize(now.bytes);
  ASSIGN_OR_RETURN(const size_t whole, file.ReadAt(0, bytes));
  bytes.resize(whole);
  return bytes;
}

}  // namespace

std::string ShardIndexPath(const std::string& shard, const FileStamp& stamp,
                           std::string_view part) {
  const std::string folder = IndexFolder();
  if (folder.empty()) return "";
  const auto hash = [](std::string_view text) { return Hexadecimal(Sha256(text)).substr(0, 32); };
  const auto bytes = BytesOf(stamp);
  return folder + "/" + hash(NamedBy(shard)) + "-" +
         hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) +
         (part.empty() ? "" : "." + std::string(part)) + kShardIndexEnding;
}

std::vector<uint8_t> PackShardIndex(const std::array<char, 8>& magic, const FileStamp& stamp,
                                    const std::array<uint64_t, 3>& numbers,
                                    std::initializer_list<std::span<const uint8_t>> columns) {
  ShardIndexHeader header = HeaderOf(magic, stamp, numbers, 0);
  std::vector<uint8_t> file(sizeof(header));
  for (const auto column : columns) file.insert(file.end(), column.begin(), column.end());
  header.checksum = ChecksumOf(header, std::span(file).subspan(sizeof(header)));
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

std::optional<std::array<uint64_t, 3>> UnpackShardIndex(std::span<const uint8_t> file,
                                                        const std::array<char, 8>& magic,
                                                        const FileStamp& stamp,
                                                        std::span<const uint8_t>& columns) {
  const std::optional<ShardIndexHeader> header = HeaderIn(file);
  if (!header) return std::nullopt;
  columns = file.subspan(sizeof(*header));
  ShardIndexHeader wanted = HeaderOf(magic, stamp, header->numbers, header->content);
  wanted.checksum = ChecksumOf(wanted, columns);
  if (std::memcmp(&wanted, &*header, sizeof(wanted)) != 0) return std::nullopt;
  return header->numbers;
}

bool SignShardIndex(std::span<uint8_t> file, const FileStamp& stamp) {
  const std::optional<ShardIndexHeader> header = HeaderIn(file);
  if (!header) return false;
  ShardIndexHeader sound = HeaderOf(header->magic, stamp, header->numbers, header->content);
  sound.checksum = ChecksumOf(sound, file.subspan(sizeof(sound)));
  std::memcpy(file.data(), &sound, sizeof(sound));
  return true;
}

namespace {

constexpr std::chrono::hours kDay{24}, kMostUnused = 90 * kDay;

// Returns how long ago a regular file was written or marked as used; nullopt if there is none.
std::optional<fs::file_time_type::duration> AgeOf(const fs::path& path) {
  std::error_code failed;
  if (fs::symlink_status(path, failed).type() != fs::file_type::regular) return std::nullopt;
  const fs::file_time_type time = fs::last_write_time(path, failed);
  if (failed) return std::nullopt;
  return fs::file_time_type::clock::now() - time;
}

// The time of modification says when an index file was last used, to the day: many file systems are
// mounted without times of access.
void MarkUsed(const std::string& path) {
  std::error_code ignored;
  if (AgeOf(path) > kDay) fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
}

// Removes unused index files, and leftovers of killed processes. Looks through the folder once a
// day only, since it may have many files; a file's time says when.
void SweepFolder(const fs::path& folder) {
  const fs::path mark = folder / ".swept";
  if (const auto age = AgeOf(mark); age && *age < kDay) return;
  Result<OutputFile> marked = OutputFile::Open(mark, OutputFile::Origin::kOwn);
  if (!marked.ok() || !marked->Commit().ok()) return;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const bool is_temporary = OutputFile::IsTemporaryName(name);
    if (!is_temporary && !name.ends_with(kShardIndexEnding)) continue;
    std::error_code ignored;
    if (AgeOf(at->path()) > (is_temporary ? kDay : kMostUnused)) fs::remove(at->path(), ignored);
  }
}

std::optional<std::vector<uint8_t>> ReadIndexFile(const InputFile& shard,
                                                  const std::array<char, 8>& magic,
                                                  const FileStamp& stamp, std::string_view part) {
  const std::string path = ShardIndexPath(shard.path(), stamp, part);
  const Result<InputFile> file = InputFile::Open(path, InputFile::Links::kRefused);
  if (!file.ok() || !IsTrusted(*file)) return std::nullopt;
  try {
    Result<std::vector<uint8_t>> bytes = ContentOf(*file, shard, magic, stamp);
    if (!bytes.ok()) return std::nullopt;
    MarkUsed(path);
    return *std::move(bytes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // scanning the shard needs less memory
  }
}

}  // namespace

std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
                                                   const std::array<char, 8>& magic,
                                                   const FileStamp& stamp, std::string_view part) {
  const ObjectVersion* const object = shard.version();
  if (object != nullptr && !object->Identifies(shard.path())) return std::nullopt;
  return ReadIndexFile(shard, magic, stamp, part);
}

namespace {

// Puts the hash of a shard's content into the bytes of its index.
Status AddContentHash(const std::string& path, std::span<uint8_t> file) {
  ShardIndexHeader header = *HeaderIn(file);
  if (header.shard.is_proof()) return {};
  ASSIGN_OR_RETURN(const InputFile shard, InputFile::Open(path));
  ASSIGN_OR_RETURN(header.content, shard.ContentHash(header.shard));
  ASSIGN_OR_RETURN(const FileStamp now, shard.Stamp());
  if (now != header.shard) {
    return Error{Code::kUnavailable, "the file has changed since it was indexed", path};
  }
  header.checksum = ChecksumOf(header, file.subspan(sizeof(header)));
  std::memcpy(file.data(), &header, sizeof(header));
  return {};
}

}  // namespace

Status WriteShardIndex(const std::string& shard, std::vector<uint8_t> file, std::string_view part) {
  const std::string path = ShardIndexPath(shard, HeaderIn(file)->shard, part);
  if (path.empty()) return Error{Code::kNotFound, "there is no home folder for the index"};
  if (file.size() > kMostShardIndexBytes) {
    return Error{Code::kResourceExhausted, "the index would be larger than 1 GiB", path};
  }
  TRY(AddContentHash(shard, file));
  const std::string folder = IndexFolder();
  (void)MakeFolders(folder);  // opening the file reports the failure in more detail
  SweepFolder(folder);
  ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(path, OutputFile::Origin::kOwn));
  // This fails on file systems without permissions; readers then decide whether to trust the file.
  (void)fchmod(output.descriptor(), 0600);
  TRY(output.Write(file));
  return output.Commit();  // the checksum detects the effects of a crash of the machine
}

}  // namespace stoker
