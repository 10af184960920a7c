#include "bindings/cli/text/manual_page.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "bindings/cli/text/help_page.h"

namespace stoker::cli {

namespace {

constexpr size_t kColumns = 72;  // man indents texts by seven of 80

// Returns lines that roff prints as they are: none is a request, and "-" is not a hyphen.
std::string AsItIs(const std::string& text) {
  std::istringstream lines(text);
  std::string roff = ".EX\n";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('.') || line.starts_with('\'')) roff += "\\&";
    for (const char c : line) roff += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    roff += '\n';
  }
  return roff + ".EE\n";
}

std::string HelpOf(CLI::App& app, const std::string& before = "") {
  app.formatter(HelpFormatter(kColumns));
  return AsItIs(app.help(before));
}

}  // namespace

std::string ManualPage(CLI::App& app, const std::string& version) {
  std::string text = fmt::format(
      ".\\\" Written by `stoker --manual-page`, from the options of the command.\n"
      ".TH STOKER 1 \"\" \"stoker {}\" \"User Commands\"\n"
      ".SH NAME\nstoker \\- stream images as augmented batches, and measure\n"
      ".SH SYNOPSIS\n\\fBstoker\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.br\n"
      "\\fBstoker help\\fR [\\fICOMMAND\\fR]\n.SH DESCRIPTION\n{}.SH COMMANDS\n",
      version, HelpOf(app));
  for (CLI::App* command : app.get_subcommands({})) {
    text += fmt::format(".SS stoker {}\n{}", command->get_name(), HelpOf(*command, app.get_name()));
  }
  return text;
}

}  // namespace stoker::cli
