#include "io/sources/shard_index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "core/hash.h"
#include "core/output_file.h"
#include "core/sha256.h"
#include "core/try.h"
#include "io/objects/object_settings.h"
#include "io/objects/object_url.h"
#include "io/objects/object_version.h"
#include "io/sources/section_format.h"

namespace stoker {

namespace {

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
                          const std::array<uint64_t, 3>& numbers, uint32_t content) {
  return {.magic = magic,
          .content = content,
          .shard_bytes = stamp.bytes,
          .shard_modified_ns = stamp.modified_ns,
          .numbers = numbers};
}

// Applies the rule in shard_index_file.h.
bool IsBelieved(const FileRights& index, const FileRights& shard) {
  const bool is_ours = index.user == shard.user || index.user == geteuid() || index.user == 0;
  return is_ours && (index.mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Returns the folder of the index files of objects; empty: there is none.
std::string ObjectIndexFolder() {
  const auto folder = [](const char* variable, const char* below) {
    const char* const value = std::getenv(variable);
    return value == nullptr || value[0] != '/' ? std::string() : std::string(value) + below;
  };
  const std::string cache = folder("XDG_CACHE_HOME", "/stoker/index");
  return cache.empty() ? folder("HOME", "/.cache/stoker/index") : cache;
}

// Returns the start of the paths of an object's index files. (The paths of index files beside an
// object start with its URL.) A signed URL has another query each time, so the query is left out.
// Empty: there is no home folder.
std::string ObjectIndexStem(const std::string& url) {
  const std::string folder = ObjectIndexFolder();
  if (folder.empty()) return "";
  return folder + "/" + Hexadecimal(Sha256(ObjectIdentity(url))).substr(0, 32);
}

std::string IndexEnding(std::string_view part) {
  return (part.empty() ? "" : "." + std::string(part)) + kShardIndexEnding;
}

Result<std::vector<uint8_t>> ContentOf(const InputFile& file, const std::array<char, 8>& magic,
                                       const FileStamp& stamp) {
  ASSIGN_OR_RETURN(const FileStamp now, file.Stamp());
  std::vector<uint8_t> bytes(sizeof(ShardIndexHeader));
  if (now.bytes < bytes.size() || now.bytes > kMostShardIndexBytes) return std::vector<uint8_t>();
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, bytes));
  const std::optional<ShardIndexHeader> header = HeaderIn(std::span(bytes).first(got));
  if (!header) return std::vector<uint8_t>();
  ShardIndexHeader wanted = HeaderOf(magic, stamp, header->numbers, header->content);
  wanted.checksum = header->checksum;
  if (std::memcmp(&wanted, &*header, sizeof(wanted)) != 0) return std::vector<uint8_t>();
  bytes.resize(now.bytes);
  ASSIGN_OR_RETURN(const size_t whole, file.ReadAt(0, bytes));
  bytes.resize(whole);
  return bytes;
}

// Hashes five parts of the shard, among them its first and last bytes. An archive that was packed
// anew has other content there, although its size, which is rounded up, is often the same.
Result<uint32_t> HashOfParts(const InputFile& shard, uint64_t bytes) {
  constexpr uint64_t kParts = 5, kPart = 64 << 10;  // as ObjectFile reads at least
  std::vector<uint8_t> part(std::min(bytes, kPart));
  uint64_t hash = bytes;
  for (uint64_t i = 0; i < kParts; ++i) {
    const uint64_t offset = (bytes - part.size()) / (kParts - 1) * i;
    const bool is_last = i + 1 == kParts;
    ASSIGN_OR_RETURN(const size_t got, shard.ReadAt(is_last ? bytes - part.size() : offset, part));
    hash = Hash64(std::span(part).first(got), hash);
  }
  return static_cast<uint32_t>(hash);
}

}  // namespace

