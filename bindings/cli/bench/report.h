// What a bench measured, as text for people and as JSON for programs.
#pragma once

#include <string>

#include "bindings/cli/bench/runner.h"

namespace stoker {

// Lines of at most 100 columns where the paths and reasons in them allow, units everywhere; ends
// with a line feed.
std::string BenchReportText(const BenchReport& report);

// One JSON object on one line; see docs/cli.md for its members. Text that is not UTF-8 (a file's
// name may be anything) has U+FFFD in place of what is not.
std::string BenchReportJson(const BenchReport& report);

}  // namespace stoker
