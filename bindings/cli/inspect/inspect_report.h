// Formats a DatasetReport as text and as JSON.
#pragma once

#include <string>

#include "bindings/cli/inspect/inspect.h"
#include "bindings/cli/text/text_layout.h"

namespace stoker {

// A page of text; each line ends with a line feed. Names with control characters or invalid UTF-8
// are shown with escapes (\n, \xff).
std::string InspectText(const DatasetReport& report, const cli::PageWidth& width = {});

// One JSON object, indented by two spaces, with the report's names; bytes that are not UTF-8 become
// U+FFFD. `broken_files` has objects {file, offset (or null), code, cause, advice}.
std::string InspectJson(const DatasetReport& report);

}  // namespace stoker
