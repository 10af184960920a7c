#include "bindings/cli/unpack/unpack_set.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "bindings/cli/pack/restore_file.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/output_file.h"
#include "io/packed/open_packed.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// Makes the folders of the list below `root`, which is new or empty: no link can lead out of it.
Status MakeFolders(const std::string& root, const ImageList& list) {
  std::error_code failed;
  fs::create_directories(root, failed);
  if (failed) return CannotWrite(failed.value(), root);
  const bool empty = fs::is_empty(root, failed);
  if (failed) return SystemError(failed.value(), "cannot list", root);
  if (!empty) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "this folder is not empty",
                 .file = root,
                 .advice = "Name a new folder, or remove what an earlier run has left in this one"};
  }
  for (const ImageList::Folder& folder : list.folders) {
    const std::string path = root + "/" + std::string(list.PathOf(folder));
    fs::create_directories(path, failed);
    if (failed) return CannotWrite(failed.value(), path);
  }
  return {};
}

Status Write(const std::string& path, std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Origin::kOwn));
  TRY(file.Write(bytes));
  return file.Commit();
}

}  // namespace

Result<UnpackReport> UnpackSet(const std::string& folder, const std::string& out, int threads,
                               const SampleProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  TRY(CheckThreads(threads));
  ASSIGN_OR_RETURN(const std::shared_ptr<const PackedIndex> index, OpenPackedIndex(folder));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source, Packed(folder, index));
  TRY(MakeFolders(out, index->list()));
  std::atomic<uint64_t> bytes{0};
  const Status written = ForEachSample(source->size(), threads, progress, [&]() -> SampleWork {
    auto restorer = std::make_shared<FileRestorer>(*source, *index);
    return [&, restorer](uint64_t id) -> Status {
      ASSIGN_OR_RETURN(const std::span<const uint8_t> file, restorer->Restore(id));
      std::string path = out + "/";
      index->list().AppendPath(id, path);
      bytes += file.size();
      return Write(path, file);
    };
  });
  if (!written.ok() && written.error().code == Code::kCancelled) {
    return Error{.code = Code::kCancelled,
                 .cause = "stopped before all samples were written",
                 .file = out,
                 .advice = "Remove this folder before you unpack again"};
  }
  TRY(written);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return UnpackReport{.source = source->Describe(),
                      .out = out,
                      .files = source->size(),
                      .bytes = bytes,
                      .seconds = passed.count()};
}

}  // namespace stoker
