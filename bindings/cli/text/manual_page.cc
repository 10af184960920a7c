#include "bindings/cli/text/manual_page.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <vector>

namespace stoker::cli {

namespace {

// Returns text that roff prints as it is: no line is a request, and "-" is not a hyphen.
std::string Roff(std::string text) {
  text = Replaced(std::move(text), "\\", "\\e");
  text = Replaced(std::move(text), "-", "\\-");
  const bool is_request = text.starts_with('.') || text.starts_with('\'');
  return is_request ? "\\&" + text : text;
}

std::string Bold(const std::string& text) { return "\\fB" + Roff(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Roff(text) + "\\fR"; }

std::string FooterText(const std::string& footer) {
  std::string page;
  bool literal = false;
  for (const FooterPart& part : PartsOfFooter(footer)) {
    const bool indented = part.text.starts_with(' ');
    if (literal && !indented) page += ".EE\n";
    if (!literal && indented) page += ".EX\n";
    literal = indented;
    page += part.text.empty() ? ".PP\n" : Roff(part.text) + "\n";
  }
  return literal ? page + ".EE\n" : page;
}

std::string OptionText(const OptionFacts& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + (name.starts_with('-') ? Bold(name) : Italic(name));
  }
  const bool named = option.names[0].starts_with('-');
  if (named && !option.value.empty()) names += " " + Italic(option.value);
  return ".TP\n" + names + "\n" + Roff(option.text) + "\n";
}

// The options by their groups, in the order of the first option of each.
std::string OptionsText(const CommandFacts& command) {
  std::string text;
  for (const OptionFacts& argument : command.arguments) text += OptionText(argument);
  std::set<std::string> written;
  for (const OptionFacts& first : command.options) {
    if (!written.insert(first.group).second) continue;
    if (first.group != "Options") text += ".PP\n" + Roff(first.group) + ":\n";
    for (const OptionFacts& option : command.options) {
      if (option.group == first.group) text += OptionText(option);
    }
  }
  return text;
}

std::string CommandText(const CommandFacts& command) {
  std::string text = fmt::format(".SS {}\n", Roff("stoker " + command.name));
  text += Roff(command.text) + ".\n.PP\n" + Bold("stoker " + command.name);
  for (const OptionFacts& argument : command.arguments) text += " " + Italic(argument.names[0]);
  text += " [" + Italic("OPTION") + "]...\n" + OptionsText(command) + ".PP\n";
  return text + FooterText(command.footer);
}

}  // namespace

std::vector<FooterPart> PartsOfFooter(const std::string& footer) {
  std::vector<FooterPart> parts;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const bool is_paragraph = !line.empty() && !line.starts_with(' ');
    if (is_paragraph && !parts.empty() && parts.back().is_paragraph) {
      parts.back().text += " " + line;
    } else {
      parts.push_back({line, is_paragraph});
    }
  }
  return parts;
}

std::string ManualPage(const CommandFacts& program, const std::string& version) {
  std::string text = ".\\\" Written by `stoker --manual-page`, from the options of the command.\n";
  text += fmt::format(".TH STOKER 1 \"\" \"stoker {}\" \"User Commands\"\n", version);
  text += ".SH NAME\nstoker \\- stream images as augmented batches, and measure\n";
  text += ".SH SYNOPSIS\n" + Bold("stoker") + " " + Italic("COMMAND") + " [" + Italic("OPTION") +
          "]...\n.br\n" + Bold("stoker help") + " [" + Italic("COMMAND") + "]\n";
  text += ".SH DESCRIPTION\n" + Roff(program.text) + "\n.PP\n" + FooterText(program.footer);
  text += ".SH OPTIONS\n" + OptionsText(program);
  text += ".SH COMMANDS\n";
  for (const CommandFacts& command : program.commands) text += CommandText(command);
  return text;
}

}  // namespace stoker::cli
