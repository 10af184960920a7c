#include "io/shards/shard_pattern.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "core/result/try.h"
#include "io/remote/object_url.h"
#include "io/shards/shard_index_file.h"

namespace stoker {

namespace {

using Texts = std::vector<std::string>;

constexpr size_t kMaxPathBytes = size_t{128} << 20;  // of all paths together

Error BadPattern(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = "the shard pattern " + std::move(cause),
          .advice = std::move(advice)};
}

Error TooManyPaths() {
  return BadPattern("matches more than " + std::to_string(kMaxShards) +
                    " paths, or for more than 128 MiB of them");
}

Error Unbalanced() {
  return BadPattern("has an unmatched brace", R"(Write \{ for a brace in a name)");
}

Error Nested() {
  return BadPattern(
      "has braces within braces",
      "Write several patterns, joined by ::, as a-{0..9}.tar::b-{0..4}.tar instead of "
      R"({a-{0..9},b-{0..4}}.tar; \{ is a brace in a name)");
}

// Returns whether a pattern may expand to this number of paths and bytes.
bool IsAllowed(size_t paths, size_t bytes) { return paths <= kMaxShards && bytes <= kMaxPathBytes; }

size_t BytesOfAll(const Texts& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

// Returns the position after the character at `at`, which may have a backslash.
size_t PositionAfter(std::string_view text, size_t at) {
  return std::min(at + (text[at] == '\\' ? 2 : 1), text.size());
}

// Returns the position of the first of these characters that has no backslash; npos if there is
// none.
size_t FindAnyOf(std::string_view characters, std::string_view text) {
  const size_t first = text.find_first_of(characters);
  if (first == std::string_view::npos) return first;  // no backslash matters
  for (size_t at = 0; at < text.size(); at = PositionAfter(text, at)) {
    if (characters.find(text[at]) != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

// The texts of "first..last" and "first..last..step"; the step may be empty.
struct RangeText {
  std::string_view first, last, step;
};

std::optional<RangeText> SplitRange(std::string_view text) {
  RangeText range;
  const size_t one = text.find("..");
  if (one == std::string_view::npos) return std::nullopt;
  range.first = text.substr(0, one);
  range.last = text.substr(one + 2);
  const size_t two = range.last.find("..");
  if (two != std::string_view::npos) {
    range.step = range.last.substr(two + 2);
    range.last = range.last.substr(0, two);
    if (range.step.starts_with('-')) range.step.remove_prefix(1);  // the ends give the direction
    if (range.step.empty()) return std::nullopt;
  }
  return range;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool IsInteger(std::string_view text) {
  return IsDigits(text.starts_with('-') ? text.substr(1) : text);
}

// Precondition: IsInteger. Returns nullopt if there are more digits than any sensible number has.
std::optional<int64_t> IntegerOf(std::string_view text) {
  constexpr size_t kMostCharacters = 18;  // so that no difference overflows
  if (text.size() > kMostCharacters) return std::nullopt;
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the numbers from `first` to `last`, upwards or downwards.
Result<std::vector<int64_t>> NumbersBetween(int64_t first, int64_t last, int64_t step) {
  const uint64_t distance = static_cast<uint64_t>(std::abs(last - first));
  const uint64_t numbers = distance / static_cast<uint64_t>(step) + 1;
  if (!IsAllowed(numbers, 0)) return TooManyPaths();
  std::vector<int64_t> all(numbers);
  const int64_t by = first <= last ? step : -step;
  for (size_t i = 0; i < numbers; ++i) all[i] = first + static_cast<int64_t>(i) * by;
  return all;
}

// A leading zero in one of the ends pads all numbers to the width of the longer end.
Result<Texts> NumberRange(const RangeText& range, int64_t step) {
  const std::optional<int64_t> first = IntegerOf(range.first), last = IntegerOf(range.last);
  if (!first || !last) return BadPattern("has a range of numbers with more than 18 digits");
  const auto padded = [](std::string_view text) {
    return text != "0" && text != "-0" && (text.starts_with('0') || text.starts_with("-0"));
  };
  const bool pads = padded(range.first) || padded(range.last);
  const auto width = pads ? static_cast<int>(std::max(range.first.size(), range.last.size())) : 0;
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, NumbersBetween(*first, *last, step));
  Texts texts;
  texts.reserve(numbers.size());
  for (const int64_t number : numbers) {
    std::array<char, 24> digits{};
    const int size = std::snprintf(digits.data(), digits.size(), "%0*lld", width,
                                   static_cast<long long>(number));
    texts.emplace_back(digits.data(), static_cast<size_t>(size));
  }
  return texts;
}

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool IsLetter(std::string_view text) {
  return text.size() == 1 && kLetters.find(text[0]) != std::string_view::npos;
}

Result<Texts> LetterRange(const RangeText& range, int64_t step) {
  const auto place = [](std::string_view letter) {
    return static_cast<int64_t>(kLetters.find(letter[0]));
  };
  ASSIGN_OR_RETURN(const std::vector<int64_t> places,
                   NumbersBetween(place(range.first), place(range.last), step));
  Texts texts;
  for (const int64_t at : places) texts.emplace_back(1, kLetters[static_cast<size_t>(at)]);
  return texts;
}

// Returns the texts of a range; nullopt if it is not one.
Result<std::optional<Texts>> RangeOfTexts(std::string_view text) {
  const std::optional<RangeText> range = SplitRange(text);
  if (!range || (!range->step.empty() && !IsDigits(range->step))) return std::optional<Texts>();
  const bool numbers = IsInteger(range->first) && IsInteger(range->last);
  if (!numbers && !(IsLetter(range->first) && IsLetter(range->last))) {
    return std::optional<Texts>();
  }
  const std::optional<int64_t> given = range->step.empty() ? 1 : IntegerOf(range->step);
  if (!given) return BadPattern("has a step of more than 18 digits");
  const int64_t step = std::max<int64_t>(*given, 1);
  ASSIGN_OR_RETURN(Texts texts, numbers ? NumberRange(*range, step) : LetterRange(*range, step));
  return std::optional<Texts>(std::move(texts));
}

// Returns the texts that one pair of braces expands to; `inside` is the text between them. Braces
// around a single text are part of the path.
Result<Texts> ExpandOne(std::string_view inside) {
  ASSIGN_OR_RETURN(std::optional<Texts> range, RangeOfTexts(inside));
  if (range) return *std::move(range);
  Texts texts;
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = FindAnyOf(",", inside);
    texts.emplace_back(inside.substr(0, comma));
    if (comma != std::string_view::npos) inside.remove_prefix(comma + 1);
  }
  if (texts.size() == 1) texts.front().insert(0, "{").append("}");
  return texts;
}

// Appends each of the texts to each path; the text changes fastest.
Status AppendEach(const Texts& texts, Texts& paths) {
  const size_t bytes = BytesOfAll(paths) * texts.size() + BytesOfAll(texts) * paths.size();
  if (!IsAllowed(paths.size() * texts.size(), bytes)) return TooManyPaths();
  Texts all;
  all.reserve(paths.size() * texts.size());
  for (const std::string& path : paths) {
    for (const std::string& text : texts) all.push_back(path + text);
  }
  paths = std::move(all);
  return {};
}

bool HasWildcards(std::string_view text) { return FindAnyOf("*?", text) != std::string_view::npos; }
bool HasStars(std::string_view text) { return FindAnyOf("*", text) != std::string_view::npos; }

// Returns the text without its backslashes.
std::string Unquoted(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    const size_t quote = std::min(text.find('\\', at), text.size());
    plain += text.substr(at, quote - at);
    at = std::min(quote + 2, text.size());
    if (quote < text.size()) plain += text[at - 1];  // a backslash at the end is literal
  }
  return plain;
}

// Finds the files of a path with wildcards, folder by folder.
class WildcardSearch {
 public:
  Result<Texts> Run(std::string_view path) {
    found_ = {""};
    while (!path.empty() && !found_.empty()) {
      const size_t slash = path.find('/');
      const std::string_view name = path.substr(0, slash);
      HasWildcards(name) ? Match(name) : Descend(Unquoted(name));
      if (too_many_) return TooManyPaths();
      if (failed_) return *std::move(failed_);  // some of the files would be as bad as none
      if (slash == std::string_view::npos) break;
      for (std::string& folder : found_) folder += '/';
      path.remove_prefix(slash + 1);
    }
    std::ranges::sort(found_);
    return std::move(found_);
  }

 private:
  // Keeps the folders that have an entry of this name.
  void Descend(const std::string& name) {
    Texts kept;
    for (std::string& folder : found_) {
      folder += name;
      std::error_code failed;
      if (folder.empty() ||
          std::filesystem::exists(std::filesystem::symlink_status(folder, failed))) {
        kept.push_back(std::move(folder));
      } else {
        Fail(failed, "cannot look for the file", folder);
      }
    }
    found_ = std::move(kept);
  }

  // Replaces the folders by their entries that match.
  void Match(std::string_view wildcards) {
    const Texts folders = std::exchange(found_, {});
    for (const std::string& folder : folders) {
      const std::string& listed = folder.empty() ? "." : folder;
      std::error_code failed;
      std::filesystem::directory_iterator entry(listed, failed);
      for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
        Add(folder, entry->path().filename().string(), wildcards);
        if (too_many_) return;
      }
      Fail(failed, "cannot list the folder", listed);
    }
  }

  // Keeps the first error. A file instead of a folder, or a dangling link, has no files that could
  // match.
  void Fail(std::error_code failed, const char* what, const std::string& path) {
    if (!failed || failed == std::errc::not_a_directory ||
        failed == std::errc::no_such_file_or_directory || failed_) {
      return;
    }
    failed_ = SystemError(failed.value(), what, path);
  }

  void Add(const std::string& folder, const std::string& name, std::string_view wildcards) {
    if (name.starts_with('.') && !wildcards.starts_with('.')) return;
    if (!MatchesWildcards(name, wildcards)) return;
    bytes_ += folder.size() + name.size();
    too_many_ = !IsAllowed(found_.size() + 1, bytes_);
    found_.push_back(folder + name);
  }

  Texts found_;       // so far: folders, then files
  size_t bytes_ = 0;  // of all that were found
  bool too_many_ = false;
  std::optional<Error> failed_;
};

// Splits "one::other" at the "::".
std::vector<std::string_view> SplitAtColons(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); at = PositionAfter(text, at)) {
    if (at < begin || text.substr(at, 2) != "::") continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 2;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Whether a path names something other than a local file: "https://host/0.tar", "pipe:cat 0.tar".
bool IsUrl(std::string_view path) {
  const size_t colon = path.find(':');
  const std::string_view scheme = path.substr(0, colon);
  if (colon == std::string_view::npos || !IsLetter(scheme.substr(0, 1))) return false;
  const bool is_scheme = std::ranges::all_of(scheme, [](char c) {
    return IsLetter({&c, 1}) || IsDigits({&c, 1}) || c == '+' || c == '-' || c == '.';
  });
  return is_scheme && (scheme == "pipe" || path.substr(colon).starts_with("://"));
}

// Refuses texts that other programs accept as paths, and the file system does not.
Status CheckIsPath(const std::string& path) {
  if (IsObjectUrl(path)) return {};
  if (IsUrl(path)) {
    return Error{
        .code = Code::kUnimplemented,
        .cause = "shards are files of this machine, or remote objects",
        .file = path,
        .advice =
            "Give paths, or URLs that begin with http://, https://, s3:// or gs://; a path is "
            "written without file://"};
  }
  if (path.starts_with('~') && path.find('/') != std::string::npos) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "only shells take ~ for a home folder",
                 .file = path,
                 .advice = "Give the folder's path, or ./~ if that is its name"};
  }
  return {};
}

// Refuses a pattern whose backslashes would be lost, since they are those of a path.
Status CheckHasNoDrive(std::string_view text) {
  if (!IsLetter(text.substr(0, 1)) || text.substr(1, 2) != ":\\") return {};
  return Error{
      .code = Code::kInvalidArgument,
      .cause = "the shard pattern begins with a drive, as paths of Windows do",
      .file = std::string(text),
      .advice = "Give the path that the files have on this machine, with / between folders"};
}

// Puts a relative path, a text without braces, into the folder `root`.
Result<std::string> InRoot(const std::string& text, std::string_view root) {
  TRY(CheckHasNoDrive(text));
  const std::string path = Unquoted(text);
  TRY(CheckIsPath(path));
  if (IsObjectUrl(path)) return text;
  if (root == "." || path.starts_with('/')) return text;
  if (root.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the shard pattern has a relative path, and there is no root for it",
                 .file = path,
                 .advice = "Give absolute paths, or a root"};
  }
  TRY(CheckFolderUrl(root));
  std::string folder = std::string(root) + "/";
  if (!IsObjectUrl(folder) || HasStars(text)) return QuoteShard(folder) + text;
  AppendName(path, folder);
  return QuoteShard(folder);
}

