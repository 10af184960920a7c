#include "io/remote/ini_file.h"

#include <algorithm>

namespace stoker {

namespace {

std::string_view WithoutSpaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

}  // namespace

std::map<std::string, std::string> IniSection(std::string_view text, std::string_view section) {
  std::map<std::string, std::string> values;
  bool inside = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) {
      const size_t close = line.find(']');
      inside =
          close != std::string_view::npos && WithoutSpaces(line.substr(1, close - 1)) == section;
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos || line.starts_with('#') ||
        line.starts_with(';') || line.starts_with(' ') || line.starts_with('\t')) {
      continue;
    }
    values[std::string(WithoutSpaces(line.substr(0, equals)))] =
        WithoutSpaces(line.substr(equals + 1));
  }
  return values;
}

}  // namespace stoker
