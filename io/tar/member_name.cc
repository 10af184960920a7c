#include "io/tar/tar_members.h"

namespace stoker {

namespace {

// Returns whether a name is "__name__", alone or as the archive's top folder.
bool IsAboutTheArchive(std::string_view name) {
  const std::string_view top = name.substr(0, name.find('/'));
  return top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
}

}  // namespace

std::optional<MemberName> SplitMemberName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t last = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', last);
  if (dot == std::string_view::npos || dot == last || IsAboutTheArchive(name)) return std::nullopt;
  return MemberName{.key = name.substr(0, dot), .extension = name.substr(dot + 1)};
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool HasExtension(std::string_view name, std::string_view extension) {
  const std::optional<MemberName> split = SplitMemberName(name);
  return split && split->extension.size() == extension.size() &&
         LowerCase(split->extension) == extension;
}

}  // namespace stoker
