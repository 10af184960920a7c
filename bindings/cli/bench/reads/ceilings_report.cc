#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bindings/cli/bench/reads/ceilings.h"
#include "bindings/cli/bench/report.h"
#include "bindings/cli/text/report_text.h"
#include "core/result/plural.h"
#include "engine/metrics/advice.h"
#include "engine/metrics/stats.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

std::string WorkersText(const Ceilings& ceilings) {
  return fmt::format("{} {}", ceilings.workers, Plural(ceilings.workers, "worker", "workers"));
}

std::string StorageText(const Ceilings& ceilings) {
  std::string text = SpeedText(ceilings.storage.bytes_per_second) + ", read and thrown away";
  if (!ceilings.cached) return text;
  text += fmt::format("; {:.0f} % came from the page cache", *ceilings.cached * 100);
  constexpr double kFew = 0.9;
  const bool cold = ceilings.run.options.cold;
  return text + (!cold && *ceilings.cached < kFew ? "; try --cold, too" : "");
}

// One part of the report; `text` describes a part that was measured.
struct Row {
  const char* name;
  const Ceiling& ceiling;
  std::string text;
};

std::array<Row, 4> Rows(const Ceilings& ceilings) {
  return {{{"storage", ceilings.storage, StorageText(ceilings)},
           {"decode", ceilings.decode,
            fmt::format("{} on bytes in memory, {} of CPU a sample", WorkersText(ceilings),
                        Duration(ceilings.decode_seconds))},
           {"memory", ceilings.memory,
            fmt::format("{}, {} write rows of {}", SpeedText(ceilings.memory.bytes_per_second),
                        WorkersText(ceilings), MemoryText(ceilings.image_bytes))},
           {"copy", ceilings.copy,
            fmt::format("{} to {}", SpeedText(ceilings.copy.bytes_per_second), ceilings.device)}}};
}

bool Measured(const Ceiling& part) { return part.images_per_second > 0; }

// The run's rate as a share of a measured part's; nullopt if the run's rate is unknown.
std::optional<double> ShareReached(const Ceilings& ceilings, const Ceiling& part) {
  const std::optional<double> rate = RunRate(ceilings.run);
  return rate ? std::optional(*rate / part.images_per_second) : std::nullopt;
}

std::string PercentText(std::optional<double> share) {
  if (!share) return "-";
  return fmt::format("{:.{}f} %", *share * 100, *share < 0.0995 ? 1 : 0);
}

std::string Rounded(double per_second) { return Count(static_cast<uint64_t>(per_second + 0.5)); }

std::string RunText(const BenchReport& run) {
  if (!RunRate(run)) {
    return fmt::format("{} in {}, {} {}{}: too few to tell a rate", SamplesText(run.images),
                       Duration(run.seconds), Count(run.batches),
                       Plural(run.batches, "batch", "batches"),
                       run.options.cold ? " in cold epochs" : "");
  }
  return fmt::format("{} in {} after {}; workers had a core {:.0f} % of their time",
                     SamplesText(run.images_after_first), Duration(run.seconds_after_first),
                     run.options.cold ? "the first batch of each epoch" : "the first batch",
                     run.loader.clocked.share() * 100);
}

Json PartJson(const Ceilings& ceilings, const Ceiling& part) {
  if (!Measured(part)) return {{"why_not", part.why_not}};
  const std::optional<double> reached = ShareReached(ceilings, part);
  return {{"images_per_second", part.images_per_second},
          {"bytes_per_second", part.bytes_per_second},
          {"reached", reached ? Json(*reached) : Json(nullptr)}};
}

}  // namespace

std::string CeilingsText(const Ceilings& ceilings, const cli::PageWidth& width) {
  const BenchReport& run = ceilings.run;
  constexpr const char* kLine = "  {:<10}{:>12}{:>10}   ";
  ReportText text(width);
  text.Add("", fmt::format("{}: {}", run.source, SamplesText(run.samples)));
  text.Line("plan", run.loader.plan);
  AddNotes(run, text);
  text.Add("");
  text.Add(fmt::format(kLine, "alone", "samples/s", "reached"));
  for (const Row& row : Rows(ceilings)) {
    if (Measured(row.ceiling)) {
      text.Add(fmt::format(kLine, row.name, Rounded(row.ceiling.images_per_second),
                           PercentText(ShareReached(ceilings, row.ceiling))),
               row.text);
    } else {
      text.Add(fmt::format(kLine, row.name, "-", "-"), row.ceiling.why_not);
    }
  }
  const std::optional<double> rate = RunRate(run);
  text.Add(fmt::format(kLine, "the run", rate ? Rounded(*rate) : "-", ""), RunText(run));
  if (run.interrupted) text.Add("\n  Interrupted: the run's figures are those until then.");
  if (const std::string advice = rate ? Advice(run.loader, *rate) : Advice(run.loader);
      !advice.empty()) {
    text.Add("");
    text.Paragraph(advice);
  }
  const std::string first = FirstChange(run.loader, run.options.cold);
  if (!first.empty()) {
    text.Add("");
    text.Paragraph("To change first: " + first);
  }
  return text.Take();
}

std::string CeilingsJson(const Ceilings& ceilings) {
  const BenchReport& run = ceilings.run;
  Json parts;
  for (const Row& row : Rows(ceilings)) parts[row.name] = PartJson(ceilings, row.ceiling);
  if (Measured(ceilings.storage)) {
    parts["storage"]["cached"] = ceilings.cached ? Json(*ceilings.cached) : Json(nullptr);
  }
  if (Measured(ceilings.decode)) parts["decode"]["cpu_seconds_per_image"] = ceilings.decode_seconds;
  if (Measured(ceilings.copy)) parts["copy"]["device"] = ceilings.device;
  const std::string first = FirstChange(run.loader, run.options.cold);
  const std::optional<double> rate = RunRate(run);
  const Json json = {{"stoker", STOKER_VERSION},
                     {"source", run.source},
                     {"workers", ceilings.workers},
                     {"image_bytes", ceilings.image_bytes},
                     {"batch_bytes", ceilings.image_bytes * run.options.loader.batch_size},
                     {"alone", std::move(parts)},
                     {"images_per_second", rate ? Json(*rate) : Json(nullptr)},
                     {"interrupted", ceilings.interrupted},
                     {"first_change", first.empty() ? Json(nullptr) : Json(first)},
                     {"run", Json::parse(BenchReportJson(run))}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
