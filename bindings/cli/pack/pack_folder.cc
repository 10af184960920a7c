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
#include "core/result/utf8.h"
#include "core/system/start_thread.h"

namespace stoker {
namespace {

constexpr uint64_t kPackChunk = 8;  // files that a thread takes at a time

using PackedSample = std::vector<PackedFile>;  // all pieces

// Packs files into shards, in their order.
class Packing {
 public:
  Packing(const FilesToPack& files, const PackOptions& options, SetFolder& set,
          const PackProgress& progress, PackReport& report)
      : files_(files), options_(options), set_(set), progress_(progress), report_(report) {}

  // The body of each thread.
  void Run() {
    try {
      PackChunks();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = Error{Code::kResourceExhausted, "out of memory", files_.root(0)};
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
    FilePacker packer(options_.exact);
    std::vector<Result<PackedSample>> chunk;
    while (true) {
      const uint64_t first = next_.fetch_add(kPackChunk);
      if (first >= files_.samples()) return;
      const uint64_t end = std::min<uint64_t>(first + kPackChunk, files_.samples());
      chunk.clear();
      for (uint64_t id = first; id < end; ++id) chunk.push_back(Pack(packer, id));
      if (!Write(first, chunk)) return;
    }
  }

  Result<PackedSample> Pack(FilePacker& packer, uint64_t id) const {
    std::string first, path;
    files_.AppendPath(id, 0, first);
    const packed_set::Entry* const known = set_.Find(first);
    PackedSample sample;
    for (size_t piece = 0; piece < files_.pieces(); ++piece) {
      path = files_.root(piece);
      files_.AppendPath(id, piece, path);
      if (known == nullptr) {
        ASSIGN_OR_RETURN(sample.emplace_back(), packer.Pack(path, files_.is_mask(piece)));
        continue;
      }
      const std::string_view below = std::string_view(path).substr(files_.root(piece).size());
      if (piece > 0 && set_.PathOfPiece(first, piece) != below) return OtherPiece(path, first);
      ASSIGN_OR_RETURN(sample.emplace_back(), packer.Compare(path, known[piece]));
    }
    return sample;
  }

  static Error OtherPiece(const std::string& path, const std::string& first) {
    return {.code = Code::kInvalidArgument,
            .cause = "the packed set has another file for '" + first + "'",
            .file = path,
            .advice = "Shards are never changed: pack into a new folder"};
  }

  // In the list's order: waits until the chunks before it have been written. False if the work is
  // over.
  bool Write(uint64_t first, const std::vector<Result<PackedSample>>& chunk) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return written_ == first || !status_.ok(); });
    for (size_t i = 0; i < chunk.size() && status_.ok(); ++i) status_ = Take(first + i, chunk[i]);
    written_ += chunk.size();
    if (status_.ok() && progress_ && !progress_(written_, files_.samples())) {
      status_ = Error{.code = Code::kCancelled,
                      .cause = "stopped before all samples were packed",
                      .file = set_.path(),
                      .advice = "Run it again to continue with the shards that are complete"};
    }
    turn_.notify_all();
    return status_.ok();
  }

  Status Take(uint64_t id, const Result<PackedSample>& packed) {
    if (!packed.ok()) return packed.error();
    std::string path;
    files_.AppendPath(id, 0, path);
    if (set_.Find(path) != nullptr) return {};
    uint64_t bytes = 0;
    for (const PackedFile& file : *packed) bytes += file.image.size() + file.file.size();
    if (shard_ && shard_->bytes() + bytes > options_.shard_bytes) {
      TRY(shard_->Commit());
      shard_.reset();
    }
    if (!shard_) {
      ASSIGN_OR_RETURN(PackedShardWriter shard, set_.NewShard(files_.fields()));
      shard_.emplace(std::move(shard));
    }
    for (size_t piece = 0; piece < packed->size(); ++piece) {
      const PackedFile& file = (*packed)[piece];
      path.clear();
      files_.AppendPath(id, piece, path);
      TRY(shard_->Add(file.entry, path, file.image, file.file));
      report_.added_bytes += file.entry.sample.file_bytes;
      if (!file.reason.empty()) ++report_.as_they_are[file.reason];
    }
    ++report_.added;
    return {};
  }

  const FilesToPack& files_;
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

// Checks before packing what would end it: images next to class folders, and other fields.
Status CheckClasses(const FilesToPack& files, const SetFolder& set) {
  const std::string& directory = files.folder(0);
  const auto refuse = [&](std::string cause) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::move(cause),
                 .file = set.path(),
                 .advice = "Name a new folder"};
  };
  if (set.samples() != 0 && set.fields() != files.fields()) {
    return refuse("the samples of the packed set have other fields than " + files.description());
  }
  const bool flat = files.classes().empty();
  if (!files.fields().empty() || set.has_classes().value_or(!flat) != flat) return {};
  return refuse(flat ? "the packed set has class folders, and " + directory + " has none"
                     : directory + " has class folders, and the packed set has none");
}

// Shards are never changed, so PNGs that were packed without --exact stay as they are.
Status CheckExact(const SetFolder& set) {
  const std::string_view equal = set.FindEqual();
  if (equal.empty()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause =
                   "the packed set was begun without --exact, and has PNGs that do not come "
                   "back to the byte ('" +
                   Printable(equal) + "')",
               .file = set.path(),
               .advice = "Pack into a new folder with --exact, and keep the files until then"};
}

// Refuses what would make another set than the folder, unless that is wanted.
Status CheckSame(const FilesToPack& files, const SetFolder& set) {
  const std::string& directory = files.folder(0);
  std::string path;
  uint64_t added = 0;
  for (uint64_t id = 0; id < files.samples(); ++id) {
    path.clear();
    files.AppendPath(id, 0, path);
    added += set.Find(path) == nullptr ? 1 : 0;
  }
  const uint64_t both = files.samples() - added;
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
  ASSIGN_OR_RETURN(const FilesToPack files, FilesToPack::OfFolder(directory, options.threads));
  return PackFiles(files, out, options, progress);
}

Result<PackReport> PackFiles(const FilesToPack& files, const std::string& out,
                             const PackOptions& options, const PackProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t piece = 0; piece < files.pieces(); ++piece) TRY(CheckApart(files.folder(piece), out));
  ASSIGN_OR_RETURN(SetFolder set, SetFolder::Open(out));
  TRY(CheckClasses(files, set));
  if (options.exact) TRY(CheckExact(set));
  if (!options.append) TRY(CheckSame(files, set));
  PackReport report;
  report.source = files.description();
  report.out = out;
  report.skipped = files.skipped();
  report.classes = files.classes();
  Packing packing(files, options, set, progress, report);
  InParallel(options.threads, [&packing] { packing.Run(); });
  TRY(packing.Finish());
  ASSIGN_OR_RETURN(const SetFolder::Written written, set.WriteIndex());
  report.samples = written.samples;
  report.images = written.images;
  report.packed = written.packed;
  report.equal = written.equal;
  report.file_bytes = written.file_bytes;
  report.set_bytes = written.shard_bytes + written.index_bytes;
  report.shards = written.shards;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
