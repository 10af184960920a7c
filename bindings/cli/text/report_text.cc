#include "bindings/cli/text/report_text.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/result/plural.h"

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

std::string MemoryText(double bytes) {
  return InUnits(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string MemoryText(uint64_t bytes) { return MemoryText(static_cast<double>(bytes)); }

std::string SizeText(double bytes) { return InUnits(bytes, 1000, {"B", "kB", "MB", "GB", "TB"}); }

std::string SizeText(uint64_t bytes) { return SizeText(static_cast<double>(bytes)); }

std::string SpeedText(double bytes_per_second) { return SizeText(bytes_per_second) + "/s"; }

std::string Count(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string SamplesText(uint64_t number) {
  return Count(number) + Plural(number, " sample", " samples");
}

std::string SamplesText(uint64_t samples, uint64_t images) {
  if (images == samples) return SamplesText(samples);
  return SamplesText(samples) + " (" + Count(images) + " images)";
}

std::string ChannelsText(Channels channels) {
  if (channels == Channels::kRgb) return "";
  return ", " + NameOf(channels) + (AreStored(channels) ? " channels" : "");
}

void ReportText::Line(const char* name, const std::string& value) {
  Add(fmt::format("  {:<15}", name), value);
}

// fmt counts columns, so "µ" is one of them.
void ReportText::Figure(const char* name, const std::string& value, const std::string& meaning) {
  Add(fmt::format("  {:<15}{:>24}   ", name, value), meaning);
}

void ReportText::Add(const std::string& head, std::string_view text) {
  const std::string line = head + cli::Hung(text, cli::ColumnsOf(head), width_.rows);
  text_.append(line, 0, line.find_last_not_of(' ') + 1);
  text_ += '\n';
}

void ReportText::Paragraph(const std::string& text) {
  text_ += "  " + cli::Hung(text, 2, width_.prose) + '\n';
}

}  // namespace stoker
