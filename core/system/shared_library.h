// SharedLibrary: a library of the machine that is loaded when it is first needed, so that programs
// which do not need it neither wait for it nor have to have it.
#pragma once

#include <span>
#include <string>

#include "core/result/result.h"

namespace stoker {

// Never unloaded: other code of the process may have loaded the library, too.
class SharedLibrary {
 public:
  // Loads the first of the files (as "libgif.so.7") that is there. Otherwise `status()` is
  // Unimplemented: `purpose` ("GIF images are decoded by giflib") which cannot be loaded, and why,
  // with the advice to install it by one of `packages`.
  SharedLibrary(std::span<const char* const> files, const char* purpose, const char* packages);

  // Sets `function` to the library's function of that name, whose type is that of its header.
  template <typename Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(Address(name));
  }

  // The first error so far: without one the library is loaded and all functions were found.
  Status status() const;

 private:
  void* Address(const char* name);

  void* library_ = nullptr;
  const char* const purpose_;
  const char* const packages_;
  bool failed_ = false;
  std::string why_;
};

// Returns a process-wide table of a library's functions, which the first call makes by `load`.
// Thread-safe.
template <typename Table, Result<Table> (*load)()>
Result<const Table*> LoadOnce() {
  static const Result<Table> loaded = load();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

}  // namespace stoker
