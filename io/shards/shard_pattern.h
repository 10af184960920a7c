// Shard patterns: the paths of many files in one text, "shards/{000..127}.tar".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

inline constexpr size_t kMaxShards = size_t{1} << 20;

// Expands a pattern into paths, in the order in which it is written:
// - "a{x,y}b" means axb and ayb, and "{007..128}" and "{a..f..2}" are ranges, as in shells and
//   in the Python package braceexpand, which WebDataset uses, but braces are not nested;
// - then `*` matches any characters of one name and `?` one byte, except a dot at the beginning of
//   a name. The resulting paths exist, and are sorted bytewise within one text without braces;
// - "one::other" matches the paths of one pattern and then those of the other;
// - a backslash makes the character after it ordinary.
// Paths without `*` and `?` need not exist. Those of index files that earlier versions have left
// next to shards (shard_index_file.h) are left out, so that a list may be any glob's. A path that
// results twice is listed twice. Relative paths are put into the folder `root`; "." leaves them
// unchanged. In URLs of objects (io/remote/object_url.h) braces and backslashes have their
// meaning, and `?` begins the query; a relative path is a name even if `root` is a URL.
//
// InvalidArgument: an empty pattern, a NUL, braces that do not match or are nested, more than
// kMaxShards paths or 128 MiB of them, a path that begins with a home folder (~/), a relative path
// if `root` is empty or an HTTP URL with a query or a fragment. Unimplemented: a URL of another
// kind, a command ("pipe:"), a URL with `*`. NotFound: no file matches a `*` or `?`.
// PermissionDenied, and others, if any folder to search cannot be read.
Result<std::vector<std::string>> ExpandShards(std::string_view pattern,
                                              std::string_view root = ".");

// Expands braces only: backslashes, `*` and `?` are unchanged.
Result<std::vector<std::string>> ExpandBraces(std::string_view pattern);

// Whether a name matches a text with `*` and `?`. Time: at most the product of their lengths.
bool MatchesWildcards(std::string_view name, std::string_view wildcards);

// Puts backslashes before characters of a path that have a meaning in a pattern.
std::string QuoteShard(std::string_view path);

}  // namespace stoker
