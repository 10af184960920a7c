#include "io/readers/plain_files.h"

#include <cerrno>
#include <string>
#include <utility>

namespace stoker {

PlainFiles::PlainFiles(uint32_t most, const FileCalls& calls)
    : calls_(calls), files_(most), descriptors_(most, -1) {}

void PlainFiles::Read(ReadRequest& request) {
  const bool keep = request.length != kUnknownLength && !descriptors_.empty();
  if (keep && ReadKept(request)) return;
  const int descriptor = Open(request.path);
  ReadOpened(request, descriptor, calls_);
  if (descriptor < 0) return;
  if (keep && request.status.ok()) {
    Keep(request.path, descriptor);
  } else {
    (void)calls_.Close(descriptor);
  }
}

bool PlainFiles::ReadKept(ReadRequest& request) {
  KeptFile* file = files_.Find(request.path);
  if (file == nullptr) return false;
  if (ReadAgain(request, descriptors_[file->slot], calls_)) return true;
  files_.Drop(*file);
  Close(*file);
  return false;
}

int PlainFiles::Open(const std::string& path) {
  const int descriptor = OpenToRead(path, calls_);
  const bool none_free = descriptor == -EMFILE || descriptor == -ENFILE;
  return none_free && CloseAll() ? OpenToRead(path, calls_) : descriptor;
}

void PlainFiles::Keep(const std::string& path, int descriptor) {
  const KeptFile& file = *files_.Take(path);  // not null: no reads are in flight
  Close(file);                                // the slot's former file
  descriptors_[file.slot] = descriptor;
}

void PlainFiles::Close(const KeptFile& file) {
  const int descriptor = std::exchange(descriptors_[file.slot], -1);
  if (descriptor >= 0) (void)calls_.Close(descriptor);
}

bool PlainFiles::CloseAll() {
  bool any = false;
  files_.DropAll([&](const KeptFile& file) {
    any = any || descriptors_[file.slot] >= 0;
    Close(file);
  });
  return any;
}

}  // namespace stoker
