#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "bindings/cli/bench/report.h"
#include "bindings/cli/bench/report_figures.h"
#include "engine/arrays/processor.h"
#include "engine/metrics/counters.h"
#include "engine/metrics/stats.h"
#include "transforms/plan/explain.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

Json DeviceJson(const BenchReport& report) {
  if (!report.device) return nullptr;
  const DeviceFigures& figures = *report.device;
  const DeviceBench& asked = *report.options.device;
  return {{"device", asked.name.ToString()},
          {"buffers", asked.options.buffers},
          {"step_s", static_cast<double>(asked.step_ns) * 1e-9},
          {"measured_step_s", MeanStep(figures)},
          {"bare_step_s", static_cast<double>(figures.bare_step_ns) * 1e-9},
          {"copied_bytes", figures.copies.copied_bytes},
          {"copy_bytes_per_second", RateOf(figures.copies.timed_bytes, figures.copies.copy_ns)},
          {"bare_copy_bytes_per_second", figures.bare_copy_rate},
          {"copy_bytes", figures.copy_bytes},
          {"copies_hidden_at_least", HiddenShare(figures)},
          {"idle_for_input", IdleShare(figures)},
          {"stager_waited_s",
           {{"batches", static_cast<double>(figures.copies.host_wait_ns) * 1e-9},
            {"ring", static_cast<double>(figures.copies.ring_wait_ns) * 1e-9},
            {"copies", static_cast<double>(figures.copies.copy_wait_ns) * 1e-9}}},
          {"pinned_bytes", report.loader.pinned_bytes},
          {"pinning_s", static_cast<double>(report.loader.pinning_ns) * 1e-9},
          {"device_bytes", figures.copies.device_bytes}};
}

// A counter as JSON; null if it has no place there.
struct CounterJson {
  Json operator()(uint64_t* value) const { return *value; }
  Json operator()(int* value) const { return *value; }
  Json operator()(std::string* text) const { return *text; }
  Json operator()(const NamedCounts& counts) const {
    Json some = Json::object();
    for (const auto& [name, count] : counts) {
      if (*count != 0) some[name] = *count;
    }
    return some;
  }
  Json operator()(const auto&) const { return nullptr; }
};

Json PartJson(const LoaderStats& given, CounterPart part) {
  LoaderStats stats = given;  // the table gives access to what may be changed
  Json json;
  for (const CounterRow& row : AllCounters()) {
    if (row.part != part) continue;
    json[row.bench_name != nullptr ? row.bench_name : row.name] =
        std::visit(CounterJson(), row.in(stats));
  }
  return json;
}

Json BadJson(const BadCounts& bad) {
  Json classes = Json::object();
  for (int i = 0; i < kSampleFaults; ++i) {
    if (bad.faults[static_cast<size_t>(i)] == 0) continue;
    classes[NameOf(static_cast<SampleFault>(i))] = bad.faults[static_cast<size_t>(i)];
  }
  return {
      {"substituted", bad.substituted}, {"dropped", bad.dropped}, {"classes", std::move(classes)}};
}

Json WaitedJson(const LoaderStats& loader) {
  Json causes;
  for (const Cause& cause : Causes(loader.waited)) {
    causes[cause.name] = static_cast<double>(cause.ns) * 1e-9;
  }
  return {{"share", WaitedShare(loader)},
          {"seconds", static_cast<double>(loader.wait_ns) * 1e-9},
          {"by_cause_s", std::move(causes)},
          {"consumer_s", static_cast<double>(loader.consumer_ns) * 1e-9}};
}

Json SettingsJson(const LoaderStats& loader) {
  Json decisions = Json::array();
  for (const TunerDecision& decision : loader.decisions) decisions.push_back(TextOf(decision));
  Json json = PartJson(loader, CounterPart::kSettings);
  json["decisions"] = std::move(decisions);
  return json;
}

Json TraceJson(const std::optional<TraceSummary>& trace) {
  if (!trace) return nullptr;
  return {{"file", trace->path},
          {"bytes", trace->bytes},
          {"events", trace->events},
          {"dropped_events", trace->dropped}};
}

