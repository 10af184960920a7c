#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
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

// The scripts ask the command itself (complete.h), which exits with 1 where files may follow, too.
constexpr const char* kBash = R"(# bash completion for stoker, written by `stoker completion bash`.
_stoker() {
  local offered word
  if offered=$("${COMP_WORDS[0]/#\~/$HOME}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); then
    compopt +o default +o bashdefault 2>/dev/null # fails where the function is called by hand
  fi
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [[ -n $word ]]; then COMPREPLY+=("$word"); fi
  done <<<"$offered"
}
complete -o default -o bashdefault -F _stoker stoker
)";
// The file may be read by `source`, or be a function in $fpath.
constexpr const char* kZsh = R"(#compdef stoker
# zsh completion for stoker, written by `stoker completion zsh`.
_stoker() {
  local offered
  local -a lines names
  offered=$(${~words[1]} __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null) || _files
  if [[ -n $offered ]]; then
    lines=("${(@f)offered}")
    names=("${(@)lines%%$'\t'*}")
    lines=("${(@)lines//$'\t'/ -- }")
    compadd -l -d lines -a names
  fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _stoker "$@"
else
  compdef _stoker stoker
fi
)";
constexpr const char* kFish = R"(# fish completion for stoker, written by `stoker completion fish`.
function __stoker_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..] 2>/dev/null
end
complete -c stoker -f -a '(__stoker_complete)'
complete -c stoker -n 'not __stoker_complete >/dev/null' -F
)";

Result<int> RunCompletionCommand(const std::string& shell) {
  TRY(Print(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish));
  return kExitOk;
}

}  // namespace

void AddCompletion(CLI::App& app, Command& chosen) {
  auto shell = std::make_shared<std::string>("bash");
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes stoker in a shell");
  AddChoice(*command, "SHELL", *shell, {"bash", "zsh", "fish"}, "the shell");
  command->footer(kCompletionFooter);
  command->callback(
      [shell, &chosen] { chosen = [shell] { return RunCompletionCommand(*shell); }; });
}

}  // namespace stoker::cli
