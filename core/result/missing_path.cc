#include "core/result/missing_path.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace stoker {

namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether two texts are the same in lower case.
bool IsSame(std::string_view one, std::string_view other) {
  return std::ranges::equal(
      one, other, [](char a, char b) { return a == b || (IsLetter(a) && (a ^ b) == ('a' ^ 'A')); });
}

// Whether a part of a path is that of a drive: "C:", alone or before a backslash.
bool IsDrive(std::string_view part) {
  const bool is_letter = part.size() >= 2 && IsLetter(part[0]) && part[1] == ':';
  return is_letter && (part.size() == 2 || part[2] == '\\');
}

// Whether a part of a path is the "hdfs:" of a URL, whose slashes may have been joined.
bool IsScheme(std::string_view part) {
  constexpr std::array<std::string_view, 16> kSchemes = {
      "http:", "https:", "s3:",   "s3a:", "s3n:",   "gs:",     "gcs:", "hdfs:",
      "abfs:", "abfss:", "wasb:", "az:",  "wasbs:", "viewfs:", "oss:", "dbfs:"};
  return std::ranges::any_of(kSchemes,
                             [part](std::string_view scheme) { return IsSame(part, scheme); });
}

const char* AdviceOnPart(std::string_view part) {
  if (IsSame(part, "file:")) return "Give the path alone, without file://";
  if (IsScheme(part)) {
    return "Give a path of this machine; data may also be at URLs that begin with http://, "
           "https://, s3:// or gs://";
  }
  if (part == "~") return "Only shells take ~ for a home folder; give the folder's path";
  if (IsDrive(part)) return "Give a path of this machine, without a drive";
  if (part.find('\\') != std::string_view::npos) {
    return "Write / between folders: on this machine a backslash is part of a name";
  }
  return nullptr;
}

bool IsMissing(std::string_view path) {
  struct stat info {};
  return lstat(std::string(path).c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

std::string AdviceOnMissing(std::string_view path) {
  for (size_t begin = 0, end = 0; begin < path.size(); begin = end + 1) {
    end = std::min(path.find('/', begin), path.size());
    const char* const advice = AdviceOnPart(path.substr(begin, end - begin));
    if (advice != nullptr && IsMissing(path.substr(0, end))) return advice;
  }
  return {};
}

}  // namespace stoker
