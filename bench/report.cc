#include "bench/report.h"
#include "transforms/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

double PerImage(const BenchReport& report, double seconds) {
  return report.images == 0 ? 0 : seconds / static_cast<double>(report.images);
}

double PerSecond(const BenchReport& report, double amount) {
  return report.seconds <= 0 ? 0 : amount / report.seconds;
}

double ImagesPerSecond(const BenchReport& report) {
  return PerSecond(report, static_cast<double>(report.images));
}

double Share(const BenchReport& report, double cpu) {
  return report.cpu_seconds <= 0 ? 0 : cpu / report.cpu_seconds;
}

// Whether the transforms antialias; none where nothing is resized.
std::optional<bool> Antialias(const std::vector<Transform>& transforms) {
  for (const Transform& transform : transforms) {
    if (const auto* resize = std::get_if<Resize>(&transform)) return resize->antialias;
    if (const auto* crop = std::get_if<RandomResizedCrop>(&transform)) return crop->antialias;
  }
  return std::nullopt;
}

const char* FilterName(const BenchReport& report) {
  const std::optional<bool> antialias = Antialias(report.options.loader.transforms);
  if (!antialias) return "none";
  return *antialias ? "antialiased bilinear" : "plain bilinear";
}

struct Stage {
  const char* name;
  double cpu_seconds;
  const char* meaning;
  bool optional = false;  // left out of the text where it takes no time
};

