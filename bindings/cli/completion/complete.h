// Completes the words of a command line, for the scripts of `stoker completion`.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

struct Completions {
  std::string lines;   // one for each word: the word, a tab and what it means
  bool files = false;  // the word may also be the name of a file
};

// Completes the last of the words after "stoker".
Completions Complete(const CLI::App& app, std::vector<std::string> words);

}  // namespace stoker::cli
