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

Status MakeFolder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  return failed ? CannotWrite(failed.value(), path) : Status();
}

// Makes the folders of the list below `root`, which is new or empty: no link can lead out of it.
Status MakeFolders(const std::string& root, const PackedIndex& index) {
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
  if (index.pieces() > 1) return {};
  for (const ImageList::Folder& folder : index.list().folders) {
    TRY(MakeFolder(root + "/" + std::string(index.list().PathOf(folder))));
  }
  return {};
}

// Returns the path of a file, and makes the folder of a further field's.
Result<std::string> PathBelow(const std::string& root, const PackedIndex& index, uint64_t id,
                              size_t piece) {
  std::string path = root + "/";
  if (index.pieces() > 1) path.append(index.further().fields[piece].name.data()).push_back('/');
  index.AppendPath(id, piece, path);
  if (index.pieces() > 1) TRY(MakeFolder(path.substr(0, path.rfind('/'))));
  return path;
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
  TRY(MakeFolders(out, *index));
  std::atomic<uint64_t> bytes{0}, equal{0}, other_zlib{0};
  const Status written = ForEachSample(source->size(), threads, progress, [&]() -> SampleWork {
    auto restorer = std::make_shared<FileRestorer>(*source, *index);
    return [&, restorer](uint64_t id) -> Status {
      for (size_t piece = 0; piece < index->pieces(); ++piece) {
        ASSIGN_OR_RETURN(const std::span<const uint8_t> file, restorer->Restore(id, piece));
        ASSIGN_OR_RETURN(const std::string path, PathBelow(out, *index, id, piece));
        bytes += file.size();
        equal += restorer->equal().count;
        other_zlib += restorer->equal().other_zlib;
        TRY(Write(path, file));
      }
      return {};
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
                      .samples = source->size(),
                      .files = source->size() * index->pieces(),
                      .bytes = bytes,
                      .equal = {.count = equal, .other_zlib = other_zlib},
                      .seconds = passed.count()};
}

}  // namespace stoker
