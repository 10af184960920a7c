// The subcommands of `stoker`, one file each.
#pragma once

#include <functional>

#include "core/result/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

// Runs the command; returns an exit code, or the error.
using Command = std::function<Result<int>()>;

// Each function declares its subcommand on `app`; parsing sets `chosen` if the command line names
// it. `chosen` must outlive `app`.
void AddShow(CLI::App& app, Command& chosen);
void AddBench(CLI::App& app, Command& chosen);
void AddSynth(CLI::App& app, Command& chosen);
void AddInspect(CLI::App& app, Command& chosen);
void AddVerify(CLI::App& app, Command& chosen);
void AddExplain(CLI::App& app, Command& chosen);
void AddIndex(CLI::App& app, Command& chosen);
void AddPack(CLI::App& app, Command& chosen);
void AddUnpack(CLI::App& app, Command& chosen);
void AddDoctor(CLI::App& app, Command& chosen);
void AddCompletion(CLI::App& app, Command& chosen);

}  // namespace stoker::cli
