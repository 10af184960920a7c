// Shard patterns: the paths of many files in one text, "shards/{000..127}.tar".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace stoker {

inline constexpr size_t kMaxShards = size_t{1} << 20;

// Expands a pattern into paths, in the order in which it is written:
// - "a{x,y}b" is axb and ayb, "{007..128}" and "{a..f..2}" are ranges, and braces may be nested, as
//   in shells and in the Python package braceexpand, which WebDataset uses;
// - then `*` is any characters of one name and `?` is one byte, except a dot that a name begins
//   with. These paths exist, are not those of index files (shard_index_file.h), and those of one
//   text without braces are sorted bytewise;
// - "one::other" is the paths of one pattern and then those of the other;
// - a backslash takes the meaning from the character behind it.
// Paths without `*` and `?` need not exist. A path that comes twice is there twice. Relative paths
// are put into the folder `root`; "." leaves them as they are. In URLs of objects
// (io/objects/object_url.h) braces and backslashes count, and `?` begins the query.
//
// InvalidArgument: an empty pattern, a NUL, braces that do not match or are nested deeper than 32,
// more than kMaxShards paths or 256 MiB of them, a path that begins as a home folder (~/), a
// relative path if `root` is empty. Unimplemented: another URL,
// a command ("pipe:"), a URL with `*`. NotFound: no file
// matches a `*` or `?`. PermissionDenied, and others, if any folder to search cannot be read.
Result<std::vector<std::string>> ExpandShards(std::string_view pattern,
                                              std::string_view root = ".");

// The first step alone: backslashes, `*` and `?` are unchanged.
Result<std::vector<std::string>> ExpandBraces(std::string_view pattern);

// Whether a name matches a text with `*` and `?`. Time: at most the product of their lengths.
bool MatchesWildcards(std::string_view name, std::string_view wildcards);

// Puts backslashes where a path has characters that mean something in a pattern.
std::string QuoteShard(std::string_view path);

}  // namespace stoker
