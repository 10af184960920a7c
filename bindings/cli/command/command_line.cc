#include "bindings/cli/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/command/usage.h"
#include "bindings/cli/completion/complete.h"
#include "bindings/cli/doctor/doctor.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/help_page.h"
#include "bindings/cli/text/manual_page.h"
#include "bindings/cli/text/terminal.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

constexpr const char* kFooter = R"(Try it without data of your own:
  stoker synth photos --count 1000
  stoker inspect photos
  stoker verify photos
  stoker index photos
  stoker pack photos packed
  stoker explain photos
  stoker show photos --out sheet.png
  stoker bench photos
  stoker doctor

`stoker help COMMAND` explains a command. Results go to stdout, progress and errors to stderr.
Exit codes: 0 done; 1 the data is missing or bad; 2 a bad option; 3 the system (permission, memory,
disk, I/O, an output that cannot be written); 130 interrupted.)";

// Turns `help bench` into `bench --help`.
std::vector<std::string> ArgumentsOf(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0] != "help") return arguments;
  std::rotate(arguments.begin(), arguments.begin() + 1, arguments.end());
  arguments.back() = "--help";
  return arguments;
}

Error MissingCommand() {
  return {.code = Code::kInvalidArgument,
          .cause =
              "a command is missing: synth, inspect, verify, index, pack, unpack, explain, show, "
              "bench, doctor or completion",
          .advice = "`stoker help` explains them"};
}

Result<int> PrintManualPage(CLI::App& app) {
  TRY(Print(ManualPage(app, STOKER_VERSION)));
  return kExitOk;
}

// Exits with 1 where files may follow, too.
int PrintCompletions(const CLI::App& app, std::vector<std::string> words) {
  const Completions completions = Complete(app, std::move(words));
  (void)Print(completions.lines);
  return completions.files ? 1 : 0;
}

}  // namespace

int Main(int argc, char** argv) {
  // Makes write() return an error for a file that exceeds RLIMIT_FSIZE, as for a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const bool json = std::any_of(argv, argv + argc, [](const char* argument) {
    return argument == std::string_view("--json");
  });
  Command chosen;
  CLI::App app("stoker reads images from disk, decodes and augments them, and makes batches.",
               "stoker");
  app.formatter(HelpFormatter(WidthOfPage().prose));
  app.set_version_flag("--version",
                       "stoker " STOKER_VERSION "\nlibjpeg-turbo " + LibjpegTurboVersion(),
                       "Print the versions of stoker and of libjpeg-turbo, and exit");
  app.require_subcommand(0, 1);  // checked below, with a better message
  app.footer(kFooter);
  AddSynth(app, chosen);
  AddInspect(app, chosen);
  AddVerify(app, chosen);
  AddIndex(app, chosen);
  AddPack(app, chosen);
  AddUnpack(app, chosen);
  AddExplain(app, chosen);
  AddShow(app, chosen);
  AddBench(app, chosen);
  AddDoctor(app, chosen);
  AddCompletion(app, chosen);
  bool manual_page = false;  // hidden: the build writes stoker.1 with it
  app.add_flag("--manual-page", manual_page)->group("");
  std::vector<std::string> arguments = ArgumentsOf(argc, argv);
  if (!arguments.empty() && arguments[0] == "__complete") {
    return PrintCompletions(app, {arguments.begin() + 1, arguments.end()});
  }
  if (!arguments.empty() && !arguments[0].starts_with('-')) {
    if (Status s = CheckCommand(app, arguments[0]); !s.ok()) {
      return Fail(s.error(), kExitUsage, json);
    }
  }
  std::ranges::reverse(arguments);  // in the order that CLI11 expects
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return Fail(UsageError(app, error.what()), kExitUsage, json);
  }
  if (manual_page) chosen = [&app] { return PrintManualPage(app); };
  if (!chosen) return Fail(MissingCommand(), kExitUsage, json);
  const Result<int> exit_code = chosen();
  if (exit_code.ok()) return *exit_code;
  return Fail(exit_code.error(), ExitCodeOf(exit_code.error()), json);
}

}  // namespace stoker::cli
