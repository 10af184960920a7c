// A bench's report, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "bindings/cli/bench/runner.h"
#include "bindings/cli/text/report_text.h"

namespace stoker {

// A page with units; ends with a line feed.
std::string BenchReportText(const BenchReport& report, const cli::PageWidth& width = {});

// Adds the lines on problems with samples: the source's warning, bad samples and skipped files, if
// there are any.
void AddNotes(const BenchReport& report, ReportText& text);

// One JSON object on one line; docs/cli.md has its members. Text that is not UTF-8 (a file's name
// may be anything) has U+FFFD for invalid bytes.
std::string BenchReportJson(const BenchReport& report);

}  // namespace stoker
