#include "bindings/cli/bench/report_words.h"

#include <fmt/format.h>

#include <array>
#include <sstream>
#include <utility>

namespace stoker {

std::string Duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

namespace {

std::string InUnits(double bytes, double step, const std::array<const char*, 5>& units) {
  size_t unit = 0;
  for (; bytes >= step && unit + 1 < units.size(); ++unit) bytes /= step;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace

std::string Bytes(double bytes) { return InUnits(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"}); }

std::string Bytes(uint64_t bytes) { return Bytes(static_cast<double>(bytes)); }

std::string FileBytes(double bytes) { return InUnits(bytes, 1000, {"B", "kB", "MB", "GB", "TB"}); }

std::string FileBytes(uint64_t bytes) { return FileBytes(static_cast<double>(bytes)); }

std::string Count(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

void ReportText::Line(const char* name, const std::string& value) {
  Add(fmt::format("  {:<15}{}", name, value));
}

// fmt counts columns, so "µ" is one of them.
void ReportText::Figure(const char* name, const std::string& value, const std::string& meaning) {
  Add(fmt::format("  {:<15}{:>24}   {}", name, value, meaning));
}

void ReportText::Add(const std::string& line) {
  text_.append(line, 0, line.find_last_not_of(' ') + 1);
  text_ += '\n';
}

void ReportText::Paragraph(const std::string& text) {
  constexpr size_t kColumns = 98;
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      Add("  " + line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) Add("  " + line);
}

}  // namespace stoker
