#include <fmt/format.h>

#include "bindings/cli/completion/completion.h"

namespace stoker::cli {

namespace {

std::string FishQuoted(std::string text) {
  text = Replaced(std::move(text), "\\", "\\\\");
  return "'" + Replaced(std::move(text), "'", "\\'") + "'";
}

std::string FishOption(const OptionFacts& option, const std::string& condition) {
  std::string text = "complete -c stoker -n " + FishQuoted(condition);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty()) text += option.is_file ? " -rF" : " -x";
  if (!option.choices.empty()) {
    text += " -a " + FishQuoted(fmt::format("{}", fmt::join(option.choices, " ")));
  }
  return text + " -d " + FishQuoted(option.text) + "\n";
}

}  // namespace

std::string FishCompletion(const CommandFacts& program) {
  constexpr const char* kFirst = "__fish_is_first_token";
  std::string text = "# fish completion for stoker, written by `stoker completion fish`.\n";
  text += fmt::format("complete -c stoker -n {} -f\n", kFirst);
  text += fmt::format("complete -c stoker -n {} -a help -d 'Explain a command'\n", kFirst);
  for (const OptionFacts& option : program.options) text += FishOption(option, kFirst);
  std::string names;
  for (const CommandFacts& command : program.commands) {
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    text += fmt::format("complete -c stoker -n {} -a {} -d {}\n", kFirst, command.name,
                        FishQuoted(command.text));
    names += (names.empty() ? "" : " ") + command.name;
    for (const OptionFacts& option : command.options) text += FishOption(option, condition);
    for (const OptionFacts& argument : command.arguments) {
      if (argument.choices.empty()) continue;
      text += fmt::format("complete -c stoker -n {} -f -a {}\n", FishQuoted(condition),
                          FishQuoted(fmt::format("{}", fmt::join(argument.choices, " "))));
    }
  }
  return text + fmt::format("complete -c stoker -n '__fish_seen_subcommand_from help' -f -a {}\n",
                            FishQuoted(names));
}

}  // namespace stoker::cli
