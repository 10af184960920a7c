#include "io/remote/object_version.h"

#include <algorithm>

#include "core/hash/hash.h"
#include "io/cache/disk_cache.h"
#include "io/remote/object_settings.h"
#include "io/remote/object_url.h"

namespace stoker {

std::string ObjectVersion::Text() const {
  if (!etag.empty()) return etag;
  return modified_s == 0 ? "" : "modified " + std::to_string(modified_s);
}

bool ObjectVersion::Identifies(std::string_view url) const {
  return BeforeQuery(url) == url ? !Text().empty() : has_strong_etag();
}

uint64_t ObjectVersion::Hash() const {
  const std::string rest = etag.empty() ? std::to_string(modified_s) : etag;
  return Hash64(rest, bytes) ^ content;
}

void ObjectVersions::Add(const std::string& url, ObjectVersion version,
                         const std::shared_ptr<DiskCache>& cache) {
  const std::string content = version.content == 0 ? "" : " " + std::to_string(version.content);
  const CachedObject cached(ObjectIdentity(url), version.Text() + content, version.bytes);
  DiskCache* const keeps = version.Identifies(url) ? cache.get() : nullptr;
  objects_.insert_or_assign(
      url, KnownVersion{.version = std::move(version), .cached = cached, .cache = keeps});
  if (keeps != nullptr) AddCache(cache);
}

void ObjectVersions::Add(const ObjectVersions& others) {
  objects_.insert(others.objects_.begin(), others.objects_.end());
  for (const auto& cache : others.caches_) AddCache(cache);
}

void ObjectVersions::AddCache(const std::shared_ptr<DiskCache>& cache) {
  if (std::ranges::find(caches_, cache) == caches_.end()) caches_.push_back(cache);
}

std::string ObjectVersions::Warning() const {
  for (const auto& cache : caches_) {
    if (std::string warning = cache->Warning(); !warning.empty()) return warning;
  }
  return {};
}

std::optional<ObjectVersions> ObjectVersions::Of(std::span<const std::string> paths,
                                                 std::span<const ObjectVersion> versions,
                                                 const std::shared_ptr<DiskCache>& cache) {
  std::optional<ObjectVersions> all;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!IsObjectUrl(paths[i])) continue;
    if (!all) all.emplace();
    all->Add(paths[i], versions[i], cache);
  }
  return all;
}

uint64_t ObjectVersions::memory_bytes() const {
  constexpr uint64_t kNode = 48;  // a node of the map, without its value
  uint64_t bytes = 0;
  for (const auto& [url, known] : objects_) {
    bytes += kNode + sizeof(std::string) + sizeof(KnownVersion) + url.capacity() +
             known.version.etag.capacity();
  }
  return bytes;
}

Result<std::shared_ptr<DiskCache>> OpenObjectCache(const CacheOptions& options) {
  if (options.folder.empty() != (options.bytes == 0)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = options.folder.empty() ? "cache_bytes was given, and no cache"
                                                 : "a cache was given, and no cache_bytes",
                 .file = options.folder,
                 .advice = "Give a folder on a local disk, and how many bytes it may take"};
  }
  if (IsObjectUrl(options.folder)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "a cache is a folder on a local disk, not a URL",
                 .file = options.folder};
  }
  if (options.folder.empty()) return std::shared_ptr<DiskCache>();
  return DiskCache::Open(options.folder, options.bytes);
}

}  // namespace stoker
