// ObjectVersion: which content an object had when its source was opened. ObjectVersions: those of a
// source, and where their ranges are cached.
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

#include "core/result.h"
#include "io/objects/cache_options.h"
#include "io/objects/cached_object.h"

namespace stoker {

class DiskCache;

struct ObjectVersion {
  uint64_t bytes = 0;
  std::string etag;        // as the server sends it, with its quotes; empty: it sends none
  int64_t modified_s = 0;  // since 1970; 0: unknown

  bool has_strong_etag() const { return etag.starts_with('"'); }

  // What the cache tells versions apart by; empty: the server says nothing that could.
  std::string Text() const;
  // Whether this is enough to use later what was read now. URLs that differ in their query only may
  // be one object, signed anew, or several: a strong ETag tells.
  bool Identifies(std::string_view url) const;
  // Equal for equal content, and for no other that a server is likely to have under the URL.
  uint64_t Hash() const;

  friend bool operator==(const ObjectVersion&, const ObjectVersion&) = default;
};

// The versions of a source's objects, by URL.
class ObjectVersions {
 public:
  struct Known {
    ObjectVersion version;
    CachedObject cached;         // as the cache knows it
    DiskCache* cache = nullptr;  // keeps its ranges; null: nothing does
  };

  // Ranges of the object are looked up in `cache`, and kept there, if it is given and the version
  // can be told from others.
  void Add(const std::string& url, ObjectVersion version,
           const std::shared_ptr<DiskCache>& cache = nullptr);
  void Add(const ObjectVersions& others);
  // Null: the object was not opened with the source.
  const Known* Find(std::string_view url) const {
    const auto found = objects_.find(url);
    return found == objects_.end() ? nullptr : &found->second;
  }
  uint64_t memory_bytes() const;
  // A warning for the users of the caches, to be shown once; empty if there is none.
  std::string Warning() const;

  // Of those of these paths that are URLs; nullopt: none is. `versions`: by path.
  static std::optional<ObjectVersions> Of(std::span<const std::string> paths,
                                          std::span<const ObjectVersion> versions,
                                          const std::shared_ptr<DiskCache>& cache);

 private:
  void AddCache(const std::shared_ptr<DiskCache>& cache);

  std::map<std::string, Known, std::less<>> objects_;
  std::vector<std::shared_ptr<DiskCache>> caches_;  // each one once
};

// The cache of a source's objects; null if there is no folder. InvalidArgument: there is a folder
// and no size, or a size and no folder; the errors of DiskCache::Open.
Result<std::shared_ptr<DiskCache>> OpenObjectCache(const CacheOptions& options);

}  // namespace stoker
