// Formats `stoker help` and `stoker COMMAND --help` for the width of the page.
#pragma once

#include <cstddef>
#include <memory>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class Formatter;
}

namespace stoker::cli {

// Descriptions and footers are paragraphs; lines of a footer that begin with a blank stay lines.
std::shared_ptr<CLI::Formatter> HelpFormatter(size_t columns);

}  // namespace stoker::cli
