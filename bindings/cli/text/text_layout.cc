#include "bindings/cli/text/text_layout.h"

#include <algorithm>

namespace stoker::cli {

namespace {

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string_view TakeLine(std::string_view& lines) {
  const size_t end = lines.find('\n');
  const std::string_view line = lines.substr(0, end);
  lines = end == std::string_view::npos ? "" : lines.substr(end + 1);
  return line;
}

size_t ColumnsOf(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, Continues));
}

std::string_view FirstColumns(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t column = 0; at < text.size() && column < columns; ++column) {
    do ++at;
    while (at < text.size() && Continues(text[at]));
  }
  return text.substr(0, at);
}

std::string Hung(std::string_view text, size_t indent, size_t columns) {
  const size_t width = columns > indent ? columns - indent : 1;
  const std::string next_line = "\n" + std::string(indent, ' ');
  std::string hung;
  bool first = true;
  do {
    std::string_view line = TakeLine(text);
    do {
      hung += first ? "" : next_line;
      first = false;
      const std::string_view fits = FirstColumns(line, width);
      size_t end = line.size();
      if (fits.size() < line.size()) {
        end = line.substr(0, fits.size() + 1).rfind(' ');
        const size_t text_begins = std::min(line.find_first_not_of(' '), line.size());
        if (end == std::string_view::npos || end <= text_begins) {
          end = std::min(line.find(' ', text_begins + 1), line.size());
        }
      }
      const std::string_view piece = line.substr(0, end);
      hung += piece.substr(0, piece.find_last_not_of(' ') + 1);
      line = line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
    } while (!line.empty());
  } while (!text.empty());
  return hung;
}

std::string BreakLines(std::string_view lines, size_t columns) {
  std::string text;
  while (!lines.empty()) {
    std::string_view line = TakeLine(lines);
    for (size_t fits = FirstColumns(line, columns).size(); fits < line.size();
         fits = FirstColumns(line, columns).size()) {
      const size_t space = line.substr(0, fits + 1).rfind(' ');
      const bool at_space = space != std::string_view::npos && space != 0;
      text += line.substr(0, at_space ? space : fits);
      text += '\n';
      line = line.substr(at_space ? space + 1 : fits);
    }
    text += line;
    text += '\n';
  }
  return text;
}

}  // namespace stoker::cli
