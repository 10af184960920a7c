#include "bindings/cli/inspect/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "core/result/plural.h"
#include "core/result/utf8.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

// Returns "4:4:4 309 (77.2%), gray 8 (2.0%)", the most frequent first.
template <typename K>
std::string Shares(const std::map<K, uint64_t>& counts) {
  std::vector<std::pair<K, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  uint64_t total = 0;
  for (const auto& [name, count] : sorted) total += count;
  std::string text;
  for (const auto& [name, count] : sorted) {
    if (!text.empty()) text += ", ";
    std::string label = fmt::format("{}", name);
    if (label.empty()) label = "(none)";
    text += fmt::format("{} {} ({:.1f}%)", Printable(label), count,
                        100.0 * static_cast<double>(count) / static_cast<double>(total));
  }
  return text.empty() ? "none" : text;
}

std::string ClassLine(const DatasetReport& report) {
  if (report.classes.empty()) return "none: the folder is flat";
  const auto fewer = [](const ClassCount& a, const ClassCount& b) { return a.samples < b.samples; };
  const auto [least, most] =
      std::minmax_element(report.classes.begin(), report.classes.end(), fewer);
  return fmt::format("{}, from {} ({}) to {} ({}) samples", report.classes.size(), least->samples,
                     Printable(least->name), most->samples, Printable(most->name));
}

void AddRow(ReportText& text, const char* name, const Distribution& d, int decimals) {
  if (d.count == 0) return;
  std::string row = fmt::format("  {:<14}", name);
  for (double value : {d.min, d.p5, d.p25, d.median, d.p75, d.p95, d.max, d.mean}) {
    row += fmt::format(" {:>7.{}f}", value, decimals);
  }
  text.Add(row);
}

void AddTable(ReportText& text, const DatasetReport& report) {
  text.Add("");
  text.Add(fmt::format("  {:<14} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "min", "5%",
                       "25%", "median", "75%", "95%", "max", "mean"));
  Distribution kilobytes = report.bytes;
  for (double* value : {&kilobytes.min, &kilobytes.p5, &kilobytes.p25, &kilobytes.median,
                        &kilobytes.p75, &kilobytes.p95, &kilobytes.max, &kilobytes.mean}) {
    *value /= 1000;
  }
  AddRow(text, "file (kB)", kilobytes, 1);
  AddRow(text, "width", report.width, 0);
  AddRow(text, "height", report.height, 0);
  AddRow(text, "megapixels", report.megapixels, 3);
  AddRow(text, "bits per pixel", report.bits_per_pixel, 2);
}

void AddBroken(ReportText& text, const DatasetReport& report) {
  text.Add("");
  text.Add("", fmt::format("broken: {} of {} (only headers were read; `stoker verify` finds damage "
                           "after them)",
                           report.broken, report.samples));
  for (const Error& error : report.broken_files)
    text.Add("  ", Printable(error.Message(cli::FlagOf)));
  if (report.broken > report.broken_files.size()) {
    text.Add(fmt::format("  and {} more", report.broken - report.broken_files.size()));
  }
}

Json JsonOf(const Distribution& d) {
  return {{"count", d.count}, {"min", d.min}, {"p5", d.p5},   {"p25", d.p25},  {"median", d.median},
          {"p75", d.p75},     {"p95", d.p95}, {"max", d.max}, {"mean", d.mean}};
}

template <typename K>
Json JsonOf(const std::map<K, uint64_t>& counts) {
  Json json = Json::object();
  for (const auto& [key, count] : counts) json[fmt::format("{}", key)] = count;
  return json;
}

Json JsonOf(const PackingGain& gain) {
  return {{"measured", gain.measured},         {"packed", gain.packed},
          {"too_large", gain.too_large},       {"failed", gain.failed},
          {"file_bytes", gain.file_bytes},     {"packed_bytes", gain.packed_bytes},
          {"file_seconds", gain.file_seconds}, {"packed_seconds", gain.packed_seconds}};
}

