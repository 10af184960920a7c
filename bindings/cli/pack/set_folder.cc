#include "bindings/cli/pack/set_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/result/try.h"
#include "core/system/output_file.h"
#include "io/index/folder_listing.h"
#include "io/packed/packed_index.h"
#include "io/packed/packed_merge.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;
using packed_set::Entry;
using packed_set::Sample;

// The number of a shard's file; nullopt if the name is not a shard's.
std::optional<uint32_t> NumberOf(const std::string& name) {
  uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [behind, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || number >= packed_set::kMaxShards) return std::nullopt;
  return packed_set::ShardName(number) == name ? std::optional(number) : std::nullopt;
}

Error InTheWay(const std::string& folder, const std::string& name) {
  return {.code = Code::kInvalidArgument,
          .cause = "this folder has something else in it ('" + name + "'), and is not a packed set",
          .file = folder,
          .advice = "Name a new folder"};
}

Result<Descriptor> Lock(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return CannotWrite(failed.value(), folder);
  Descriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.open()) return CannotWrite(errno, folder);
  if (flock(*lock, LOCK_EX | LOCK_NB) == 0) return lock;
  // Other errors: this file system has no locks.
  if (errno != EWOULDBLOCK) return lock;
  return Error{.code = Code::kFailedPrecondition,
               .cause = "another process packs into this folder",
               .file = folder,
               .advice = "Wait for it, or name another folder"};
}

struct Content {
  std::vector<uint32_t> shards;        // their numbers, sorted
  std::vector<std::string> left_over;  // temporary files of a killed run
  bool has_index = false;
};

Result<Content> ListFolder(const std::string& folder) {
  Content content;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename();
    const std::optional<uint32_t> number = NumberOf(name);
    if (number) {
      content.shards.push_back(*number);
    } else if (name == packed_set::kIndexName) {
      content.has_index = true;
    } else if (OutputFile::IsTemporaryName(name)) {
      content.left_over.push_back(WithSlash(folder) + name);
    } else {
      return InTheWay(folder, name);
    }
  }
  if (failed) return SystemError(failed.value(), "cannot list", folder);
  std::ranges::sort(content.shards);
  return content;
}

Error OtherFields(const std::string& shard) {
  return {.code = Code::kInvalidArgument,
          .cause = "the samples of this shard have other fields than those of another shard",
          .file = shard,
          .advice = "Move the shards of another set out of this folder"};
}

}  // namespace

Result<SetFolder> SetFolder::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(Descriptor lock, Lock(folder));
  ASSIGN_OR_RETURN(const Content content, ListFolder(folder));
  SetFolder set(folder, std::move(lock));
  set.has_index_ = content.has_index;
  TRY(set.ReadShards(content.shards));
  std::error_code ignored;  // they are in nobody's way
  for (const std::string& path : content.left_over) fs::remove(path, ignored);
  return set;
}

Status SetFolder::ReadShards(const std::vector<uint32_t>& numbers) {
  for (const uint32_t number : numbers) {
    const std::string path = WithSlash(path_) + packed_set::ShardName(number);
    ASSIGN_OR_RETURN(PackedShard read, ReadPackedShard(path, number));
    if (!shards_.empty() && read.fields != fields_) return OtherFields(path);
    fields_ = read.fields;
    const auto index = static_cast<uint32_t>(shards_.size());
    const PackedShard& shard = shards_.emplace_back(std::move(read));
    const auto pieces = static_cast<uint32_t>(shard.pieces());
    for (uint32_t entry = 0; entry < shard.entries.size(); entry += pieces) {
      known_.emplace(shard.paths[entry], Location{index, entry});
    }
  }
  return {};
}

const Entry* SetFolder::Find(std::string_view path) const {
  const auto found = known_.find(path);
  if (found == known_.end()) return nullptr;
  return &shards_[found->second.shard].entries[found->second.entry];
}

std::string_view SetFolder::FindEqual() const {
  for (const PackedShard& shard : shards_) {
    for (size_t entry = 0; entry < shard.entries.size(); ++entry) {
      if (shard.entries[entry].sample.form == packed_set::Form::kEqualPng) {
        return shard.paths[entry];
      }
    }
  }
  return {};
}

std::string_view SetFolder::PathOfPiece(std::string_view path, size_t piece) const {
  const Location& at = known_.find(path)->second;
  return shards_[at.shard].paths[at.entry + piece];
}

Result<PackedShardWriter> SetFolder::NewShard(const std::vector<packed_set::PieceField>& fields) {
  const auto exists = [this](uint32_t number) {
    return std::ranges::any_of(shards_, [&](const PackedShard& s) { return s.number == number; });
  };
  while (exists(next_)) ++next_;
  if (next_ >= packed_set::kMaxShards) {
    return Error{Code::kResourceExhausted, "a packed set has at most 2^20 shards", path_};
  }
  begun_.push_back(next_);
  const uint32_t number = next_++;
  return PackedShardWriter::Create(WithSlash(path_) + packed_set::ShardName(number), number,
                                   fields);
}

Result<MergedSet> SetFolder::Merge() const {
  const size_t pieces = fields_.empty() ? 1 : fields_.size();
  std::vector<MergedSample> samples;
  samples.reserve(known_.size() * pieces);
  for (const auto& [path, at] : known_) {
    const PackedShard& shard = shards_[at.shard];
    for (size_t entry = at.entry; entry < at.entry + pieces; ++entry) {
      samples.push_back({shard.paths[entry], shard.entries[entry].sample});
    }
  }
  return fields_.empty() ? MergeShards(std::move(samples)) : MergePieces(fields_, samples);
}

Result<SetFolder::Written> SetFolder::WriteIndex() {
  TRY(ReadShards(std::exchange(begun_, {})));
  Result<MergedSet> merged = Merge();
  if (!merged.ok()) return std::move(merged).error().WithFile(path_);
  Written written{.samples = merged->samples.size()};
  for (const auto* const samples : {&merged->samples, &merged->further.samples}) {
    for (const Sample& sample : *samples) {
      ++written.images;
      written.packed += sample.form == packed_set::Form::kFile ? 0 : 1;
      written.equal += sample.form == packed_set::Form::kEqualPng ? 1 : 0;
      written.file_bytes += sample.file_bytes;
      written.image_bytes += sample.bytes;
    }
  }
  std::vector<packed_set::Shard> shards;
  for (const PackedShard& shard : shards_) {
    shards.resize(std::max<size_t>(shards.size(), shard.number + 1));
    shards[shard.number] = shard.shard;
    written.shard_bytes += shard.shard.bytes;
    ++written.shards;
  }
  ASSIGN_OR_RETURN(written.index_bytes,
                   WritePackedIndex(WithSlash(path_) + packed_set::kIndexName, merged->list, shards,
                                    merged->samples, merged->further));
  return written;
}

}  // namespace stoker
