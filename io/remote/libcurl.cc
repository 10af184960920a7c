#include "io/remote/libcurl.h"

#include <curl/curl.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace stoker {

namespace {

// The second one is Debian's flavour with GnuTLS.
constexpr std::array kLibcurlNames = {"libcurl.so.4", "libcurl-gnutls.so.4"};

Error NoLibcurl(const char* why) {
  return {.code = Code::kUnavailable,
          .cause = std::string("remote objects are read by libcurl, which cannot be used: ") +
                   (why == nullptr ? "no reason is known" : why),
          .advice =
              "Install it: apt-get install libcurl4 (Debian, Ubuntu), dnf install libcurl "
              "(Fedora) or conda install -c conda-forge libcurl"};
}

// The table's types differ from the library's for its enumerations and for its own names of void.
template <typename Function>
bool FindIn(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool FindEasy(void* library, Libcurl& all) {
  return FindIn(library, "curl_version", all.version) &&
         FindIn(library, "curl_easy_init", all.easy_init) &&
         FindIn(library, "curl_easy_cleanup", all.easy_cleanup) &&
         FindIn(library, "curl_easy_strerror", all.easy_strerror) &&
         FindIn(library, "curl_easy_setopt", all.easy_setopt) &&
         FindIn(library, "curl_easy_getinfo", all.easy_getinfo) &&
         FindIn(library, "curl_slist_append", all.slist_append) &&
         FindIn(library, "curl_slist_free_all", all.slist_free_all);
}

bool FindMulti(void* library, Libcurl& all) {
  return FindIn(library, "curl_multi_init", all.multi_init) &&
         FindIn(library, "curl_multi_cleanup", all.multi_cleanup) &&
         FindIn(library, "curl_multi_add_handle", all.multi_add_handle) &&
         FindIn(library, "curl_multi_remove_handle", all.multi_remove_handle) &&
         FindIn(library, "curl_multi_perform", all.multi_perform) &&
         FindIn(library, "curl_multi_poll", all.multi_poll) &&
         FindIn(library, "curl_multi_info_read", all.multi_info_read) &&
         FindIn(library, "curl_multi_setopt", all.multi_setopt);
}

// Returns the flags for loading it. TensorFlow contains a libcurl and BoringSSL, and puts their
// symbols where all libraries of the process look first: libcurl would call them with structures of
// its own, and crash. In that case libcurl and its dependences must look among their own symbols
// first. (Not always, because the address sanitizer does not allow it.)
int LoadFlags() {
  const bool others_have_names = dlsym(RTLD_DEFAULT, "curl_easy_init") != nullptr ||
                                 dlsym(RTLD_DEFAULT, "SSL_CTX_new") != nullptr;
  return RTLD_NOW | RTLD_LOCAL | (others_have_names ? RTLD_DEEPBIND : 0);
}

// The library is never unloaded: other code of the process may have loaded it, too.
Result<Libcurl> LoadLibcurl() {
  void* library = nullptr;
  std::string why;
  for (const char* const name : kLibcurlNames) {
    library = dlopen(name, LoadFlags());
    if (library != nullptr) break;
    const char* const reason = dlerror();
    if (why.empty() && reason != nullptr) why = reason;
  }
  if (library == nullptr) return NoLibcurl(why.c_str());
  Libcurl all;
  decltype(&curl_global_init_mem) global_init = nullptr;
  if (!FindEasy(library, all) || !FindMulti(library, all) ||
      !FindIn(library, "curl_global_init_mem", global_init)) {
    return NoLibcurl(dlerror());
  }
  // Uses the allocator of the process, which is not necessarily the one that libcurl finds.
  if (global_init(CURL_GLOBAL_DEFAULT, malloc, free, realloc, strdup, calloc) != CURLE_OK)
    return NoLibcurl("its initialisation failed");
  return all;
}

}  // namespace

Result<const Libcurl*> Libcurl::Load() {
  static const Result<Libcurl> loaded = LoadLibcurl();
  if (!loaded.ok()) return loaded.error();
  return &*loaded;
}

}  // namespace stoker
