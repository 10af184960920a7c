#include <fmt/format.h>

#include "bindings/cli/completion/completion.h"

namespace stoker::cli {

namespace {

constexpr const char* kZshBegin = R"(#compdef stoker
# zsh completion for stoker, written by `stoker completion zsh`.
_stoker() {
  local curcontext=$curcontext state state_descr line
  typeset -A opt_args
  _arguments -C @OPTIONS@ \
    '1: :->command' '*:: :->argument'
  case $state in
    command)
      local -a commands
      commands=(
)";
constexpr const char* kZshMiddle = R"(      )
      _describe command commands
      ;;
    argument)
      case $words[1] in
)";
// The file may be read by `source`, or be a function in $fpath.
constexpr const char* kZshEnd = R"(      esac
      ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _stoker "$@"
else
  compdef _stoker stoker
fi
)";

std::string ZshQuoted(const std::string& text) { return "'" + Replaced(text, "'", "'\\''") + "'"; }

// Text within [] or between two colons.
std::string ZshEscaped(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = Replaced(std::move(text), special, std::string("\\") + special);
  }
  return text;
}

// ":FILE:_files", ":auto|off:(auto off)", or ":N: " for a value that cannot be completed.
std::string ZshValue(const OptionFacts& option, const std::string& name) {
  std::string how = option.is_file ? "_files" : " ";
  if (!option.choices.empty()) how = fmt::format("({})", fmt::join(option.choices, " "));
  return fmt::format(":{}:{}", ZshEscaped(name), how);
}

// The specifications of a command's options and arguments, as _arguments takes them.
std::string ZshSpecifications(const CommandFacts& command, const char* between) {
  std::string text;
  for (const OptionFacts& option : command.options) {
    const std::string value = option.value.empty() ? "" : ZshValue(option, option.value);
    for (const std::string& name : option.names) {
      text += between + ZshQuoted(fmt::format("{}{}[{}]{}", option.repeats ? "*" : "", name,
                                              ZshEscaped(option.text), value));
    }
  }
  int place = 0;
  for (const OptionFacts& argument : command.arguments) {
    const std::string where = argument.repeats ? "*" : std::to_string(++place);
    text += between + ZshQuoted(where + ZshValue(argument, argument.names[0]));
  }
  return text;
}

}  // namespace

std::string ZshCompletion(const CommandFacts& program) {
  constexpr const char* kNext = " \\\n    ";
  std::string text = Replaced(kZshBegin, " @OPTIONS@", ZshSpecifications(program, kNext));
  std::string names = "help";
  text += "        'help:Explain a command'\n";
  for (const CommandFacts& command : program.commands) {
    names += " " + command.name;
    text += "        " + ZshQuoted(ZshEscaped(command.name) + ":" + command.text) + "\n";
  }
  text += kZshMiddle;
  text += fmt::format("        help) _arguments '1:command:({})' ;;\n", names);
  for (const CommandFacts& command : program.commands) {
    text += fmt::format("        {})\n          _arguments{}\n          ;;\n", command.name,
                        ZshSpecifications(command, " \\\n            "));
  }
  return text + kZshEnd;
}

}  // namespace stoker::cli
