// ObjectVersion: identifies the content that an object had when its source was opened.
// ObjectVersions: the versions of a source's objects, and the caches of their ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "io/cache/cache_options.h"
#include "io/cache/cached_object.h"

namespace stoker {

class DiskCache;

struct ObjectVersion {
  uint64_t bytes = 0;
  std::string etag;        // as the server sends it, with its quotes; empty means it sends none
  int64_t modified_s = 0;  // since 1970; 0 means unknown
  bool of_store = false;   // HttpResponse::of_store
  uint64_t content = 0;    // a hash of the content; 0 if the ETag identifies it or nothing is kept

  bool has_strong_etag() const { return etag.starts_with('"'); }
  // Whether objects with equal ETags have equal content, as in S3, Google Cloud Storage and Azure,
  // and in servers with their interfaces. Web servers (nginx, Apache, lighttpd, IIS, Caddy,
  // Starlette) make the ETag of a file's time and size. `in_store`: whether the URL is one of a
  // store.
  bool etag_names_content(bool in_store) const {
    return has_strong_etag() && (in_store || of_store);
  }

  // The text by which responses of a server distinguish versions; empty means the server sends
  // nothing that could.
  std::string Text() const;
  // Whether bytes read now may be used later under this version. URLs that differ only in their
  // query may be one object, signed again, or several: a strong ETag distinguishes them.
  bool Identifies(std::string_view url) const;
  // Returns equal numbers for equal content, and almost surely different ones for different content
  // under the URL.
  uint64_t Hash() const;

  friend bool operator==(const ObjectVersion&, const ObjectVersion&) = default;
};

// The versions of a source's objects, by URL.
class ObjectVersions {
 public:
  struct KnownVersion {
    ObjectVersion version;
    CachedObject cached;         // the object's keys in the cache
    DiskCache* cache = nullptr;  // keeps its ranges; null means no cache does
  };

  // Looks ranges of the object up in `cache`, and keeps them there, if `cache` is given and the
  // version can be distinguished from others.
  void Add(const std::string& url, ObjectVersion version,
           const std::shared_ptr<DiskCache>& cache = nullptr);
  void Add(const ObjectVersions& others);
  // Returns null if the object was not opened with the source.
  const KnownVersion* Find(std::string_view url) const {
    const auto found = objects_.find(url);
    return found == objects_.end() ? nullptr : &found->second;
  }
  uint64_t memory_bytes() const;
  // A warning for the users of the caches, to be shown once; empty if there is none.
  std::string Warning() const;

  // Returns the versions of those `paths` that are URLs; nullopt if none is. `versions`: by path.
  static std::optional<ObjectVersions> Of(std::span<const std::string> paths,
                                          std::span<const ObjectVersion> versions,
                                          const std::shared_ptr<DiskCache>& cache);

 private:
  void AddCache(const std::shared_ptr<DiskCache>& cache);

  std::map<std::string, KnownVersion, std::less<>> objects_;
  std::vector<std::shared_ptr<DiskCache>> caches_;  // each one once
};

// Opens the cache of a source's objects; null if there is no folder. InvalidArgument: there is a
// folder and no size, or a size and no folder; the errors of DiskCache::Open.
Result<std::shared_ptr<DiskCache>> OpenObjectCache(const CacheOptions& options);

}  // namespace stoker