// Appends the paths that a text without braces matches.
Status AddPaths(const std::string& given, std::string_view root, Texts& paths) {
  if (given.empty()) return BadPattern("has an empty path");
  ASSIGN_OR_RETURN(const std::string text, InRoot(given, root));
  const bool is_url = IsObjectUrl(Unquoted(text));
  if (is_url && HasStars(text)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "objects are not listed: `*` finds files of this machine",
                 .file = Unquoted(text),
                 .advice = R"(Write a range, as {000..127}, or give a list; \* is a star)"};
  }
  if (is_url || !HasWildcards(text)) {  // a question mark begins a URL's query
    paths.push_back(Unquoted(text));
    return {};
  }
  ASSIGN_OR_RETURN(Texts found, WildcardSearch().Run(text));
  if (found.empty()) {
    return Error{.code = Code::kNotFound, .cause = "no file matches", .file = text};
  }
  std::ranges::move(found, std::back_inserter(paths));
  return {};
}

}  // namespace

Result<std::vector<std::string>> ExpandBraces(std::string_view pattern) {
  Texts paths = {""};
  while (true) {
    const size_t open = FindAnyOf("{}", pattern);
    TRY(AppendEach({std::string(pattern.substr(0, open))}, paths));
    if (open == std::string_view::npos) return paths;
    if (pattern[open] == '}') return Unbalanced();
    pattern.remove_prefix(open + 1);
    const size_t close = FindAnyOf("{}", pattern);
    if (close == std::string_view::npos) return Unbalanced();
    if (pattern[close] == '{') return Nested();
    ASSIGN_OR_RETURN(const Texts texts, ExpandOne(pattern.substr(0, close)));
    TRY(AppendEach(texts, paths));
    pattern.remove_prefix(close + 1);
  }
}

