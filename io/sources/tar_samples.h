// TarSamples: the samples that the members of tar archives are grouped into, compact enough for
// tens of millions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "io/sources/path_table.h"
#include "io/sources/source.h"
#include "io/sources/tar_members.h"

namespace stoker {

// The samples of one shard, or of several in their order. They take 24 bytes each and those of
// their key, and 8 for a label.
struct TarSamples {
  struct Image {
    uint64_t offset = 0;  // in its shard
    uint32_t length = 0;  // bytes
    uint32_t shard = 0;
  };

  std::vector<Image> images;
  PathTable keys;
  std::vector<int64_t> labels;  // empty: samples have none
  SkippedFiles skipped;         // samples without an image

  // Whether samples have labels, and one of them that shows it; nullopt: there is none yet.
  std::optional<bool> labelled;
  std::string example;          // its key
  uint64_t example_offset = 0;  // of its first member
  uint32_t example_shard = 0;

  uint64_t memory_bytes() const;  // on the heap
};

static_assert(sizeof(TarSamples::Image) == 16);

// The extensions of images, in lower case, the preferred one first: of "jpg;jpeg;png;webp".
// InvalidArgument for an empty one, or one with a slash, a NUL or a space.
Result<std::vector<std::string>> ParseImageExtensions(std::string_view list);

// Groups a shard's members as WebDataset does: neighbours with the same key are one sample, and
// extensions count in lower case. The image is the member with the first of `extensions` that the
// sample has; a sample with none of them is skipped and counted.
//
// InvalidArgument names the shard, the offset and the key: an extension that a sample has twice, a
// sample with a label (.cls) beside one without, an image of 4 GiB or more.
Result<TarSamples> GroupMembers(const TarMembers& all, const std::vector<std::string>& extensions,
                                const std::string& path, uint32_t shard);

// Appends a later shard's samples. InvalidArgument, with the shard and the key, if those of one
// have labels and those of the other do not. `paths`: of the shards, by number.
Status AppendSamples(TarSamples& all, TarSamples&& more, const std::vector<std::string>& paths);

}  // namespace stoker
