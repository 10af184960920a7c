#include "bindings/cli/pack/pack_folder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/cli/pack/file_packer.h"
#include "bindings/cli/pack/set_folder.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/start_thread.h"
#include "io/folder/list_images.h"
#include "io/index/folder_listing.h"
#include "io/index/image_list.h"

namespace stoker {
namespace {

constexpr uint64_t kPackChunk = 8;  // files that a thread takes at a time

// Packs the files of a list into shards, in the list's order.
class Packing {
 public:
  // `root` ends with a slash.
  Packing(const ImageList& list, const std::string& root, const PackOptions& options,
          SetFolder& set, const PackProgress& progress, PackReport& report)
      : list_(list),
        root_(root),
        options_(options),
        set_(set),
        progress_(progress),
        report_(report) {}

  // The body of each thread.
  void Run() {
    try {
      PackChunks();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = Error{Code::kResourceExhausted, "out of memory", root_};
      turn_.notify_all();
    }
  }

  // Called after all threads have left Run: puts the last shard in place.
  Status Finish() {
    TRY(std::move(status_));
    return shard_ ? shard_->Commit() : Status();
  }

 private:
  void PackChunks() {
    FilePacker packer;
    std::vector<Result<PackedFile>> chunk;
    while (true) {
      const uint64_t first = next_.fetch_add(kPackChunk);
      if (first >= list_.files.size()) return;
      const uint64_t end = std::min<uint64_t>(first + kPackChunk, list_.files.size());
      chunk.clear();
      for (uint64_t file = first; file < end; ++file) chunk.push_back(Pack(packer, file));
      if (!Write(first, chunk)) return;
    }
  }

  Result<PackedFile> Pack(FilePacker& packer, uint64_t file) const {
    std::string path = root_;
    list_.AppendPath(file, path);
    const packed_set::Entry* const known = set_.Find(std::string_view(path).substr(root_.size()));
    return known == nullptr ? packer.Pack(path) : packer.Compare(path, *known);
  }

  // In the list's order: waits until the chunks before it have been written. False if the work is
  // over.
  bool Write(uint64_t first, const std::vector<Result<PackedFile>>& chunk) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return written_ == first || !status_.ok(); });
    for (size_t i = 0; i < chunk.size() && status_.ok(); ++i) status_ = Take(first + i, chunk[i]);
    written_ += chunk.size();
    if (status_.ok() && progress_ && !progress_(written_, list_.files.size())) {
      status_ = Error{.code = Code::kCancelled,
                      .cause = "stopped before all samples were packed",
                      .file = set_.path(),
                      .advice = "Run it again to continue with the shards that are complete"};
    }
    turn_.notify_all();
    return status_.ok();
  }

  Status Take(uint64_t file, const Result<PackedFile>& packed) {
    if (!packed.ok()) return packed.error();
    std::string path;
    list_.AppendPath(file, path);
    if (set_.Find(path) != nullptr) return {};
    if (shard_ && shard_->bytes() + packed->image.size() > options_.shard_bytes) {
      TRY(shard_->Commit());
      shard_.reset();
    }
    if (!shard_) {
      ASSIGN_OR_RETURN(PackedShardWriter shard, set_.NewShard());
      shard_.emplace(std::move(shard));
    }
    TRY(shard_->Add(packed->entry, path, packed->image));
    ++report_.added;
    report_.added_bytes += packed->entry.sample.file_bytes;
    if (!packed->reason.empty()) ++report_.as_they_are[packed->reason];
    return {};
  }

  const ImageList& list_;
  const std::string& root_;
  const PackOptions& options_;
  SetFolder& set_;
  const PackProgress& progress_;
  PackReport& report_;  // under mutex_, as all below
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t written_ = 0;
  std::optional<PackedShardWriter> shard_;
  Status status_;
};

// Checks that the set is not in the folder, where it would be a class of it.
Status CheckApart(const std::string& directory, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = fs::canonical(directory, failed);
  const fs::path set = fs::weakly_canonical(out, failed);
  if (failed || folder.empty()) return {};  // others say more
  const auto [behind, in_set] = std::mismatch(folder.begin(), folder.end(), set.begin(), set.end());
  if (behind != folder.end()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "the packed set would lie in the folder that is packed",
               .file = out,
               .advice = "Name a folder elsewhere"};
}

// Checks before packing what would end it: images next to class folders.
Status CheckClasses(const ImageList& list, const SetFolder& set, const std::string& directory) {
  const bool flat = list.classes.empty();
  if (set.has_classes().value_or(!flat) != flat) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = flat ? "the packed set has class folders, and " + directory + " has none"
                             : directory + " has class folders, and the packed set has none",
               .file = set.path(),
               .advice = "Name a new folder"};
}

// Refuses what would make another set than the folder, unless that is wanted.
Status CheckSame(const ImageList& list, const SetFolder& set, const std::string& directory) {
  std::string path;
  uint64_t added = 0;
  for (uint64_t file = 0; file < list.files.size(); ++file) {
    path.clear();
    list.AppendPath(file, path);
    added += set.Find(path) == nullptr ? 1 : 0;
  }
  const uint64_t both = list.files.size() - added;
  if (set.samples() > both) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the packed set has " + std::to_string(set.samples() - both) +
                          Plural(set.samples() - both, " sample", " samples") +
                          " that are not in " + directory,
                 .file = set.path(),
                 .advice = "Use --append to have those of both, or name a new folder"};
  }
  if (!set.has_index() || added == 0) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "the packed set is complete, and " + directory + " has " +
                        std::to_string(added) + Plural(added, " sample", " samples") +
                        " that it has not",
               .file = set.path(),
               .advice = "Use --append to add them, or name a new folder"};
}

}  // namespace

Result<PackReport> PackFolder(const std::string& directory, const std::string& out,
                              const PackOptions& options, const PackProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const ImageList list,
                   ListImages(directory, options.threads, EmptyClasses::kRefuseToPack));
  TRY(CheckApart(directory, out));
  ASSIGN_OR_RETURN(SetFolder set, SetFolder::Open(out));
  TRY(CheckClasses(list, set, directory));
  if (!options.append) TRY(CheckSame(list, set, directory));
  PackReport report;
  report.source = "image_folder(" + directory + ")";
  report.out = out;
  report.skipped = list.skipped;
  report.skipped.Add(list.skipped_in_root);
  report.classes = list.classes;
  const std::string root = WithSlash(directory);
  Packing packing(list, root, options, set, progress, report);
  InParallel(options.threads, [&packing] { packing.Run(); });
  TRY(packing.Finish());
  ASSIGN_OR_RETURN(const SetFolder::Written written, set.WriteIndex());
  report.samples = written.samples;
  report.packed = written.packed;
  report.file_bytes = written.file_bytes;
  report.set_bytes = written.shard_bytes + written.index_bytes;
  report.shards = written.shards;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
