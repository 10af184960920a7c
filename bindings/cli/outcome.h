// Ends a command: its messages and exit codes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/result/result.h"

namespace stoker::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitData = 1;    // the requested data is missing or bad
inline constexpr int kExitUsage = 2;   // the options are wrong
inline constexpr int kExitSystem = 3;  // permission, disk, memory, I/O; an output cannot be written

// Returns the exit code for commands that read. An error with a file concerns the file (kExitData),
// even if the file exceeds a limit, unless the system refused it; without a file, InvalidArgument
// and Unimplemented concern options.
int ExitCodeOf(const Error& error);

// Does the same for commands that also write `outputs`: failing to write one is kExitSystem,
// for any reason.
int ExitCodeOf(const Error& error, std::initializer_list<std::string_view> outputs);

// Returns the flag of an option, "--max-pixels" of "max_pixels": the OptionNaming of the command.
std::string FlagOf(std::string_view option);

// Returns "stoker: error: photos/a.jpg at byte 12: truncated JPEG. Remove the file." and a line
// feed: always one line, because control characters in a file's name are written as \xNN.
std::string ErrorLine(const Error& error);

// Returns {"error": {…}} on one line; docs/cli.md has its members.
std::string ErrorJson(const Error& error, int exit_code);

// Prints the error, as a line on stderr and with `json` as an object on stdout, and returns
// `exit_code`.
int Fail(const Error& error, int exit_code, bool json);

// Prints "stoker: warning: …" on stderr, on one line.
void Warn(const std::string& text);

// Writes all of `text` to stdout. Fails if stdout cannot take it (a full disk).
Status Print(std::string_view text);

}  // namespace stoker::cli