std::string PackingText(const DatasetReport& report) {
  const PackingGain& gain = *report.packing;
  std::string measured = fmt::format("{} of {}", gain.measured, SamplesText(report.samples));
  if (gain.too_large > 0) measured += fmt::format("; {} too large to measure", gain.too_large);
  if (gain.failed > 0) measured += fmt::format("; {} could not be decoded", gain.failed);
  if (gain.packed == 0) return fmt::format("no file would be packed (of {})", measured);
  return fmt::format("{:.1f}x less CPU time per crop, {:.2f}x the size (measured on {})",
                     gain.file_seconds / gain.packed_seconds,
                     static_cast<double>(gain.packed_bytes) / static_cast<double>(gain.file_bytes),
                     measured);
}

Json JsonOf(const Error& error) {
  return {{"file", error.file},
          {"offset", error.offset ? Json(*error.offset) : Json(nullptr)},
          {"code", CodeName(error.code)},
          {"cause", error.cause},
          {"advice", error.Advice(cli::FlagOf)}};
}

}  // namespace

std::string InspectText(const DatasetReport& report, const cli::PageWidth& width) {
  ReportText text(width);
  const auto line = [&text](const char* name, const std::string& value) { text.Line(name, value); };
  text.Add("", Printable(report.source));
  line("samples", fmt::format("{} in {}", report.samples, SizeText(report.total_bytes)));
  line("classes", ClassLine(report));
  if (!report.skipped.empty()) line("skipped", Printable(report.skipped.Warning()));
  line("extensions", Shares(report.extensions));
  line("formats", Shares(report.formats));
  if (report.sixteen_bits > 0) line("16 bits", fmt::format("{}", report.sixteen_bits));
  if (report.several_frames > 0) {
    line("several frames", fmt::format("{}, or pages", report.several_frames));
  }
  if (report.undecodable > 0) {
    line("not decoded",
         fmt::format("{} {} that stoker does not decode", report.undecodable,
                     Plural(report.undecodable, "file is of a format", "files are of formats")));
  }
  if (!report.chroma.empty()) {
    line("JPEG chroma", Shares(report.chroma));
    line("JPEG coding", fmt::format("{} progressive, {} arithmetic, {} with restart markers",
                                    report.progressive, report.arithmetic, report.restart_markers));
    const bool upright = report.orientations.size() == 1 && report.orientations.contains(1);
    line("EXIF turn", upright ? "none" : Shares(report.orientations));
  }
  if (report.packing) line("packing", PackingText(report));
  AddTable(text, report);
  AddBroken(text, report);
  text.Add("");
  text.Add("", fmt::format("{} in {:.2f} s; the list takes {}", SamplesText(report.samples),
                           report.seconds, MemoryText(report.list_bytes)));
  return text.Take();
}

std::string InspectJson(const DatasetReport& report) {
  Json classes = Json::array();
  for (const ClassCount& c : report.classes) {
    classes.push_back({{"name", c.name}, {"samples", c.samples}});
  }
  Json broken = Json::array();
  for (const Error& error : report.broken_files) broken.push_back(JsonOf(error));
  const Json json = {
      {"source", report.source},
      {"samples", report.samples},
      {"list_bytes", report.list_bytes},
      {"classes", std::move(classes)},
      {"skipped", JsonOf(report.skipped.by_extension)},
      {"skipped_example", report.skipped.empty() ? Json(nullptr) : Json(report.skipped.example)},
      {"extensions", JsonOf(report.extensions)},
      {"formats", JsonOf(report.formats)},
      {"sixteen_bits", report.sixteen_bits},
      {"several_frames", report.several_frames},
      {"packing", report.packing ? JsonOf(*report.packing) : Json(nullptr)},
      {"undecodable", report.undecodable},
      {"total_bytes", report.total_bytes},
      {"bytes", JsonOf(report.bytes)},
      {"chroma", JsonOf(report.chroma)},
      {"orientations", JsonOf(report.orientations)},
      {"progressive", report.progressive},
      {"arithmetic", report.arithmetic},
      {"restart_markers", report.restart_markers},
      {"width", JsonOf(report.width)},
      {"height", JsonOf(report.height)},
      {"megapixels", JsonOf(report.megapixels)},
      {"bits_per_pixel", JsonOf(report.bits_per_pixel)},
      {"broken", report.broken},
      {"broken_files", std::move(broken)},
      {"seconds", report.seconds}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker
