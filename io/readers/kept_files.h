// KeptFiles: which files a reader keeps open, by path, in a bounded number of slots. The least
// recently used one gives way. It makes no system call: its reader opens and closes what the slots
// stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stoker {

// A file in a slot.
struct KeptFile {
  std::string path;
  uint32_t slot = 0;
  uint32_t reads = 0;  // in flight; while there are any, the slot is not given to another file
  bool open = false;   // set by the reader; false after Take
  bool kept = false;   // Find returns it
};

// Used by a single thread. Taking the slot of a file that is still kept allocates nothing, unless
// the new path is longer.
class KeptFiles {
 public:
  explicit KeptFiles(uint32_t slots) : slots_(slots) {}

  // Returns the file, which is then the most recently used one; null if it is not kept.
  KeptFile* Find(std::string_view path);

  // Gives the file a slot: an unused one or that of the least recently used file without reads in
  // flight, which is kept no longer; the reader replaces what the slot stands for. Null if all have
  // reads in flight. Precondition: Find(path) is null.
  KeptFile* Take(std::string_view path);

  // The file is not found any more. Its reads in flight may end. Harmless if it was dropped before.
  void Drop(KeptFile& file);
  // Drops every file; calls `close` for each that has no reads in flight.
  template <typename Close>
  void DropAll(Close close) {
    for (KeptFile& file : files_) {
      Drop(file);
      if (file.reads == 0) close(file);
    }
  }

 private:
  using Files = std::list<KeptFile>;  // a file stays where it is in memory

  const uint32_t slots_;
  Files files_;  // one for each slot used so far, the most recently used first
  std::unordered_map<std::string_view, Files::iterator> by_path_;  // those that are kept
};

}  // namespace stoker