std::array<Stage, 6> Stages(const CpuSplit& cpu) {
  return {{{"read", cpu.read, "files into memory"},
           {"decode", cpu.decode, "bytes to pixels"},
           {"resize", cpu.resize, "resample, flip, convert, write the row"},
           {"augment", cpu.augment, "what is not fused: colour, blur, policies, erasing", true},
           {"mix", cpu.mix, "MixUp and CutMix", true},
           {"rest", cpu.rest, "everything else"}}};
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string Bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string Bytes(uint64_t bytes) { return Bytes(static_cast<double>(bytes)); }

// 1234567 → "1,234,567".
std::string Count(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

class Text {
 public:
  void Line(const char* name, const std::string& value) {
    Add(fmt::format("  {:<15}{}", name, value));
  }
  // fmt counts columns, so "µ" is one of them.
  void Figure(const char* name, const std::string& value, const std::string& meaning) {
    Add(fmt::format("  {:<15}{:>24}   {}", name, value, meaning));
  }
  void Add(const std::string& line) {
    text_.append(line, 0, line.find_last_not_of(' ') + 1);  // no blanks at the end
    text_ += '\n';
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// "1,200 ours, 3 libjpeg-turbo (3 progressive or arithmetic)"
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
  return fmt::format("{} ours, {} libjpeg-turbo{}", Count(paths.fast), Count(others), reasons);
}

// "1,200 photographs decoded by it, 3 of changed files not; `stoker index` makes it anew"
std::string IndexText(const DecodePaths& paths) {
  std::string text = Count(paths.indexed) + " photographs decoded by it";
  if (paths.stale > 0) text += fmt::format(", {} of changed files not", Count(paths.stale));
  if (paths.contradicted > 0) text += fmt::format(", {} wrong", Count(paths.contradicted));
  if (paths.stale + paths.contradicted > 0) text += "; `stoker index` makes it anew";
  return text;
}

bool HasIndex(const DecodePaths& paths) {
  return paths.indexed + paths.stale + paths.contradicted > 0;
}

void AddWhatRan(const BenchReport& report, Text& text) {
  const BenchOptions& options = report.options;
  const LoaderStats& loader = report.loader;
  text.Add(fmt::format(
      "{}: {} images, {}", report.source, Count(report.samples),
      report.classes == 0 ? "no labels" : fmt::format("{} classes", Count(report.classes))));
  text.Line("transform", fmt::format("{}, {}, {} {}", options.transform, FilterName(report),
                                     NameOf(options.loader.dtype), NameOf(options.loader.layout)));
  text.Line("plan", loader.plan);
  text.Line(
      "batches",
      fmt::format("of {}, {}{}, seed {}{}", options.loader.batch_size,
                  options.loader.shuffle ? "shuffled" : "in the folder's order",
                  options.loader.drop_remainder ? ", full ones only" : "", options.loader.seed,
                  options.loader.world == 1
                      ? ""
                      : fmt::format(", rank {} of {}", options.loader.rank, options.loader.world)));
  text.Line("workers",
            fmt::format("{} ({}; {} have worked), {} batches in production", loader.threads,
                        loader.executor, loader.threads_seen, loader.depth));
  text.Line("JPEG decoder", DecodersText(loader.decoded));
  if (HasIndex(loader.decoded)) text.Line("crop index", IndexText(loader.decoded));
  if (!report.warning.empty()) text.Line("crop index", report.warning);
  text.Line("reader", loader.reader_reason);  // begins with the reader's name
  if (options.cold) {
    text.Line("page cache", "dropped for each file before each epoch");
  }
}

void AddFigures(const BenchReport& report, Text& text) {
  text.Figure("throughput", fmt::format("{:.1f} images/s", ImagesPerSecond(report)),
              fmt::format("{} images, {} epoch{}, {}", Count(report.images), Count(report.epochs),
                          report.epochs == 1 ? "" : "s", Duration(report.seconds)));
  text.Figure("CPU",
              fmt::format("{:.3f} s / 1,000 images", PerImage(report, report.cpu_seconds) * 1e3),
              fmt::format("user and system; {:.2f} cores busy on average",
                          PerSecond(report, report.cpu_seconds)));
  text.Figure(
      "read",
      fmt::format("{:.1f} MB/s", PerSecond(report, static_cast<double>(report.bytes_read)) / 1e6),
      fmt::format("{}, {} of it from storage", Bytes(report.bytes_read),
                  Bytes(report.bytes_from_storage)));
  text.Figure("first batch", Duration(report.time_to_first_batch_s), "after opening the loader");
  text.Figure("batch latency", Duration(report.batch_latency_p50_s) + " p50",
              "how long Next() takes; small: batches are ready when asked for");
  text.Figure("", Duration(report.batch_latency_p99_s) + " p99", "");
  text.Figure("peak memory", Bytes(report.peak_memory_bytes),
              fmt::format("whole process; working memory {} of {}",
                          Bytes(report.loader.memory_peak), Bytes(report.loader.memory_budget)));
}

double RateOf(uint64_t amount, uint64_t nanoseconds) {
  return nanoseconds == 0 ? 0
                          : static_cast<double>(amount) * 1e9 / static_cast<double>(nanoseconds);
}

// Of the time between the first step's end and the last one's begin, and of the copies: at least,
// for a step may have waited for a batch that was not even made.
double IdleShare(const DeviceFigures& figures) {
  const double idle = static_cast<double>(figures.steps.idle_ns);
  return idle == 0 ? 0 : idle / (idle + static_cast<double>(figures.steps.step_ns));
}
double HiddenShare(const DeviceFigures& figures) {
  if (figures.staged.copy_ns == 0) return 0;
  return std::max(0.0, 1 - static_cast<double>(figures.steps.idle_ns) /
                               static_cast<double>(figures.staged.copy_ns));
}
double MeanStep(const DeviceFigures& figures) {
  return figures.steps.steps == 0 ? 0
                                  : static_cast<double>(figures.steps.step_ns) * 1e-9 /
                                        static_cast<double>(figures.steps.steps);
}

void AddDevice(const BenchReport& report, Text& text) {
  const DeviceFigures& figures = *report.device;
  const DeviceBench& asked = *report.options.device;
  const double rate = RateOf(figures.staged.copied_bytes, figures.staged.copy_ns);
  text.Figure("to the device", fmt::format("{:.2f} GB/s", rate / 1e9),
              fmt::format("{}; {:.0f} % of a bare copy's {:.2f} GB/s ({} each)",
                          asked.name.ToString(), 100 * rate / figures.bare_copy_rate,
                          figures.bare_copy_rate / 1e9, Bytes(figures.copy_bytes)));
  if (asked.step_ns > 0) {
    text.Figure("idle for input", fmt::format("{:.2f} %", 100 * IdleShare(figures)),
                fmt::format("of the device's time; {:.1f} % of copies hidden at least",
                            100 * HiddenShare(figures)));
    text.Figure("step", Duration(MeanStep(figures)),
                fmt::format("a stand-in of {}; alone {}",
                            Duration(static_cast<double>(asked.step_ns) * 1e-9),
                            Duration(static_cast<double>(figures.bare_step_ns) * 1e-9)));
  }
  text.Figure("stager waited", Duration(static_cast<double>(figures.staged.host_wait_ns) * 1e-9),
              fmt::format("for batches; {} for the step, {} for copies",
                          Duration(static_cast<double>(figures.staged.ring_wait_ns) * 1e-9),
                          Duration(static_cast<double>(figures.staged.copy_wait_ns) * 1e-9)));
  text.Figure("pinned", Bytes(report.loader.pinned_bytes),
              fmt::format("and {} on the device, {} batches", Bytes(figures.staged.device_bytes),
                          asked.buffers));
}

Json DeviceJson(const BenchReport& report) {
  if (!report.device) return nullptr;
  const DeviceFigures& figures = *report.device;
  const DeviceBench& asked = *report.options.device;
  return {{"device", asked.name.ToString()},
          {"buffers", asked.buffers},
          {"step_s", static_cast<double>(asked.step_ns) * 1e-9},
          {"measured_step_s", MeanStep(figures)},
          {"bare_step_s", static_cast<double>(figures.bare_step_ns) * 1e-9},
          {"copied_bytes", figures.staged.copied_bytes},
          {"copy_bytes_per_second", RateOf(figures.staged.copied_bytes, figures.staged.copy_ns)},
          {"bare_copy_bytes_per_second", figures.bare_copy_rate},
          {"copy_bytes", figures.copy_bytes},
          {"copies_hidden_at_least", HiddenShare(figures)},
          {"idle_for_input", IdleShare(figures)},
          {"stager_waited_s",
           {{"batches", static_cast<double>(figures.staged.host_wait_ns) * 1e-9},
            {"ring", static_cast<double>(figures.staged.ring_wait_ns) * 1e-9},
            {"copies", static_cast<double>(figures.staged.copy_wait_ns) * 1e-9}}},
          {"pinned_bytes", report.loader.pinned_bytes},
          {"device_bytes", figures.staged.device_bytes}};
}

void AddStages(const BenchReport& report, Text& text) {
  constexpr double kBar = 24;
  text.Add("  CPU by stage");
  for (const Stage& stage : Stages(report.cpu)) {
    if (stage.optional && stage.cpu_seconds == 0) continue;
    const double share = Share(report, stage.cpu_seconds);
    std::string bar;
    for (int i = 0; i < static_cast<int>(share * kBar + 0.5); ++i) bar += "█";
    text.Add(fmt::format("    {:<8}{:>5.1f} %{:>9.1f} µs/image  {:<24}  {}", stage.name,
                         share * 100, PerImage(report, stage.cpu_seconds) * 1e6, bar,
                         stage.meaning));
  }
}

Json DecodedJson(const DecodePaths& paths) {
  Json reasons = Json::object();
  for (size_t i = 0; i < kFallbacks; ++i) {
    if (paths.fallback[i] != 0) reasons[NameOf(static_cast<Fallback>(i))] = paths.fallback[i];
  }
  return {{"ours", paths.fast},
          {"libjpeg_turbo", std::move(reasons)},
          {"indexed", paths.indexed},
          {"index_stale", paths.stale},
          {"index_contradicted", paths.contradicted}};
}

Json OptionsJson(const BenchReport& report) {
  const BenchOptions& options = report.options;
  const LoaderStats& loader = report.loader;
  const std::optional<bool> antialias = Antialias(options.loader.transforms);
  return {{"transform", options.transform},
          {"plan", loader.plan},
          {"mix", options.loader.mix ? Json(TextOf(*options.loader.mix)) : Json(nullptr)},
          {"filter", FilterName(report)},
          {"antialias", antialias ? Json(*antialias) : Json(nullptr)},
          {"dtype", NameOf(options.loader.dtype)},
          {"layout", NameOf(options.loader.layout)},
          {"batch_size", options.loader.batch_size},
          {"epochs", options.epochs},
          {"shuffle", options.loader.shuffle},
          {"seed", options.loader.seed},
          {"rank", options.loader.rank},
          {"world", options.loader.world},
          {"drop_remainder", options.loader.drop_remainder},
          {"threads", loader.threads},
          {"depth", loader.depth},
          {"executor", loader.executor},
          {"reader", loader.reader},
          {"reader_reason", loader.reader_reason},
          {"memory_budget_bytes", loader.memory_budget},
          {"cold", options.cold}};
}

}  // namespace

std::string BenchReportText(const BenchReport& report) {
  Text text;
  AddWhatRan(report, text);
  text.Add("");
  AddFigures(report, text);
  if (report.device) AddDevice(report, text);
  text.Add("");
  AddStages(report, text);
  if (report.digest) {
    text.Add("");
    text.Line("digest",
              *report.digest + "   ids, labels and pixels in order; hashing counts as rest");
  }
  if (report.interrupted)
    text.Add("\n  Interrupted: these figures are of what was done until then.");
  return text.Take();
}

std::string BenchReportJson(const BenchReport& report) {
  Json shares;
  Json microseconds;
  for (const Stage& stage : Stages(report.cpu)) {
    shares[stage.name] = Share(report, stage.cpu_seconds);
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
      {"threads_seen", report.loader.threads_seen},
      {"decoded", DecodedJson(report.loader.decoded)},
      {"device", DeviceJson(report)},
      {"warning", report.warning.empty() ? Json(nullptr) : Json(report.warning)},
      {"digest", report.digest ? Json(*report.digest) : Json(nullptr)},
      {"samples_digest", report.samples_digest ? Json(*report.samples_digest) : Json(nullptr)},
      {"interrupted", report.interrupted}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
