#include "bindings/cli/pack/check_set.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bindings/cli/pack/restore_file.h"
#include "core/result/sample_fault.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/packed/open_packed.h"
#include "io/packed/packed_shard.h"

namespace stoker {
namespace {

using packed_set::Sample;

bool Equal(const Sample& a, const Sample& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

// Compares the shards' entries with the index: each of its samples is in its shard, at its place.
class ShardCheck {
 public:
  ShardCheck(const SampleSource& source, const PackedIndex& index)
      : source_(source), index_(index) {
    by_shard_.resize(index.shards().size());
    for (uint64_t id = 0; id < index.samples().size(); ++id) {
      by_shard_[index.samples()[id].shard()].push_back(id);
    }
  }

  void Check(std::vector<Error>& damaged) const {
    for (uint32_t number = 0; number < by_shard_.size(); ++number) {
      if (by_shard_[number].empty()) continue;
      std::string path;
      source_.PathOf(number, path);
      const Result<PackedShard> shard = ReadPackedShard(path, number);
      if (!shard.ok()) {
        damaged.push_back(shard.error());
      } else if (!Has(*shard, by_shard_[number])) {
        damaged.push_back({.code = Code::kDataLoss,
                           .cause = "what it says of its samples is not what the index says",
                           .file = path,
                           .advice = packed_set::kIndexFile.remake});
      }
    }
  }

 private:
  bool Has(const PackedShard& shard, const std::vector<uint64_t>& ids) const {
    if (shard.fields != index_.further().fields) return false;
    std::unordered_map<std::string_view, size_t> known;  // the entries of first pieces
    for (size_t i = 0; i < shard.entries.size(); i += shard.pieces()) {
      known.emplace(shard.paths[i], i);
    }
    std::string name;
    const auto is_known = [&](uint64_t id, size_t entry, size_t piece) {
      name.clear();
      index_.AppendPath(id, piece, name);
      return shard.paths[entry + piece] == name &&
             Equal(shard.entries[entry + piece].sample, index_.SampleOf(id, piece));
    };
    return std::ranges::all_of(ids, [&](uint64_t id) {
      source_.NameOf(id, name);
      const auto found = known.find(name);
      if (found == known.end()) return false;
      for (size_t piece = 0; piece < shard.pieces(); ++piece) {
        if (!is_known(id, found->second, piece)) return false;
      }
      return true;
    });
  }

  const SampleSource& source_;
  const PackedIndex& index_;
  std::vector<std::vector<uint64_t>> by_shard_;  // the samples of each
};

// The errors of damaged images: the first of them, in the order of their numbers.
class DamagedPhotographs {
 public:
  explicit DamagedPhotographs(size_t most) : most_(most) {}

  void Add(uint64_t id, Error error) {
    const std::lock_guard lock(mutex_);
    ++count_;
    first_.emplace(id, std::move(error));
    if (first_.size() > most_) first_.erase(std::prev(first_.end()));
  }

  // After all threads have ended.
  void MoveTo(SetCheck& check) {
    check.damaged += count_;
    for (auto& [id, error] : first_) {
      if (check.first.size() < most_) check.first.push_back(std::move(error));
    }
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  uint64_t count_ = 0;
  std::map<uint64_t, Error> first_;
};

}  // namespace

Result<SetCheck> CheckSet(const std::string& folder, const SetCheckOptions& options,
                          const SampleProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  TRY(CheckThreads(options.threads));
  ASSIGN_OR_RETURN(const std::shared_ptr<const PackedIndex> index, OpenPackedIndex(folder));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source, Packed(folder, index));
  SetCheck check;
  check.source = source->Describe();
  check.samples = source->size();
  check.images = source->size() * index->pieces();
  ShardCheck(*source, *index).Check(check.first);
  check.damaged = check.first.size();
  DamagedPhotographs damaged(options.most_listed);
  std::atomic<uint64_t> bytes{0}, equal{0}, other_zlib{0};
  TRY(ForEachSample(source->size(), options.threads, progress, [&]() -> SampleWork {
    auto restorer = std::make_shared<FileRestorer>(*source, *index);
    return [&, restorer](uint64_t id) -> Status {
      for (size_t piece = 0; piece < index->pieces(); ++piece) {
        Result<std::span<const uint8_t>> file = restorer->Restore(id, piece);
        if (file.ok()) {
          bytes += file->size();
          equal += restorer->equal().count;
          other_zlib += restorer->equal().other_zlib;
        } else if (FaultOf(file.error())) {
          damaged.Add(id * index->pieces() + piece, std::move(file).error());
        } else {
          return std::move(file).error();  // the machine's
        }
      }
      return {};
    };
  }));
  damaged.MoveTo(check);
  check.bytes = bytes;
  check.equal = {.count = equal, .other_zlib = other_zlib};
  check.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return check;
}

}  // namespace stoker
