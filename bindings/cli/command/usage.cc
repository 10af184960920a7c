#include "bindings/cli/command/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

namespace stoker::cli {

namespace {

// Returns the optimal string alignment distance of `a` and `b`: letters to insert, remove, change
// or swap with the next one (Wagner and Fischer, JACM 21(1), 1974, with swaps).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// Returns `given` without parts that are not typing errors: leading dashes, capitals, and a value.
std::string StripDecoration(std::string_view given) {
  given = given.substr(0, given.find('='));
  given.remove_prefix(std::min(given.find_first_not_of('-'), given.size()));
  return CLI::detail::to_lower(std::string(given));
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names = {"help"};
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool IsThere(const std::string& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

// As the files have that a shell found for a pattern: *.tar.
bool ShareExtension(const std::vector<std::string>& paths) {
  const auto extension = [](const std::string& path) {
    return std::filesystem::path(path).extension();
  };
  const std::filesystem::path first = extension(paths[0]);
  return !first.empty() && std::ranges::all_of(paths, [&](const std::string& path) {
    return extension(path) == first;
  });
}

std::string Shortened(const std::vector<std::string>& paths) {
  constexpr size_t kShown = 3;
  const std::string text = fmt::format(
      "{}", fmt::join(paths.begin(),
                      paths.begin() + static_cast<ptrdiff_t>(std::min(paths.size(), kShown)), " "));
  return paths.size() > kShown ? text + " …" : text;
}

// Precondition: `left` is not empty.
Error Unexpected(const CLI::App& app, const std::string& of, const std::vector<std::string>& left) {
  std::string advice = fmt::format("`{} --help` lists the options", of);
  const auto option =
      std::ranges::find_if(left, [](const std::string& text) { return text.starts_with('-'); });
  // If no argument begins with a dash, the first one is the option's name, if any is, and its value
  // follows.
  const std::string meant = Nearest(option == left.end() ? left[0] : *option, OptionsOf(app));
  if (!meant.empty()) advice = fmt::format("Did you mean {}? {}", meant, advice);
  if (option == left.end() && std::ranges::all_of(left, IsThere)) {
    return {.code = Code::kInvalidArgument,
            .cause = fmt::format("`{}` takes no further path: {}", of, Shortened(left)),
            .advice = ShareExtension(left) ? "Put a pattern into quotes, so that stoker gets it "
                                             "and not the shell: 'shards/*.tar'"
                                           : advice};
  }
  return {.code = Code::kInvalidArgument,
          .cause = fmt::format("`{}` has no such argument{}: {}", of, left.size() > 1 ? "s" : "",
                               fmt::join(left, " ")),
          .advice = std::move(advice)};
}

}  // namespace

std::string Nearest(std::string_view given, std::span<const std::string> known) {
  constexpr size_t kFewest = 3;  // significant letters
  const std::string typed = StripDecoration(given);
  std::string nearest;
  size_t least = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::string bare = StripDecoration(name);
    const bool begins = typed.size() >= kFewest && bare.starts_with(typed);
    const size_t distance = begins ? 1 : Distance(typed, bare);
    if (typed.empty() || distance >= least || distance >= bare.size()) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

Status CheckCommand(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> commands = CommandsOf(app);
  if (std::ranges::find(commands, name) != commands.end()) return {};
  const std::string meant = Nearest(name, commands);
  return Error{.code = Code::kInvalidArgument,
               .cause = fmt::format("there is no command `{}`", name),
               .advice = (meant.empty() ? "" : fmt::format("Did you mean `{}`? ", meant)) +
                         "`stoker help` lists the commands"};
}

Error UsageError(const CLI::App& app, const std::string& what) {
  if (const std::vector<std::string> left = app.remaining(); !left.empty()) {
    return Unexpected(app, app.get_name(), left);
  }
  std::string of = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) {
    of = fmt::format("{} {}", app.get_name(), command->get_name());
    const std::vector<std::string> left = command->remaining();
    if (!left.empty()) return Unexpected(*command, of, left);
  }
  return {.code = Code::kInvalidArgument,
          .cause = what,
          .advice = fmt::format("`{} --help` lists the options", of)};
}

}  // namespace stoker::cli
