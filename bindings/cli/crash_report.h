// Says on stderr what to report when the command crashes.
#pragma once

#include <string>

namespace stoker::cli {

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT print the signal, the address, `build`
// and what to report; then they end the process as before, with a core dump where the system writes
// one. An exception that nobody catches ends in SIGABRT, after the C++ library has printed its
// what(). Signals that have a handler already, such as a sanitizer's, keep it. `build`: "stoker
// 0.1.0, …", at most 200 bytes.
void ReportCrashes(const std::string& build);

}  // namespace stoker::cli
