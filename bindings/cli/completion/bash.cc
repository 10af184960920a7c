#include <fmt/format.h>

#include "bindings/cli/completion/completion.h"

namespace stoker::cli {

namespace {

// bash offers files wherever the script offers no words (`complete -o default`), except for values
// that are not files.
constexpr const char* kBashBegin =
    R"(# bash completion for stoker, written by `stoker completion bash`.
_stoker() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  # bash takes --option=word apart.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local words='' no_files=''
  if ((COMP_CWORD == 1)); then
    words='@COMMANDS@'
    no_files=1
  else
    case ${COMP_WORDS[1]} in
)";
constexpr const char* kBashEnd = R"(    esac
  fi
  COMPREPLY=()
  if [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  fi
  if [[ -n $no_files ]]; then
    compopt +o default +o bashdefault 2>/dev/null # fails where the function is called by hand
  fi
}
complete -o default -o bashdefault -F _stoker stoker
)";

std::string BashWords(const std::vector<OptionFacts>& options) {
  std::string words;
  for (const OptionFacts& option : options) {
    for (const std::string& name : option.names) words += (words.empty() ? "" : " ") + name;
  }
  return words;
}

std::string BashCommands(const std::vector<CommandFacts>& commands) {
  std::string names = "help";
  for (const CommandFacts& command : commands) names += " " + command.name;
  return names;
}

// The case of one subcommand: the values of its options, else its options.
std::string BashCase(const CommandFacts& command) {
  std::string text = fmt::format("      {})\n        case $before in\n", command.name);
  for (const OptionFacts& option : command.options) {
    if (option.value.empty()) continue;
    text += fmt::format("          {})", fmt::join(option.names, " | "));
    if (!option.choices.empty()) text += fmt::format(" words='{}'", fmt::join(option.choices, " "));
    if (!option.is_file) text += " no_files=1";
    text += " ;;\n";
  }
  text += "          *)\n";
  for (const OptionFacts& argument : command.arguments) {
    if (argument.choices.empty()) continue;
    text += fmt::format("            words='{}' no_files=1\n", fmt::join(argument.choices, " "));
  }
  return text + fmt::format(
                    "            if [[ $word == -* ]]; then words='{}' no_files=1; fi ;;\n"
                    "        esac\n        ;;\n",
                    BashWords(command.options));
}

}  // namespace

std::string BashCompletion(const CommandFacts& program) {
  const std::string names = BashCommands(program.commands);
  std::string text = Replaced(kBashBegin, "@COMMANDS@", names + " " + BashWords(program.options));
  text += fmt::format(
      "      help)\n        if ((COMP_CWORD == 2)); then words='{}'; fi\n        no_files=1\n"
      "        ;;\n",
      names);
  for (const CommandFacts& command : program.commands) text += BashCase(command);
  return text + kBashEnd;
}

}  // namespace stoker::cli
