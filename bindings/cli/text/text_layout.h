// Breaks text into lines for a screen. Text is UTF-8, and a character takes one column.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace stoker::cli {

// The maximum width of text. The defaults are for output that is not a terminal: a row of a report
// stays one line, so that a script finds it.
struct PageWidth {
  size_t prose = 80;
  size_t rows = std::numeric_limits<size_t>::max();
};

// Removes and returns the first line, without its line feed.
std::string_view TakeLine(std::string_view& lines);

size_t ColumnsOf(std::string_view text);

// Returns the beginning of `text` that takes at most `columns`.
std::string_view FirstColumns(std::string_view text, size_t columns);

// Returns `text` broken into lines that fit into `columns` if the first one begins at column
// `indent`; the others are indented by as much. Breaks at blanks only: a longer word, such as a
// path, stays whole. Lines of `text` stay lines.
std::string Hung(std::string_view text, size_t indent, size_t columns);

// Returns `lines` with those that are wider than `columns` broken, at a blank if there is one and
// otherwise within a word. Each line ends with a line feed.
std::string BreakLines(std::string_view lines, size_t columns);

}  // namespace stoker::cli
