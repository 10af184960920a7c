#include "bindings/cli/command/command_tree.h"

#include <CLI/CLI.hpp>
#include <cctype>

namespace stoker::cli {

namespace {

// "auto|off|FILE" → {"auto", "off", "FILE"}.
std::vector<std::string> PartsOf(const std::string& value) {
  return value.empty() ? std::vector<std::string>() : CLI::detail::split(value, '|');
}

OptionFacts FactsOf(const CLI::Option& option) {
  OptionFacts facts;
  facts.text = Replaced(option.get_description(), "\n", " ");
  facts.group = option.get_group();
  for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  if (option.get_positional()) facts.names = {option.get_name(/*positional=*/true)};
  if (option.get_items_expected_max() == 0) return facts;
  facts.repeats = option.get_items_expected_max() > 1;
  facts.value = option.get_type_name();
  for (const std::string& part : PartsOf(facts.value)) {
    if (part == "FILE") facts.is_file = true;
    // Words are in lower case; N, FILE and NAME say what may take their place.
    if (std::islower(static_cast<unsigned char>(part[0])) != 0) facts.choices.push_back(part);
  }
  if (option.get_positional() && facts.choices.empty()) facts.is_file = true;
  return facts;
}

}  // namespace

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

CommandFacts FactsOf(const CLI::App& app) {
  CommandFacts facts{.name = app.get_name(),
                     .text = app.get_description(),
                     .footer = app.get_footer(),
                     .options = {},
                     .arguments = {},
                     .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? facts.arguments : facts.options).push_back(FactsOf(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    facts.commands.push_back(FactsOf(*command));
  }
  return facts;
}

}  // namespace stoker::cli
