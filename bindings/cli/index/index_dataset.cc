#include "bindings/cli/index/index_dataset.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "core/result/try.h"
#include "core/system/file_kind.h"
#include "core/system/file_stamp.h"
#include "core/system/start_thread.h"
#include "engine/arrays/image_facts.h"
#include "io/folder/image_folder.h"
#include "io/folder/list_images.h"
#include "io/index/dataset_index.h"
#include "io/index/dataset_index_format.h"
#include "io/index/image_list.h"
#include "io/readers/plain_read.h"
#include "transforms/decode/format.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/whole/decoder.h"

namespace stoker {
namespace {

constexpr uint64_t kChunk = 16;  // files that a thread takes at a time
// Each thread keeps up to kCommonFile. A larger file is read only if its first bytes are an image's
// and it is at most kLargestFile.
constexpr uint64_t kCommonFile = uint64_t{64} << 20;
constexpr uint64_t kLargestFile = uint64_t{1} << 30;

struct Indexed {
  ImageFacts facts;
  std::vector<uint8_t> record;
  std::string reason;  // why there is none
};

// Used by one thread.
class FileIndexer {
 public:
  FileIndexer() { common_.buffer = GrowingBuffer(budget_); }

  Indexed Index(const std::string& path) {
    common_.path = path;
    ReadPlainly(common_);
    if (common_.status.ok()) return IndexBytes({common_.buffer.data(), common_.size});
    if (common_.status.error().code == Code::kResourceExhausted) return IndexLarge(path);
    return {.facts = {}, .record = {}, .reason = "cannot be read"};
  }

 private:
  Indexed IndexBytes(std::span<const uint8_t> file) {
    Indexed indexed{.facts = FactsOfFile(file, decoder_), .record = {}, .reason = {}};
    if (SniffFormat(file) != ImageFormat::kJpeg) {
      indexed.reason = "not a JPEG";
    } else if (Fallback why = maker_.Make(file, indexed.record); why != Fallback::kNone) {
      indexed.reason = NameOf(why);
    }
    return indexed;
  }

  // Reads into memory of its own, freed on return.
  Indexed IndexLarge(const std::string& path) {
    struct stat info {};
    MemoryBudget budget(kLargestFile);
    ReadRequest read;
    read.buffer = GrowingBuffer(budget);
    read.path = path;
    read.length = kSniffBytes;
    ReadPlainly(read);
    if (!read.status.ok() || stat(path.c_str(), &info) != 0) {
      return {.facts = {}, .record = {}, .reason = "cannot be read"};
    }
    const ImageFormat format = SniffFormat({read.buffer.data(), read.size});
    const ImageFacts facts{.file_bytes = static_cast<uint64_t>(info.st_size),
                           .format = static_cast<uint8_t>(format)};
    if (!IsDecoded(format)) return {.facts = facts, .record = {}, .reason = "not a JPEG"};
    read.length = kUnknownLength;
    ReadPlainly(read);
    if (read.status.ok()) return IndexBytes({read.buffer.data(), read.size});
    const bool large = read.status.error().code == Code::kResourceExhausted;
    return {.facts = facts, .record = {}, .reason = large ? "too large" : "cannot be read"};
  }

  static bool IsDecoded(ImageFormat format) {
    return format == ImageFormat::kJpeg || IsPng(format) || format == ImageFormat::kWebp ||
           format == ImageFormat::kPackedJpeg || WholeDecoder::Decodes(format);
  }

  MemoryBudget budget_{kCommonFile};
  ReadRequest common_;
  ImageDecoder decoder_;
  jpeg::CropIndexMaker maker_;
};

class Indexing {
 public:
  // `root` ends with a slash.
  Indexing(const ImageList& list, const std::string& root, const IndexOptions& options,
           DatasetIndexWriter& writer, const IndexProgress& progress)
      : list_(list), root_(root), options_(options), writer_(writer), progress_(progress) {}

  // The body of each thread.
  void Run() {
    try {
      IndexChunks();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      if (status_.ok()) status_ = Error{Code::kResourceExhausted, "out of memory"};
      turn_.notify_all();
    }
  }

  // Called after all threads have left Run.
  Status status() && { return std::move(status_); }
  IndexReport& report() { return report_; }

 private:
  void IndexChunks() {
    FileIndexer indexer;
    std::string path;
    std::vector<Indexed> chunk;
    while (true) {
      const uint64_t first = next_.fetch_add(kChunk);
      if (first >= list_.files.size()) return;
      const uint64_t end = std::min<uint64_t>(first + kChunk, list_.files.size());
      chunk.clear();
      for (uint64_t file = first; file < end; ++file) {
        path = root_;
        list_.AppendPath(file, path);
        chunk.push_back(indexer.Index(path));
      }
      if (!Write(first, chunk)) return;
    }
  }

