// Parses the arguments of `stoker` and runs the command.
#pragma once

namespace stoker::cli {

// Runs the command that the arguments name, and prints errors in them to stderr; returns the exit
// code. Throws if a thread cannot be started or memory runs out.
int Main(int argc, char** argv);

}  // namespace stoker::cli
