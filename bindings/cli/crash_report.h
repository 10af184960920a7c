// Says on stderr what to report when the command crashes.
#pragma once

#include <string>

namespace stoker::cli {

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT print the signal, the address, `build`
// and what to report; then they end the process as before, with a core dump of the instruction that
// failed where the system writes one. If several threads crash, the first one is reported. An
// exception that nobody catches ends in SIGABRT, after the C++ library has printed its what().
// Signals that have a handler already, such as a sanitizer's, keep it. The calling thread gets an
// alternate stack, unless it has one, so that the overflow of its stack is reported, too; on other
// threads an overflow ends the process without a report. `build`: "stoker 0.1.0, …", at most 200
// bytes.
void ReportCrashes(const std::string& build);

}  // namespace stoker::cli
