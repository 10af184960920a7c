// The command's subcommands and options as plain values, for what is generated from them: shell
// completion and the manual page.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

struct OptionFacts {
  std::vector<std::string> names;    // "-h", "--help"; for a positional argument one, "DIR"
  std::string value;                 // what --help calls the value: "FILE"; empty: there is none
  std::vector<std::string> choices;  // the words that the value may be, if any
  bool is_file = false;              // the value may be the name of a file
  bool repeats = false;              // it may be given more than once
  std::string group;                 // the heading in --help
  std::string text;                  // on one line
};

struct CommandFacts {
  std::string name;
  std::string text;
  std::string footer;  // the lines that follow the options in --help
  std::vector<OptionFacts> options;
  std::vector<OptionFacts> arguments;  // positional
  std::vector<CommandFacts> commands;
};

// Leaves out what --help leaves out.
CommandFacts FactsOf(const CLI::App& app);

// Returns `text` with each `from` replaced by `to`.
std::string Replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace stoker::cli
