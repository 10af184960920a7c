// libcurl's functions, for reading objects by HTTP.
//
// The library is loaded when a URL is opened for the first time: it loads thirty others (TLS,
// Kerberos, LDAP, SSH), and programs that read folders should not pay for them.
#pragma once

#include "core/result/result.h"

struct curl_slist;  // NOLINT(readability-identifier-naming): the library's own name

namespace stoker {

// Functions of curl.h, without the prefix curl_. Its types CURL and CURLM are void there, and its
// enumerations are passed as int and long.
struct Libcurl {
  // Returns the process-wide table; loads the library on the first call. Thread-safe. Unavailable,
  // with the package's name, if this machine does not have it, or only a version before 7.66.
  static Result<const Libcurl*> Load();

  const char* (*version)() = nullptr;  // "libcurl/7.88.1 OpenSSL/3.0.11 …"

  void* (*easy_init)() = nullptr;
  void (*easy_cleanup)(void*) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
  int (*easy_setopt)(void*, int, ...) = nullptr;
  int (*easy_getinfo)(void*, int, ...) = nullptr;

  curl_slist* (*slist_append)(curl_slist*, const char*) = nullptr;
  void (*slist_free_all)(curl_slist*) = nullptr;

  void* (*multi_init)() = nullptr;
  int (*multi_cleanup)(void*) = nullptr;
  int (*multi_add_handle)(void*, void*) = nullptr;
  int (*multi_remove_handle)(void*, void*) = nullptr;
  int (*multi_perform)(void*, int*) = nullptr;
  int (*multi_poll)(void*, void*, unsigned, int, int*) = nullptr;
  void* (*multi_info_read)(void*, int*) = nullptr;  // a CURLMsg
  int (*multi_setopt)(void*, int, ...) = nullptr;
};

}  // namespace stoker
