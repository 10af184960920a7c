#include "bindings/cli/doctor/doctor.h"
#include "core/result/try.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bindings/cli/command.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/terminal.h"

namespace stoker::cli {

namespace {

constexpr const char* kDoctorFooter =
    R"(Reports how this stoker was built and what it finds on this machine: the cores and memory that it may
use, how it would read files and why, and whether it can use a GPU, or what is missing for that. It
examines GPUs without using their memory. On a terminal the text is coloured, unless NO_COLOR is set:
green is good, yellow is missing.

Examples:
  stoker doctor
  stoker doctor --json | jq .cuda.why_not

Exit codes: 0 done, with a GPU or without; 2 a bad option; 3 the system: no loader could be opened.)";

Result<int> RunDoctorCommand(bool json) {
  const Result<DoctorReport> report = Examine();
  if (!report.ok()) return report.error();
  TRY(Print(json ? DoctorJson(*report) + "\n" : DoctorText(*report, WantsColour(), WidthOfPage())));
  return kExitOk;
}

}  // namespace

void AddDoctor(CLI::App& app, Command& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "Report what stoker finds on this machine and what is missing");
  command->add_flag("--json", *json, "print one JSON object on stdout and nothing else");
  command->footer(kDoctorFooter);
  command->callback([json, &chosen] { chosen = [json] { return RunDoctorCommand(*json); }; });
}

}  // namespace stoker::cli