  // Writes in the list's order: waits until the chunks before this one have been written. Returns
  // false if the work is over.
  bool Write(uint64_t first, const std::vector<Indexed>& chunk) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return written_ == first || !status_.ok(); });
    for (size_t i = 0; i < chunk.size() && status_.ok(); ++i) Take(first + i, chunk[i]);
    written_ += chunk.size();
    if (status_.ok() && progress_ && !progress_(written_, list_.files.size())) {
      status_ = Error{Code::kCancelled, "stopped before all samples were indexed", root_};
    }
    turn_.notify_all();
    return status_.ok();
  }

  void Take(uint64_t file, const Indexed& indexed) {
    ++report_.samples;
    report_.sized += indexed.facts.width > 0 ? 1 : 0;
    status_ = writer_.Add(indexed.facts, indexed.record);
    if (indexed.reason.empty()) {
      ++report_.indexed;
      report_.photograph_bytes += indexed.facts.file_bytes;
      return;
    }
    ++report_.skipped[indexed.reason];
    if (report_.skipped_files.size() == options_.list_skipped) return;
    std::string path = root_;
    list_.AppendPath(file, path);
    report_.skipped_files.push_back({std::move(path), indexed.reason});
  }

  const ImageList& list_;
  const std::string& root_;
  const IndexOptions& options_;
  DatasetIndexWriter& writer_;
  const IndexProgress& progress_;
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t written_ = 0;
  Status status_;
  IndexReport report_;
};

// Lists the folder when nothing in it has changed for a tick. A folder that keeps changing has
// kUnknownTime. The time of a flat folder is never used (IsStill).
Result<ImageList> ListAtRest(const std::string& directory, int threads) {
  constexpr int kTries = 4;
  for (int i = 1;; ++i) {
    const int64_t now = NowNs();
    Result<ImageList> list = ListImages(directory, threads, EmptyClasses::kAllow);
    if (!list.ok() || list->classes.empty()) return list;
    int64_t rest = 0;
    for (ImageList::Folder& folder : list->folders) {
      const bool ahead = IsAhead(folder.changed_ns, now);
      const int64_t of_this = ahead ? 0 : RestNs(folder.changed_ns, now);
      rest = std::max(rest, of_this);
      if (ahead || (of_this > 0 && i == kTries)) folder.changed_ns = kUnknownTime;
    }
    if (rest == 0 || i == kTries) return list;
    std::this_thread::sleep_for(std::chrono::nanoseconds(rest));
  }
}

Error CannotPut(const std::string& out, const std::string& why, const std::string& advice) {
  return {.code = Code::kInvalidArgument,
          .cause = "cannot write the index: " + why,
          .file = out,
          .advice = advice};
}

Result<bool> BeginsAsIndex(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return SystemError(errno, "cannot stat the file to replace", path);
  std::array<char, dataset_index::kMagic.size()> begin{};
  const ssize_t got = pread(descriptor, begin.data(), begin.size(), 0);
  close(descriptor);
  return got == static_cast<ssize_t>(begin.size()) && begin == dataset_index::kMagic;
}

// Checks that nothing but an index is replaced. Not called for the folder's own index, whose name
// nothing else has: any file there is replaced, even one that is damaged at its beginning.
Status CheckReplaceable(const std::string& out) {
  struct stat info {};
  if (lstat(out.c_str(), &info) != 0) return {};  // Create will report it
  std::string what = FileKind(info.st_mode);
  if (S_ISREG(info.st_mode)) {
    Result<bool> index = BeginsAsIndex(out);
    if (!index.ok()) return std::move(index).error();
    if (*index) return {};
    what += " that is not an index";
  }
  return CannotPut(out, what + " is in the way", "Name another file");
}

// Checks that writing the index does not change a folder whose time it records: it would be stale
// at once. DIR itself is compared by name (IsStill), so it may contain the index.
Status CheckOutside(const std::string& out, const std::string& root, const ImageList& list) {
  struct stat info_of_folder {};
  std::string folder = std::filesystem::path(out).parent_path();
  if (stat(folder.empty() ? "." : folder.c_str(), &info_of_folder) != 0)
    return {};  // Create will report it
  for (const ImageList::Folder& listed : list.folders) {
    if (listed.path_bytes == 0) continue;  // flat
    struct stat info {};
    folder.assign(root).append(list.PathOf(listed));
    if (stat(folder.c_str(), &info) != 0) continue;
    if (info.st_dev != info_of_folder.st_dev || info.st_ino != info_of_folder.st_ino) continue;
    return CannotPut(out, "there it would change a class folder's time and be stale at once",
                     "Put it next to the class folders, or elsewhere");
  }
  return {};
}

Result<DatasetIndexWriter> Create(const std::string& out, bool own, const std::string& root,
                                  const ImageList& list) {
  if (!own) {
    Status status = CheckReplaceable(out);
    if (status.ok()) status = CheckOutside(out, root, list);
    if (!status.ok()) return std::move(status).error();
  }
  Result<DatasetIndexWriter> writer = DatasetIndexWriter::Create(out);
  if (writer.ok() || !own || writer.error().code != Code::kPermissionDenied) return writer;
  Error error = std::move(writer).error();
  error.advice = "Use --out FILE, and --crop-index FILE (crop_index= in Python) when reading";
  return error;
}

}  // namespace

std::string IndexFileOf(const std::string& directory) { return WithSlash(directory) + kIndexName; }

Result<IndexReport> IndexDataset(const std::string& directory, const IndexOptions& options,
                                 const IndexProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(ImageList list, ListAtRest(directory, options.threads));
  const std::string root = WithSlash(directory);
  const bool own = options.out.empty();
  const std::string out = own ? IndexFileOf(directory) : options.out;
  ASSIGN_OR_RETURN(DatasetIndexWriter writer, Create(out, own, root, list));
  Indexing indexing(list, root, options, writer, progress);
  InParallel(options.threads, [&indexing] { indexing.Run(); });
  IndexReport report = std::move(indexing.report());
  TRY(std::move(indexing).status());
  ASSIGN_OR_RETURN(uint64_t bytes, writer.Commit(list));
  report.source = "image_folder(" + directory + ")";
  report.out = out;
  report.index_bytes = bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
