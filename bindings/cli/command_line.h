// Parses the arguments of `stoker` and runs the command that they name.
#pragma once

namespace stoker::cli {

// Runs the command that the arguments name, and says on stderr what is wrong with them; returns the
// exit code. Throws what starting a thread and allocating memory throw.
int Main(int argc, char** argv);

}  // namespace stoker::cli
