#include "bench/index_dataset.h"

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
#include <system_error>
#include <utility>

#include "bench/in_parallel.h"
#include "io/readers/plain_read.h"
#include "io/sources/dataset_index.h"
#include "io/sources/dataset_index_format.h"
#include "io/sources/image_folder.h"
#include "transforms/format.h"
#include "transforms/jpeg/fast/crop_index_maker.h"

namespace stoker {
namespace {

constexpr uint64_t kChunk = 16;                         // files that a thread takes at a time
constexpr uint64_t kWorkingMemory = uint64_t{4} << 30;  // of each thread: the largest file

struct Indexed {
  uint64_t key = 0;
  uint64_t bytes = 0;  // of the photograph
  std::vector<uint8_t> record;
  std::string reason;  // why there is none
};

// One thread's.
class FileIndexer {
 public:
  FileIndexer() { read_.buffer = GrowingBuffer(budget_); }

  Indexed Index(const std::string& path) {
    Indexed indexed;
    read_.path = path;
    ReadPlainly(read_);
    indexed.bytes = read_.size;
    const std::span<const uint8_t> file(read_.buffer.data(), read_.size);
    if (!read_.status.ok()) {
      indexed.reason = "cannot be read";
    } else if (SniffFormat(file) != ImageFormat::kJpeg) {
      indexed.reason = "not a JPEG";
    } else if (Fallback why = maker_.Make(file, indexed.record); why != Fallback::kNone) {
      indexed.reason = NameOf(why);
    }
    return indexed;
  }

 private:
  MemoryBudget budget_{kWorkingMemory};
  ReadRequest read_;
  jpeg::CropIndexMaker maker_;
};

class Indexing {
 public:
  Indexing(const SampleSource& source, const IndexOptions& options, DatasetIndexWriter& writer,
           const IndexProgress& progress)
      : source_(source), options_(options), writer_(writer), progress_(progress) {}

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

  // After all threads have left Run.
  Status status() && { return std::move(status_); }
  IndexReport& report() { return report_; }

 private:
  void IndexChunks() {
    FileIndexer indexer;
    std::string path;
    std::vector<Indexed> chunk;
    while (true) {
      const uint64_t first = next_.fetch_add(kChunk);
      if (first >= source_.size()) return;
      const uint64_t end = std::min(first + kChunk, source_.size());
      chunk.clear();
      for (uint64_t id = first; id < end; ++id) {
        source_.PathOf(source_.At(id).file, path);
        chunk.push_back(indexer.Index(path));
        chunk.back().key = source_.KeyOf(id);
      }
      if (!Write(first, chunk)) return;
    }
  }

  // In the source's order: waits until the chunks before have been written. False when the work is
  // over.
  bool Write(uint64_t first, const std::vector<Indexed>& chunk) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return written_ == first || !status_.ok(); });
    for (size_t i = 0; i < chunk.size() && status_.ok(); ++i) Take(first + i, chunk[i]);
    written_ += chunk.size();
    if (status_.ok() && progress_ && !progress_(written_, source_.size())) {
      status_ =
          Error{Code::kCancelled, "stopped before all files were indexed", source_.Describe()};
    }
    turn_.notify_all();
    return status_.ok();
  }

  void Take(uint64_t id, const Indexed& indexed) {
    ++report_.samples;
    if (indexed.reason.empty()) {
      ++report_.indexed;
      report_.photograph_bytes += indexed.bytes;
      status_ = writer_.Add(indexed.key, indexed.record);
      return;
    }
    ++report_.skipped[indexed.reason];
    if (report_.skipped_files.size() == options_.list_skipped) return;
    std::string path;
    source_.PathOf(source_.At(id).file, path);
    report_.skipped_files.push_back({std::move(path), indexed.reason});
  }

  const SampleSource& source_;
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

// Where the caller has named the file an option is wrong, and so no file is to blame.
Error CannotPut(const std::string& out, bool own, const std::string& why,
                const std::string& advice) {
  return own ? Error{.code = Code::kInvalidArgument, .cause = why, .file = out, .advice = advice}
             : Error{.code = Code::kInvalidArgument,
                     .cause = "cannot write the index to " + out + ": " + why,
                     .advice = advice};
}

Result<bool> BeginsAsIndex(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (descriptor < 0) return SystemError(errno, "cannot look at what is to be replaced", path);
  std::array<char, dataset_index::kMagic.size()> begin{};
  const ssize_t got = pread(descriptor, begin.data(), begin.size(), 0);
  close(descriptor);
  return got == static_cast<ssize_t>(begin.size()) && begin == dataset_index::kMagic;
}

// That nothing but an index is replaced. `own`: it is the folder's own, whose name nothing else
// has: any file is replaced there, also one that is damaged at its very beginning.
Status CheckPlace(const std::string& out, bool own) {
  struct stat info {};
  if (lstat(out.c_str(), &info) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) return SystemError(errno, "cannot look there", out);
    const std::filesystem::path folder = std::filesystem::path(out).parent_path();
    std::error_code ignored;
    if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
    return CannotPut(out, own, "its folder is not there", "Make it first, or name another file");
  }
  if (S_ISREG(info.st_mode)) {
    if (own) return {};
    Result<bool> index = BeginsAsIndex(out);
    if (!index.ok()) return std::move(index).error();
    if (*index) return {};
  }
  return CannotPut(out, own, "there is something else here",
                   own ? "Move it away" : "Name another file");
}

Result<DatasetIndexWriter> Create(const std::string& out, bool own) {
  if (Status status = CheckPlace(out, own); !status.ok()) return std::move(status).error();
  Result<DatasetIndexWriter> writer = DatasetIndexWriter::Create(out);
  if (writer.ok() || !own || writer.error().code != Code::kPermissionDenied) return writer;
  Error error = std::move(writer).error();
  error.advice = "Use --out FILE, and --crop-index FILE (crop_index= in Python) when reading";
  return error;
}

}  // namespace

Result<IndexReport> IndexDataset(const std::string& directory, const IndexOptions& options,
                                 const IndexProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  Result<std::shared_ptr<const SampleSource>> source = ImageFolder(
      directory, {.threads = options.threads, .crop_index = ImageFolderOptions::CropIndex::kOff});
  if (!source.ok()) return std::move(source).error();
  std::string root = directory;
  while (root.ends_with('/')) root.pop_back();
  root += '/';
  const std::string out = options.out.empty() ? root + kIndexName : options.out;
  Result<DatasetIndexWriter> writer = Create(out, options.out.empty());
  if (!writer.ok()) return std::move(writer).error();
  Indexing indexing(**source, options, *writer, progress);
  InParallel(options.threads, [&indexing] { indexing.Run(); });
  IndexReport report = std::move(indexing.report());
  if (Status status = std::move(indexing).status(); !status.ok()) return std::move(status).error();
  Result<uint64_t> bytes = writer->Finish();
  if (!bytes.ok()) return std::move(bytes).error();
  report.source = (*source)->Describe();
  report.out = out;
  report.index_bytes = *bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace stoker
