#include "io/tar/libarchive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>

#include <string>

#include "core/result/try.h"

namespace stoker {

namespace {

constexpr const char* kLibarchiveName = "libarchive.so.13";

Error NoLibarchive(const char* why) {
  return {.code = Code::kUnavailable,
          .cause = std::string("tar archives are indexed by libarchive, which cannot be loaded: ") +
                   (why == nullptr ? "no reason is known" : why),
          .advice =
              "Install it: apt-get install libarchive13 (Debian, Ubuntu), dnf install "
              "libarchive (Fedora) or conda install -c conda-forge libarchive"};
}

// `Declared` is the function's type in the library's header; the type in this table must agree.
template <typename Declared>
bool FindFunction(void* library, const char* name, Declared*& function) {
  function = reinterpret_cast<Declared*>(dlsym(library, name));
  return function != nullptr;
}

// The library is never unloaded: other code of the process may have loaded it, too.
Result<Libarchive> LoadLibarchive() {
  void* const library = dlopen(kLibarchiveName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NoLibarchive(dlerror());
  Libarchive all;
  const bool found =
      FindFunction<decltype(archive_version_string)>(library, "archive_version_string",
                                                     all.version_string) &&
      FindFunction<decltype(archive_read_new)>(library, "archive_read_new", all.read_new) &&
      FindFunction<decltype(archive_read_free)>(library, "archive_read_free", all.read_free) &&
      FindFunction<decltype(archive_read_support_format_tar)>(
          library, "archive_read_support_format_tar", all.support_format_tar) &&
      FindFunction<decltype(archive_read_open2)>(library, "archive_read_open2", all.open2) &&
      FindFunction<decltype(archive_read_next_header)>(library, "archive_read_next_header",
                                                       all.next_header) &&
      FindFunction<decltype(archive_read_data)>(library, "archive_read_data", all.data) &&
      FindFunction<decltype(archive_read_header_position)>(library, "archive_read_header_position",
                                                           all.header_position) &&
      FindFunction<decltype(archive_filter_bytes)>(library, "archive_filter_bytes",
                                                   all.filter_bytes) &&
      FindFunction<decltype(archive_error_string)>(library, "archive_error_string",
                                                   all.error_string) &&
      FindFunction<decltype(archive_entry_pathname)>(library, "archive_entry_pathname",
                                                     all.entry_pathname) &&
      FindFunction<decltype(archive_entry_hardlink)>(library, "archive_entry_hardlink",
                                                     all.entry_hardlink) &&
      FindFunction<decltype(archive_entry_filetype)>(library, "archive_entry_filetype",
                                                     all.entry_filetype) &&
      FindFunction<decltype(archive_entry_size)>(library, "archive_entry_size", all.entry_size) &&
      FindFunction<decltype(archive_entry_sparse_count)>(library, "archive_entry_sparse_count",
                                                         all.entry_sparse_count);
  if (!found) return NoLibarchive(dlerror());
  return all;
}

}  // namespace

Result<const Libarchive*> Libarchive::Load() {
  static const Result<Libarchive> loaded = LoadLibarchive();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

}  // namespace stoker