Json OptionsJson(const BenchReport& report) {
  const BenchOptions& options = report.options;
  const LoaderStats& loader = report.loader;
  const std::optional<bool> antialias = Antialias(report);
  const Processor* const of = options.loader.processor.get();
  return {{"transform", options.transform},
          {"plan", loader.plan},
          {"mix", options.loader.mix ? Json(TextOf(*options.loader.mix)) : Json(nullptr)},
          {"filter", FilterName(report)},
          {"antialias", antialias ? Json(*antialias) : Json(nullptr)},
          {"decode", NameOf(options.loader.decode)},
          {"dtype", NameOf(of != nullptr ? of->options().dtype : options.loader.dtype)},
          {"layout", NameOf(options.loader.layout)},
          {"channels", NameOf(options.loader.channels)},
          {"batch_size", options.loader.batch_size},
          {"batch_tokens", options.loader.batch_tokens},
          {"tokens", options.loader.tokens},
          {"padding", options.loader.padding == RowPadding::kNone ? "none" : "longest"},
          {"buckets", options.loader.buckets.ToString()},
          {"epochs", options.epochs},
          {"shuffle", options.loader.shuffle},
          {"seed", options.loader.seed},
          {"rank", options.loader.rank},
          {"world", options.loader.world},
          {"drop_remainder", options.loader.drop_remainder},
          {"threads", loader.threads},
          {"depth", loader.depth},
          {"reads", loader.reads},
          {"executor", loader.executor},
          {"executor_reason", loader.executor_reason},
          {"reader", loader.reader},
          {"reader_reason", loader.reader_reason},
          {"memory_budget_bytes", loader.memory_budget},
          {"cold", options.cold}};
}

}  // namespace

std::string BenchReportJson(const BenchReport& report) {
  Json shares;
  Json microseconds;
  for (const Stage& stage : Stages(report.cpu)) {
    shares[stage.name] = CpuShare(report, stage.cpu_seconds);
    microseconds[stage.name] = PerImage(report, stage.cpu_seconds) * 1e6;
  }
  shares["microseconds_per_image"] = std::move(microseconds);
  const Json json = {
      {"stoker", STOKER_VERSION},
      {"source", report.source},
      {"samples", report.samples},
      {"classes", report.classes},
      {"options", OptionsJson(report)},
      {"images", report.images},
      {"batches", report.batches},
      {"epochs", report.epochs},
      {"seconds", report.seconds},
      {"images_per_second", ImagesPerSecond(report)},
      {"patches", report.patches},
      {"patches_per_second", PatchesPerSecond(report)},
      {"batch_fill", report.loader.batch_fill},
      {"cpu_seconds", report.cpu_seconds},
      {"cpu_seconds_per_1000_images", PerImage(report, report.cpu_seconds) * 1e3},
      {"bytes_read", report.bytes_read},
      {"bytes_read_per_second", PerSecond(report, static_cast<double>(report.bytes_read))},
      {"bytes_from_storage", report.bytes_from_storage},
      {"time_to_first_batch_s", report.time_to_first_batch_s},
      {"batch_latency_s",
       {{"p50", report.batch_latency_p50_s}, {"p99", report.batch_latency_p99_s}}},
      {"peak_memory_bytes", report.peak_memory_bytes},
      {"working_memory_peak_bytes", report.loader.memory_peak},
      {"stages", std::move(shares)},
      {"waited", WaitedJson(report.loader)},
      {"workers_busy", BusyShares(report)},
      {"worker_core_share", report.loader.clocked.share()},
      {"settings", SettingsJson(report.loader)},
      {"advice", AdviceOf(report)},
      {"threads_seen", report.loader.threads_seen},
      {"decoded", PartJson(report.loader, CounterPart::kDecoded)},
      {"cache", report.loader.cache.place.empty() ? Json(nullptr)
                                                  : PartJson(report.loader, CounterPart::kCache)},
      {"bad", BadJson(report.loader.bad)},
      {"device", DeviceJson(report)},
      {"warning", report.warning.empty() ? Json(nullptr) : Json(report.warning)},
      {"memory_warnings", report.memory_warnings},
      {"skipped", report.skipped.by_extension},
      {"digest", report.digest ? Json(*report.digest) : Json(nullptr)},
      {"samples_digest", report.samples_digest ? Json(*report.samples_digest) : Json(nullptr)},
      {"interrupted", report.interrupted},
      {"trace", TraceJson(report.trace)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
