#include "bindings/cli/completion/complete.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string_view>

namespace stoker::cli {

namespace {

// "auto|off|FILE" → {"auto", "off", "FILE"}.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  return value.empty() ? std::vector<std::string>() : CLI::detail::split(value, '|');
}

// Words are in lower case; N, FILE and NAME say what to put there.
bool IsWord(const std::string& value) {
  return std::islower(static_cast<unsigned char>(value[0])) != 0;
}

bool TakesFile(const CLI::Option& option) {
  const std::vector<std::string> values = ValuesOf(option);
  return std::ranges::find(values, "FILE") != values.end() ||
         (option.get_positional() && std::ranges::none_of(values, IsWord));
}

class Offer {
 public:
  explicit Offer(std::string typed) : typed_(std::move(typed)) {}

  Completions Take(bool files) && { return {std::move(lines_), files}; }

  void Commands(const CLI::App& app) {
    Add("help", "Explain a command");
    for (const CLI::App* command : app.get_subcommands({})) {
      Add(command->get_name(), command->get_description());
    }
  }

  void Options(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_positional() || option->get_group().empty()) continue;  // hidden
      for (const std::string& name : option->get_snames()) Add("-" + name, MeaningOf(*option));
      for (const std::string& name : option->get_lnames()) Add("--" + name, MeaningOf(*option));
    }
  }

  // Adds the values after `before`: "--reader=", or nothing.
  void Values(const CLI::Option& option, const std::string& before) {
    for (const std::string& value : ValuesOf(option)) {
      if (IsWord(value)) Add(before + value, "");
    }
  }

 private:
  static std::string MeaningOf(const CLI::Option& option) {
    std::string meaning = option.get_description();
    std::ranges::replace(meaning, '\n', ' ');
    return meaning;
  }

  void Add(const std::string& word, const std::string& meaning) {
    if (word.starts_with(typed_)) lines_ += word + "\t" + meaning + "\n";
  }

  const std::string typed_;
  std::string lines_;
};

// Precondition: there are two words or more, the first of which is the command's name.
Completions CompleteCommand(const CLI::App& command, const std::vector<std::string>& words) {
  const std::string& typed = words.back();
  Offer offer(typed);
  const size_t equals = typed.starts_with("--") ? typed.find('=') : std::string::npos;
  const std::string name =
      equals == std::string::npos ? words[words.size() - 2] : typed.substr(0, equals);
  const CLI::Option* option = name.starts_with('-') ? command.get_option_no_throw(name) : nullptr;
  if (option != nullptr && option->get_items_expected_max() > 0) {
    offer.Values(*option, equals == std::string::npos ? "" : name + "=");
    return std::move(offer).Take(TakesFile(*option));
  }
  if (typed.starts_with('-')) {
    offer.Options(command);
    return std::move(offer).Take(/*files=*/false);
  }
  bool files = false;
  for (const CLI::Option* each : command.get_options()) {
    if (!each->get_positional()) continue;
    offer.Values(*each, "");
    files = files || TakesFile(*each);
  }
  return std::move(offer).Take(files);
}

}  // namespace

Completions Complete(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  // bash takes --option=word apart.
  if (words.back() == "=") words.back().clear();
  std::erase(words, "=");
  if (words.size() == 1 || (words[0] == "help" && words.size() == 2)) {
    Offer offer(words.back());
    offer.Commands(app);
    if (words.size() == 1) offer.Options(app);
    return std::move(offer).Take(/*files=*/false);
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == words[0]) return CompleteCommand(*command, words);
  }
  return {};
}

}  // namespace stoker::cli
