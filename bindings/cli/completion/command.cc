#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/completion/completion.h"
#include "bindings/cli/outcome.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

constexpr const char* kCompletionFooter =
    R"(Prints a script that completes commands, options and their values. `cmake --install` puts these
scripts where bash, zsh and fish find them.

Examples:
  source <(stoker completion bash)    # in ~/.bashrc
  source <(stoker completion zsh)     # in ~/.zshrc, after compinit
  stoker completion fish > ~/.config/fish/completions/stoker.fish

Exit codes: 0 done; 2 a bad option; 3 the system: standard output cannot be written.)";

Result<int> RunCompletionCommand(const std::string& shell, const CommandFacts& program) {
  TRY(Print(shell == "bash"  ? BashCompletion(program)
            : shell == "zsh" ? ZshCompletion(program)
                             : FishCompletion(program)));
  return kExitOk;
}

}  // namespace

void AddCompletion(CLI::App& app, Command& chosen) {
  auto shell = std::make_shared<std::string>("bash");
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes stoker in a shell");
  AddChoice(*command, "SHELL", *shell, {"bash", "zsh", "fish"}, "the shell");
  command->footer(kCompletionFooter);
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app] { return RunCompletionCommand(*shell, FactsOf(app)); };
  });
}

}  // namespace stoker::cli
