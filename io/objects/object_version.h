// ObjectVersion: which content an object had when its source was opened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stoker {

struct ObjectVersion {
  uint64_t bytes = 0;
  std::string etag;        // as the server sends it, with its quotes; empty: it sends none
  int64_t modified_s = 0;  // since 1970; 0: unknown

  bool has_strong_etag() const { return etag.starts_with('"'); }

  // Equal for equal content, and for no other that a server is likely to have under the URL.
  uint64_t Hash() const;

  friend bool operator==(const ObjectVersion&, const ObjectVersion&) = default;
};

// The versions of a source's objects, by URL.
class ObjectVersions {
 public:
  void Add(std::string url, ObjectVersion version) {
    versions_.insert_or_assign(std::move(url), std::move(version));
  }
  void Add(const ObjectVersions& others) {
    versions_.insert(others.versions_.begin(), others.versions_.end());
  }
  // Null: the object was not opened with the source.
  const ObjectVersion* Find(std::string_view url) const {
    const auto found = versions_.find(url);
    return found == versions_.end() ? nullptr : &found->second;
  }
  uint64_t memory_bytes() const;

  // Of those of these paths that are URLs; nullopt: none is. `versions`: by path.
  static std::optional<ObjectVersions> Of(std::span<const std::string> paths,
                                          std::span<const ObjectVersion> versions);

 private:
  std::map<std::string, ObjectVersion, std::less<>> versions_;
};

}  // namespace stoker
