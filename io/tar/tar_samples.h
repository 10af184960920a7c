// TarSamples: the samples that the members of tar archives form, compact enough for tens of
// millions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/annotations/keyed_column.h"
#include "io/source/path_table.h"
#include "io/source/source.h"
#include "io/tar/tar.h"
#include "io/tar/tar_members.h"

namespace stoker {

// The rules by which members form samples. Extensions are in lower case.
struct TarGrouping {
  std::vector<std::string> images;   // extensions of images, the preferred one first
  bool varies = false;               // samples have any number of images; `images` are without "*."
  bool labels = true;                // whether .cls members are labels
  std::vector<std::string> texts{};  // extensions of columns, as in TarMembers::texts
  std::vector<std::string> arrays{};  // extensions of columns whose members are .npy files
  std::vector<std::string> masks{};   // extensions of masks

  // Columns of objects that one of the texts has, with keys of its documents.
  struct Objects {
    size_t text = 0;
    std::vector<KeyedColumn> columns;
  };
  std::vector<Objects> objects{};
  size_t text_columns = 0;  // the texts that are columns; the others come after them
};

// The samples of one shard, or of several in their order. Each takes 24 bytes plus its key, 8 for a
// label, 16 plus the text for each column of texts, and 16 for each mask and column of arrays. If
// the number of images varies, each takes 20 bytes plus its key, and 16 for each image.
struct TarSamples {
  struct Member {         // an image, a mask, or an array
    uint64_t offset = 0;  // in its shard
    uint32_t length = 0;  // bytes
    uint32_t shard = 0;
  };

  std::vector<Member> images;
  // If the number of images varies: ImageNumbers::ends, and each sample's shard.
  std::vector<uint64_t> ends;
  std::vector<uint32_t> shards;
  PathTable keys;
  std::vector<int64_t> labels;                         // empty if samples have none
  std::vector<std::vector<std::string_view>> columns;  // rows, by column; views of `texts`
  std::vector<std::vector<char>> texts;                // of the shards
  std::vector<std::vector<Member>> arrays;             // by column; each in its image's shard
  std::vector<std::vector<Member>> masks;              // by mask, likewise
  SkippedFiles skipped;  // samples without an image; images by "*.webp"

  // Whether samples have labels, and one sample that shows it; nullopt means there is no sample
  // yet.
  std::optional<bool> labelled;
  std::string example;          // its key
  uint64_t example_offset = 0;  // of its first member
  uint32_t example_shard = 0;

  uint64_t memory_bytes() const;  // on the heap
};

static_assert(sizeof(TarSamples::Member) == 16);

// Parses the extensions of images, in lower case, the preferred one first, from a text like
// "jpg;jpeg;png;webp". InvalidArgument for an empty extension, or one with a slash, a NUL or a
// space.
Result<std::vector<std::string>> ParseImageExtensions(std::string_view list);

// Checks all options but the number of threads. The grouping's texts and arrays are the options'
// columns, each in their order; texts with objects follow. InvalidArgument for invalid extensions,
// keys and names.
Result<TarGrouping> ParseGrouping(const TarOptions& options);

// Returns whether members with this extension are arrays: it ends with "npy", in any case.
bool IsArrayExtension(std::string_view extension);

// Returns whether members with this extension, in lower case, are text in UTF-8: WebDataset decodes
// such extensions as text or as numbers.
bool IsTextExtension(std::string_view extension);

// Groups a shard's members as WebDataset does: neighbours with the same key are one sample, and
// extensions count in lower case. The image is the member with the first of the images' extensions
// that the sample has; a sample with none of them is skipped and counted. Precondition: `all` has
// the texts of the grouping.
//
// If the number of images varies, they are all members with a number and one of these extensions,
// "7.12.jpg", in the order of their numbers, or the one member with an extension alone, "7.jpg". A
// sample without them is skipped, unless it has a member of a column. Other images are counted:
// those with a number, and with an extension of kTarImages; in samples without images all of them.
//
// InvalidArgument names the shard, the offset and the key or member: an extension that occurs twice
// in a sample, a label that is not an integer, a sample with a label (.cls) next to one without, a
// sample without a column's or mask's member, a text that is not UTF-8, an image or array of 4 GiB
// or more. If the number of images varies, also two images with one number, one without a number
// next to others, a number of 2^32 or more, more than kMostPieces images, and a sample with members
// apart from each other.
Result<TarSamples> GroupMembers(TarMembers all, const TarGrouping& grouping,
                                const std::string& path, uint32_t shard);

// Appends a later shard's samples. InvalidArgument, with the shard and the key, if only some of the
// samples would have labels. `paths`: the paths of the shards, by number.
Status AppendSamples(TarSamples& all, TarSamples&& more, const std::vector<std::string>& paths);

}  // namespace stoker
