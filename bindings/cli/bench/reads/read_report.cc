#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bindings/cli/bench/reads/read_runner.h"
#include "bindings/cli/text/report_text.h"
#include "core/result/plural.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

// Returns 0 if nothing was read.
double Per(double amount, double count) { return count > 0 ? amount / count : 0; }

double PerSample(const ReadReport& report, double amount) {
  return Per(amount, static_cast<double>(report.samples));
}

const char* NameOf(ReaderKind kind) { return kind == ReaderKind::kUring ? "uring" : "pread"; }

std::string CachedText(const ReadReport& report) {
  if (!report.cached_before) return "";
  return fmt::format("; {:.0f} % were cached before", *report.cached_before * 100);
}

Json FioJson(const std::optional<FioFigure>& fio) {
  if (!fio) return nullptr;
  return {{"reads", fio->reads},
          {"reads_per_second", fio->reads_per_second},
          {"bytes_per_second", fio->bytes_per_second}};
}

}  // namespace

std::string ReadReportText(const ReadReport& report, const cli::PageWidth& width) {
  const BenchOptions& options = report.options;
  const uint64_t samples = options.loader.source->size();
  ReportText text(width);
  text.Add("", fmt::format("{}: {}, only read", report.source, SamplesText(samples)));
  text.Line("reads", fmt::format("{} in flight, {}", report.reads_in_flight,
                                 options.loader.shuffle ? "shuffled" : "in the source's order"));
  text.Line("reader", fmt::format("{} ({})", NameOf(report.reader.kind), report.reader.reason));
  text.Add("");
  const double read = static_cast<double>(report.samples);
  const double bytes = static_cast<double>(report.bytes);
  text.Figure("throughput", fmt::format("{:.0f} samples/s", Per(read, report.seconds)),
              fmt::format("{} in {}, {} {}", SamplesText(report.samples), Duration(report.seconds),
                          report.epochs, Plural(report.epochs, "epoch", "epochs")));
  text.Figure("read", SpeedText(Per(bytes, report.seconds)),
              fmt::format("{} in all, {} from storage{}", SizeText(report.bytes),
                          SizeText(report.bytes_from_storage), CachedText(report)));
  text.Figure("latency", Duration(report.latency_p50_s),
              fmt::format("median; 99 %: {}, 99.9 %: {}", Duration(report.latency_p99_s),
                          Duration(report.latency_p999_s)));
  text.Figure("CPU", fmt::format("{:.2f} µs", PerSample(report, report.cpu_seconds) * 1e6),
              "a sample, of the whole process");
  text.Figure("system calls",
              fmt::format("{:.3f}", PerSample(report, static_cast<double>(report.counts.calls))),
              fmt::format("a sample, of the reader; {:.3f} files opened a sample",
                          PerSample(report, static_cast<double>(report.counts.opens))));
  if (report.fio) {
    text.Figure("fio", SpeedText(report.fio->bytes_per_second),
                fmt::format("{:.0f} reads/s, for the first {} of these reads",
                            report.fio->reads_per_second, Count(report.fio->reads)));
  }
  if (report.interrupted) text.Add("  interrupted");
  return text.Take();
}

std::string ReadReportJson(const ReadReport& report) {
  const BenchOptions& options = report.options;
  const Json json = {
      {"stoker", STOKER_VERSION},
      {"source", report.source},
      {"samples", options.loader.source->size()},
      {"options",
       {{"transform", options.transform},
        {"batch_size", options.loader.batch_size},
        {"epochs", options.epochs},
        {"shuffle", options.loader.shuffle},
        {"seed", options.loader.seed},
        {"rank", options.loader.rank},
        {"world", options.loader.world},
        {"reads", report.reads_in_flight},
        {"reader", NameOf(report.reader.kind)},
        {"reader_reason", report.reader.reason},
        {"cold", options.cold}}},
      {"samples_read", report.samples},
      {"epochs", report.epochs},
      {"seconds", report.seconds},
      {"samples_per_second", Per(static_cast<double>(report.samples), report.seconds)},
      {"bytes_read", report.bytes},
      {"bytes_read_per_second", Per(static_cast<double>(report.bytes), report.seconds)},
      {"bytes_from_storage", report.bytes_from_storage},
      {"cached_before", report.cached_before ? Json(*report.cached_before) : Json(nullptr)},
      {"read_latency_s",
       {{"p50", report.latency_p50_s},
        {"p99", report.latency_p99_s},
        {"p99.9", report.latency_p999_s}}},
      {"cpu_seconds", report.cpu_seconds},
      {"system_calls", report.counts.calls},
      {"files_opened", report.counts.opens},
      {"fio", FioJson(report.fio)},
      {"interrupted", report.interrupted}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