std::string ShardIndexPath(const std::string& shard, std::string_view part) {
  const std::string stem = IsObjectUrl(shard) ? ObjectIndexStem(shard) : shard;
  return stem.empty() ? "" : stem + IndexEnding(part);
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

bool SignShardIndex(std::span<uint8_t> file, const std::array<char, 8>& magic,
                    const FileStamp& stamp) {
  const std::optional<ShardIndexHeader> header = HeaderIn(file);
  if (!header) return false;
  ShardIndexHeader sound = HeaderOf(magic, stamp, header->numbers, header->content);
  sound.checksum = ChecksumOf(sound, file.subspan(sizeof(sound)));
  std::memcpy(file.data(), &sound, sizeof(sound));
  return true;
}

namespace {

std::optional<std::vector<uint8_t>> ReadIndexFile(const InputFile& shard,
                                                  const std::array<char, 8>& magic,
                                                  const FileStamp& stamp, std::string_view part) {
  const Result<InputFile> file =
      InputFile::Open(ShardIndexPath(shard.path(), part), InputFile::Links::kRefused);
  if (!file.ok()) return std::nullopt;
  const Result<FileRights> of_index = file->Rights();
  const Result<FileRights> of_shard = shard.Rights();
  if (!of_index.ok() || !of_shard.ok() || !IsBelieved(*of_index, *of_shard)) return std::nullopt;
  try {
    Result<std::vector<uint8_t>> bytes = ContentOf(*file, magic, stamp);
    if (!bytes.ok()) return std::nullopt;
    return *std::move(bytes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // scanning the shard holds less memory at a time
  }
}

// Returns the index beside an object, which was made when the shard was a file with another stamp.
Result<std::vector<uint8_t>> ContentOfObject(const InputFile& shard,
                                             const std::array<char, 8>& magic,
                                             const FileStamp& stamp, std::string_view part) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(shard.path() + IndexEnding(part)));
  const int64_t made_s = file.version()->modified_s, changed_s = shard.version()->modified_s;
  if (made_s == 0 || changed_s == 0 || made_s < changed_s) return std::vector<uint8_t>();
  std::vector<uint8_t> bytes(sizeof(ShardIndexHeader));
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, bytes));
  const std::optional<ShardIndexHeader> header = HeaderIn(std::span(bytes).first(got));
  if (!header || header->shard_bytes != stamp.bytes) return std::vector<uint8_t>();
  const FileStamp then{.bytes = stamp.bytes, .modified_ns = header->shard_modified_ns};
  ASSIGN_OR_RETURN(bytes, ContentOf(file, magic, then));
  std::span<const uint8_t> columns;
  if (!UnpackShardIndex(bytes, magic, then, columns)) return std::vector<uint8_t>();
  ASSIGN_OR_RETURN(const uint32_t content, HashOfParts(shard, stamp.bytes));
  if (content != header->content) return std::vector<uint8_t>();
  (void)SignShardIndex(bytes, magic, stamp);
  return bytes;
}

}  // namespace

std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
                                                   const std::array<char, 8>& magic,
                                                   const FileStamp& stamp, std::string_view part) {
  const ObjectVersion* const object = shard.version();
  if (object != nullptr && !object->Identifies(shard.path())) return std::nullopt;
  auto known = ReadIndexFile(shard, magic, stamp, part);
  const bool has_index = known && !known->empty();
  if (has_index || object == nullptr) return known;
  if (BeforeQuery(shard.path()) != shard.path()) return std::nullopt;  // it is signed for one URL
  try {
    Result<std::vector<uint8_t>> bytes = ContentOfObject(shard, magic, stamp, part);
    if (!bytes.ok()) return std::nullopt;
    return *std::move(bytes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

namespace {

// Puts the hash of a file's content into the bytes of its index.
Status AddHashOfParts(const std::string& path, std::span<uint8_t> file) {
  ShardIndexHeader header = *HeaderIn(file);
  ASSIGN_OR_RETURN(const InputFile shard, InputFile::Open(path));
  ASSIGN_OR_RETURN(header.content, HashOfParts(shard, header.shard_bytes));
  ASSIGN_OR_RETURN(const FileStamp now, shard.Stamp());
  if (now != FileStamp{.bytes = header.shard_bytes, .modified_ns = header.shard_modified_ns}) {
    return Error{Code::kUnavailable, "the file has changed since it was indexed", path};
  }
  header.checksum = ChecksumOf(header, file.subspan(sizeof(header)));
  std::memcpy(file.data(), &header, sizeof(header));
  return {};
}

}  // namespace

Status WriteShardIndex(const std::string& shard, std::vector<uint8_t> file, std::string_view part) {
  const std::string path = ShardIndexPath(shard, part);
  if (path.empty()) return Error{Code::kNotFound, "there is no home folder for the index"};
  if (file.size() > kMostShardIndexBytes) {
    return Error{Code::kResourceExhausted, "the index would be larger than 1 GiB", path};
  }
  if (!IsObjectUrl(shard)) TRY(AddHashOfParts(shard, file));
  std::error_code ignored;  // opening the file reports the failure in more detail
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(path, OutputFile::Origin::kOwn));
  struct stat info {};
  // This fails on file systems without permissions; readers then decide whether to trust the file.
  if (fstat(output.descriptor(), &info) == 0) {
    (void)fchmod(output.descriptor(), info.st_mode & 0755U);
  }
  TRY(output.Write(file));
  return output.Commit();  // the checksum detects what a crash of the machine leaves behind
}

}  // namespace stoker
