#include "io/objects/object_version.h"

#include "core/hash.h"
#include "io/objects/object_url.h"

namespace stoker {

uint64_t ObjectVersion::Hash() const {
  const std::string rest = etag.empty() ? std::to_string(modified_s) : etag;
  return Hash64(rest, bytes);
}

std::optional<ObjectVersions> ObjectVersions::Of(std::span<const std::string> paths,
                                                 std::span<const ObjectVersion> versions) {
  std::optional<ObjectVersions> all;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!IsObjectUrl(paths[i])) continue;
    if (!all) all.emplace();
    all->Add(paths[i], versions[i]);
  }
  return all;
}

uint64_t ObjectVersions::memory_bytes() const {
  constexpr uint64_t kNode = 48;  // of the map, beside its value
  uint64_t bytes = 0;
  for (const auto& [url, version] : versions_) {
    bytes += kNode + sizeof(std::string) + sizeof(ObjectVersion) + url.capacity() +
             version.etag.capacity();
  }
  return bytes;
}

}  // namespace stoker
