#include "bindings/cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bindings/cli/bench/report_figures.h"
#include "bindings/cli/text/report_text.h"
#include "core/result/plural.h"
#include "engine/arrays/processor.h"
#include "engine/metrics/stats.h"

namespace stoker {

namespace {

// Returns "1,200 ours (20 progressive), 3 libjpeg-turbo (3 several scans)"; of a packed set, "1,200
// packed, 3 libjpeg-turbo (3 several scans)". With a device that decodes, "1,200 on the device"
// comes first.
std::string DecodersText(const DecodePaths& paths) {
  uint64_t others = 0;
  std::string reasons;
  for (size_t i = 0; i < kFallbacks; ++i) {
    if (paths.fallback[i] == 0) continue;
    others += paths.fallback[i];
    reasons += fmt::format("{}{} {}", reasons.empty() ? " (" : ", ", Count(paths.fallback[i]),
                           NameOf(static_cast<Fallback>(i)));
  }
  if (!reasons.empty()) reasons += ")";
  std::string text = paths.on_device == 0 ? "" : Count(paths.on_device) + " on the device, ";
  if (paths.packed > 0) text += Count(paths.packed) + " packed, ";
  if (paths.packed == 0 || paths.fast > 0) {
    text += Count(paths.fast) + " ours";
    if (paths.progressive > 0) text += fmt::format(" ({} progressive)", Count(paths.progressive));
    text += ", ";
  }
  text += fmt::format("{} libjpeg-turbo{}", Count(others), reasons);
  if (paths.no_end_marker > 0) {
    text += fmt::format("; {} without an end-of-image marker", Count(paths.no_end_marker));
  }
  if (paths.several_frames > 0) {
    text += fmt::format("; {} of several frames, and only the first decoded",
                        Count(paths.several_frames));
  }
  if (paths.scaled > 0) text += fmt::format("; {} scaled", Count(paths.scaled));
  if (paths.accepted_truncated > 0) {
    text += fmt::format("; {} truncated, and accepted", Count(paths.accepted_truncated));
  }
  return text;
}

// Returns "1,200 samples decoded with it, 3 not because their files have changed; run `stoker
// index` again".
std::string IndexText(const DecodePaths& paths) {
  std::string text = SamplesText(paths.indexed) + " decoded with it";
  if (paths.stale > 0)
    text += fmt::format(", {} not because their files have changed", Count(paths.stale));
  if (paths.contradicted > 0) text += fmt::format(", {} wrong", Count(paths.contradicted));
  if (paths.stale + paths.contradicted > 0) text += "; run `stoker index` again";
  return text;
}

// Returns "4 substituted, 1 dropped (3 truncated, 2 vanished)".
std::string BadText(const BadCounts& bad) {
  return fmt::format("{} substituted, {} dropped ({})", Count(bad.substituted), Count(bad.dropped),
                     TextOf(bad.faults));
}

bool HasIndex(const DecodePaths& paths) {
  return paths.indexed + paths.stale + paths.contradicted > 0;
}

// Returns "of 64", or "of at most 65,536 patches, padded to the longest" or "…, in buckets".
std::string BatchesText(const LoaderOptions& loader) {
  if (loader.batch_tokens == 0) return fmt::format("of {}", loader.batch_size);
  return fmt::format("of at most {} {}{}", Count(loader.batch_tokens),
                     loader.tokens.empty() ? "patches" : "tokens",
                     loader.padding != RowPadding::kNone ? ", padded to the longest"
                     : loader.buckets.empty()            ? ""
                                                         : ", in buckets");
}

// Returns "ram:8GiB, 21,600 samples from it, 400 of 47.1 MiB in it; full".
std::string CacheText(const CacheCounts& cache) {
  std::string text =
      fmt::format("{}, {} from it, {} of {} in it", cache.place, SamplesText(cache.hits),
                  Count(cache.samples), MemoryText(cache.bytes));
  if (cache.refused > 0) text += "; full";
  if (cache.damaged > 0) text += fmt::format("; {} damaged", Count(cache.damaged));
  return text;
}

}  // namespace

void AddNotes(const BenchReport& report, ReportText& text) {
  const LoaderStats& loader = report.loader;
  if (!report.warning.empty()) text.Line("crop index", report.warning);
  for (const std::string& warning : report.memory_warnings) text.Line("memory", warning);
  if (loader.bad.substituted + loader.bad.dropped > 0)
    text.Line("bad samples", BadText(loader.bad));
  if (!report.skipped.empty()) text.Line("skipped", report.skipped.Summary());
}

namespace {

void AddWhatRan(const BenchReport& report, ReportText& text) {
  const BenchOptions& options = report.options;
  const LoaderStats& loader = report.loader;
  std::string labels = options.loader.source->label() ? "labels without names" : "no labels";
  if (report.classes != 0) {
    labels =
        fmt::format("{} {}", Count(report.classes), Plural(report.classes, "class", "classes"));
  }
  text.Add("", fmt::format("{}: {}, {}", report.source, SamplesText(report.samples), labels));
  if (const Processor* processor = options.loader.processor.get()) {
    text.Line("processor",
              fmt::format("{}, {}", options.transform, NameOf(processor->options().dtype)));
  } else {
    text.Line("transform", fmt::format("{}, {}, {} {}{}", options.transform, FilterName(report),
                                       NameOf(options.loader.dtype), NameOf(options.loader.layout),
                                       ChannelsText(options.loader.channels)));
  }
  text.Line("plan", loader.plan);
  const bool by_size =
      options.loader.padding == RowPadding::kLongest && options.loader.batch_tokens != 0;
  text.Line(
      "batches",
      fmt::format("{}, {}{}, seed {}{}", BatchesText(options.loader),
                  options.loader.shuffle ? "shuffled"
                  : by_size              ? "from the largest to the smallest"
                                         : "in the folder's order",
                  options.loader.drop_remainder ? ", full ones only" : "", options.loader.seed,
                  options.loader.world == 1
                      ? ""
                      : fmt::format(", rank {} of {}", options.loader.rank, options.loader.world)));
  text.Line("workers",
            fmt::format("{} ({}; {} used)", loader.threads, loader.executor, loader.threads_seen));
  if (!loader.executor_reason.empty()) text.Line("", loader.executor_reason);
  text.Line("JPEG decoder", DecodersText(loader.decoded));
  if (!loader.cache.place.empty()) text.Line("cache", CacheText(loader.cache));
  if (HasIndex(loader.decoded)) text.Line("crop index", IndexText(loader.decoded));
  AddNotes(report, text);
  text.Line("reader", loader.reader_reason);  // begins with the reader's name
  if (options.cold) {
    text.Line("page cache", "dropped for each file before each epoch");
  }
}

void AddFigures(const BenchReport& report, ReportText& text) {
  text.Figure("throughput", fmt::format("{:.1f} samples/s", ImagesPerSecond(report)),
              fmt::format("{}, {} {}, {}", SamplesText(report.images), Count(report.epochs),
                          Plural(report.epochs, "epoch", "epochs"), Duration(report.seconds)));
  if (report.patches != 0) {
    text.Figure("", fmt::format("{:.0f} patches/s", PatchesPerSecond(report)),
                fmt::format("{} patches, without padding", Count(report.patches)));
  }
  if (report.options.loader.batch_tokens != 0) {
    text.Figure("batch fill", fmt::format("{:.1f} %", 100 * report.loader.batch_fill),
                fmt::format("{:.1f} samples a batch",
                            static_cast<double>(report.images) /
                                static_cast<double>(std::max<uint64_t>(report.batches, 1))));
  }
  text.Figure("CPU",
              fmt::format("{:.3f} s / 1,000 samples", PerImage(report, report.cpu_seconds) * 1e3),
              fmt::format("user and system; {:.2f} cores busy on average",
                          PerSecond(report, report.cpu_seconds)));
  text.Figure("read", SpeedText(PerSecond(report, static_cast<double>(report.bytes_read))),
              fmt::format("{}, {} of it from storage", SizeText(report.bytes_read),
                          SizeText(report.bytes_from_storage)));
  text.Figure("first batch", Duration(report.time_to_first_batch_s), "after opening the loader");
  text.Figure("batch latency", Duration(report.batch_latency_p50_s) + " p50",
              "how long Next() takes; small: batches are ready when asked for");
  text.Figure("", Duration(report.batch_latency_p99_s) + " p99", "");
  text.Figure(
      "peak memory", MemoryText(report.peak_memory_bytes),
      fmt::format("whole process; {} reserved of the budget of {}",
                  MemoryText(report.loader.memory_peak), MemoryText(report.loader.memory_budget)));
}

void AddDevice(const BenchReport& report, ReportText& text) {
  const DeviceFigures& figures = *report.device;
  const DeviceBench& asked = *report.options.device;
  const double rate = RateOf(figures.copies.timed_bytes, figures.copies.copy_ns);
  text.Figure("to the device", SpeedText(rate),
              fmt::format("{}; {:.0f} % of a bare copy's {} ({} each)", asked.name.ToString(),
                          100 * rate / figures.bare_copy_rate, SpeedText(figures.bare_copy_rate),
                          MemoryText(figures.copy_bytes)));
  if (asked.step_ns > 0) {
    text.Figure("idle for input", fmt::format("{:.2f} %", 100 * IdleShare(figures)),
                fmt::format("of the device's time; {:.1f} % of copies hidden at least",
                            100 * HiddenShare(figures)));
    text.Figure(
        "step", Duration(MeanStep(figures)),
        fmt::format("simulated, {}; alone {}", Duration(static_cast<double>(asked.step_ns) * 1e-9),
                    Duration(static_cast<double>(figures.bare_step_ns) * 1e-9)));
  }
  text.Figure("stager waited", Duration(static_cast<double>(figures.copies.host_wait_ns) * 1e-9),
              fmt::format("for batches; {} for the step, {} for copies",
                          Duration(static_cast<double>(figures.copies.ring_wait_ns) * 1e-9),
                          Duration(static_cast<double>(figures.copies.copy_wait_ns) * 1e-9)));
  text.Figure("pinned", MemoryText(report.loader.pinned_bytes),
              fmt::format("and {} on the device, {} batches",
                          MemoryText(figures.copies.device_bytes), asked.options.buffers));
}

void AddStages(const BenchReport& report, ReportText& text) {
  constexpr double kBar = 12;
  text.Add("  CPU by stage");
  for (const Stage& stage : Stages(report.cpu)) {
    if (stage.optional && stage.cpu_seconds == 0) continue;
    const double share = CpuShare(report, stage.cpu_seconds);
    std::string bar;
    for (int i = 0; i < static_cast<int>(share * kBar + 0.5); ++i) bar += "█";
    text.Add(fmt::format("    {:<8}{:>5.1f} %{:>9.1f} µs/sample  {:<12}  ", stage.name, share * 100,
                         PerImage(report, stage.cpu_seconds) * 1e6, bar),
             stage.meaning);
  }
}

// Returns "2,000 ms: 97.1 % decode, 2.9 % storage", the largest first.
std::string CausesText(const LoaderStats& loader) {
  auto causes = Causes(loader.waited);
  std::ranges::stable_sort(causes, std::greater(), &Cause::ns);
  std::string text = Duration(static_cast<double>(loader.wait_ns) * 1e-9);
  const char* before = ": ";
  for (const Cause& cause : causes) {
    const double share =
        static_cast<double>(cause.ns) / static_cast<double>(std::max<uint64_t>(1, loader.wait_ns));
    if (share < 0.0005) continue;
    text += fmt::format("{}{:.1f} % {}", before, 100 * share, cause.name);
    before = ", ";
  }
  return text;
}

std::string BusyText(const std::vector<double>& shares) {
  constexpr size_t kEach = 8;
  if (shares.size() > kEach) {
    const auto [least, most] = std::ranges::minmax(shares);
    return fmt::format("from {:.0f} % to {:.0f} % of the time", 100 * least, 100 * most);
  }
  std::string text;
  for (const double share : shares) {
    text += fmt::format("{}{:.0f} %", text.empty() ? "each: " : ", ", 100 * share);
  }
  return text;
}

void AddWaits(const BenchReport& report, ReportText& text) {
  const LoaderStats& loader = report.loader;
  text.Figure("waited", fmt::format("{:.1f} % of the time", 100 * WaitedShare(loader)),
              CausesText(loader));
  const std::vector<double> busy = BusyShares(report);
  if (!busy.empty()) {
    const double mean =
        std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(busy.size());
    text.Figure("workers busy", fmt::format("{:.1f} % of the time", 100 * mean), BusyText(busy));
    text.Figure("", fmt::format("{:.1f} % of that", 100 * loader.clocked.share()),
                "on a core; the rest of the time they waited for one");
  }
  text.Figure("settings", fmt::format("depth {}", loader.depth),
              fmt::format("{} of {} {}, {} {} at a time; {} {}", loader.workers, loader.threads,
                          Plural(loader.threads, "worker", "workers"), loader.reads,
                          Plural(loader.reads, "read", "reads"), Count(loader.decisions_made),
                          Plural(loader.decisions_made, "change", "changes")));
  constexpr size_t kLast = 3;
  const size_t made = loader.decisions.size();
  for (size_t i = made - std::min(made, kLast); i < made; ++i) {
    text.Add("    ", TextOf(loader.decisions[i]));
  }
}

}  // namespace

std::string BenchReportText(const BenchReport& report, const cli::PageWidth& width) {
  ReportText text(width);
  AddWhatRan(report, text);
  text.Add("");
  AddFigures(report, text);
  if (report.device) AddDevice(report, text);
  text.Add("");
  AddStages(report, text);
  text.Add("");
  AddWaits(report, text);
  if (report.digest) {
    text.Add("");
    text.Line("digest",
              *report.digest + "   ids, labels and pixels in order; hashing counts as rest");
  }
  if (report.interrupted)
    text.Add("\n  Interrupted: these figures cover what was done until then.");
  if (const std::string advice = AdviceOf(report); !advice.empty()) {
    text.Add("");
    text.Paragraph(advice);
  }
  return text.Take();
}

}  // namespace stoker
