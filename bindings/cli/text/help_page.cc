#include "bindings/cli/text/help_page.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bindings/cli/text/text_layout.h"

namespace stoker::cli {

namespace {

// A paragraph of a footer, on one line, or a line that begins with a blank or is empty.
struct FooterPart {
  std::string text;
  bool is_paragraph = false;
};

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

class HelpPage final : public CLI::Formatter {
 public:
  explicit HelpPage(size_t columns)
      : columns_(columns), indent_(columns < kWide ? kFewest : kUsual) {}

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Row(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Row(command->get_name(), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Hung(app->get_description(), 0, columns_) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    for (const FooterPart& part : PartsOfFooter(app->get_footer())) {
      text += (part.is_paragraph ? Hung(part.text, 0, columns_) : part.text) + "\n";
    }
    return text;
  }

 private:
  static constexpr size_t kWide = 70, kUsual = 32, kFewest = 12, kBelowName = 6;

  // Returns a name and what it means, next to it or below it.
  std::string Row(const std::string& name, const std::string& meaning) const {
    std::string text = "  " + Hung(name, kBelowName, columns_);
    const bool below = text.size() + 2 > indent_;
    text += below ? "\n" + std::string(indent_, ' ') : std::string(indent_ - text.size(), ' ');
    return text + Hung(meaning, indent_, columns_) + "\n";
  }

  const size_t columns_;
  const size_t indent_;
};

}  // namespace

std::shared_ptr<CLI::Formatter> HelpFormatter(size_t columns) {
  return std::make_shared<HelpPage>(columns);
}

}  // namespace stoker::cli
