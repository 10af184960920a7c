// How a command ends: what it prints, and the code it exits with.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/result.h"

namespace stoker::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitData = 1;    // what was asked to be read is missing or bad
inline constexpr int kExitUsage = 2;   // the options make no sense
inline constexpr int kExitSystem = 3;  // permission, disk, memory, I/O; an output is not written

// For commands that read. A named file is to blame itself, also where it asks for more than a limit
// allows, unless the system refused it; without a file, InvalidArgument and Unimplemented speak of
// options.
int ExitCodeOf(const Error& error);

// For commands that write `outputs`, too: one that cannot be written is the system's refusal,
// whatever the reason.
int ExitCodeOf(const Error& error, std::initializer_list<std::string_view> outputs);

// The library names its options as C++ does; the user of the command knows them by other names.
std::string AsOptions(std::string text);

// The same for an error of the library. Not for errors that have the user's own words in them.
Error WithOptionNames(Error error);

// "stoker: error: photos/a.jpg at byte 12: truncated JPEG. Remove the file." and a line feed: one
// line whatever a file's name is, for control characters in it are written as \xNN.
std::string ErrorLine(const Error& error);

// {"error": {…}} on one line; docs/cli.md has its members.
std::string ErrorJson(const Error& error, int exit_code);

// Tells of the error, the line on stderr and where `json` the object on stdout, and returns
// `exit_code`.
int Fail(const Error& error, int exit_code, bool json);

// Tells of something that ends nothing: "stoker: warning: …" on stderr, on one line.
void Warn(const std::string& text);

// Writes all of `text` to stdout. Fails when stdout takes no more (a full disk).
Status Print(std::string_view text);

}  // namespace stoker::cli
