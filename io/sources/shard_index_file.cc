#include "io/sources/shard_index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "core/hash.h"
#include "core/output_file.h"
#include "core/try.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

namespace {

using dataset_index::BytesOf;

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
                          const std::array<uint64_t, 3>& numbers) {
  return {.magic = magic,
          .shard_bytes = stamp.bytes,
          .shard_modified_ns = stamp.modified_ns,
          .numbers = numbers};
}

// Applies the rule in shard_index_file.h.
bool IsBelieved(const FileRights& index, const FileRights& shard) {
  const bool is_ours = index.user == shard.user || index.user == geteuid() || index.user == 0;
  return is_ours && (index.mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<std::vector<uint8_t>> ContentOf(const InputFile& file, const std::array<char, 8>& magic,
                                       const FileStamp& stamp) {
  ASSIGN_OR_RETURN(const FileStamp now, file.Stamp());
  std::vector<uint8_t> bytes(sizeof(ShardIndexHeader));
  if (now.bytes < bytes.size() || now.bytes > kMostShardIndexBytes) return std::vector<uint8_t>();
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, bytes));
  const std::optional<ShardIndexHeader> header = HeaderIn(std::span(bytes).first(got));
  if (!header) return std::vector<uint8_t>();
  ShardIndexHeader wanted = HeaderOf(magic, stamp, header->numbers);
  wanted.checksum = header->checksum;
  if (std::memcmp(&wanted, &*header, sizeof(wanted)) != 0) return std::vector<uint8_t>();
  bytes.resize(now.bytes);
  ASSIGN_OR_RETURN(const size_t whole, file.ReadAt(0, bytes));
  bytes.resize(whole);
  return bytes;
}

}  // namespace

std::string ShardIndexPath(const std::string& shard, std::string_view part) {
  std::string path = shard;
  if (!part.empty()) path.append(".").append(part);
  return path + kShardIndexEnding;
}

std::vector<uint8_t> PackShardIndex(const std::array<char, 8>& magic, const FileStamp& stamp,
                                    const std::array<uint64_t, 3>& numbers,
                                    std::initializer_list<std::span<const uint8_t>> columns) {
  ShardIndexHeader header = HeaderOf(magic, stamp, numbers);
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
  ShardIndexHeader wanted = HeaderOf(magic, stamp, header->numbers);
  wanted.checksum = ChecksumOf(wanted, columns);
  if (std::memcmp(&wanted, &*header, sizeof(wanted)) != 0) return std::nullopt;
  return header->numbers;
}

bool SignShardIndex(std::span<uint8_t> file, const std::array<char, 8>& magic,
                    const FileStamp& stamp) {
  const std::optional<ShardIndexHeader> header = HeaderIn(file);
  if (!header) return false;
  ShardIndexHeader sound = HeaderOf(magic, stamp, header->numbers);
  sound.checksum = ChecksumOf(sound, file.subspan(sizeof(sound)));
  std::memcpy(file.data(), &sound, sizeof(sound));
  return true;
}

std::optional<std::vector<uint8_t>> ReadShardIndex(const InputFile& shard,
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
    return std::nullopt;  // reading the shard needs less at a time
  }
}

Status WriteShardIndex(const std::string& path, std::span<const uint8_t> file) {
  if (file.size() > kMostShardIndexBytes) {
    return Error{Code::kResourceExhausted, "the index would be larger than 1 GiB", path};
  }
  ASSIGN_OR_RETURN(OutputFile output, OutputFile::Open(path, OutputFile::Origin::kOwn));
  struct stat info {};
  // This fails on file systems without permissions; then reading decides.
  if (fstat(output.descriptor(), &info) == 0) {
    (void)fchmod(output.descriptor(), info.st_mode & 0755U);
  }
  TRY(output.Write(file));
  return output.Commit();  // the checksum tells what a crash of the machine leaves behind
}

}  // namespace stoker