// Matches greedily, and backtracks to the last star only: an earlier star cannot match better.
bool MatchesWildcards(std::string_view name, std::string_view wildcards) {
  size_t n = 0, w = 0;
  std::optional<size_t> star;  // the last one's position
  size_t star_end = 0;         // end of the star's match
  while (n < name.size()) {
    const bool quoted = w + 1 < wildcards.size() && wildcards[w] == '\\';
    if (w < wildcards.size() && wildcards[w] == '*') {
      star = w++;
      star_end = n;
    } else if (w < wildcards.size() &&
               (wildcards[w] == '?' || wildcards[w + (quoted ? 1 : 0)] == name[n])) {
      w = PositionAfter(wildcards, w);
      ++n;
    } else if (star) {
      w = *star + 1;
      n = ++star_end;
    } else {
      return false;
    }
  }
  while (w < wildcards.size() && wildcards[w] == '*') ++w;
  return w == wildcards.size();
}

Result<std::vector<std::string>> ExpandShards(std::string_view pattern, std::string_view root) {
  if (pattern.empty()) return BadPattern("is empty");
  if (pattern.find('\0') != std::string_view::npos) return BadPattern("contains a NUL");
  if (root.find('\0') != std::string_view::npos) return BadPattern("has a root with a NUL");
  Texts paths;
  size_t bytes = 0;
  for (const std::string_view part : SplitAtColons(pattern)) {
    ASSIGN_OR_RETURN(const Texts texts, ExpandBraces(part));
    for (const std::string& text : texts) {
      const size_t before = paths.size();
      TRY(AddPaths(text, root, paths));
      for (size_t i = before; i < paths.size(); ++i) bytes += paths[i].size();
      if (!IsAllowed(paths.size(), bytes)) return TooManyPaths();
    }
  }
  const size_t left_out = std::erase_if(
      paths, [](const std::string& path) { return path.ends_with(kShardIndexEnding); });
  if (!paths.empty() || left_out == 0) return paths;
  return Error{.code = Code::kNotFound,
               .cause = "there are index files of an earlier version, and no shards",
               .file = std::string(pattern)};
}

std::string QuoteShard(std::string_view path) {
  constexpr std::string_view kSpecial = R"(\{},*?:)";
  std::string quoted;
  for (const char c : path) {
    if (kSpecial.find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace stoker
