#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bindings/cli/bench/live_view.h"
#include "bindings/cli/bench/reads/ceilings.h"
#include "bindings/cli/bench/reads/read_runner.h"
#include "bindings/cli/bench/report.h"
#include "bindings/cli/bench/runner.h"
#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/command/recipe.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/progress.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/output_file.h"
#include "engine/metrics/stats.h"

namespace stoker::cli {

namespace {

struct BenchArguments {
  std::string directory;
  RecipeArguments recipe;
  std::string processor;
  std::string crop_index = "auto";
  std::vector<std::string> source_options;
  LoaderOptions loader;  // some of its options have flags
  int64_t epochs = 1;
  bool shuffle = false;
  bool no_shuffle = false;
  int64_t threads = 0;
  int64_t reads = 0;
  std::string reader = "auto";
  uint64_t memory_budget = 0;
  std::string executor = "tbb";
  std::string device;
  DeviceOptions to_device;
  double step_ms = 0;
  bool cold = false;
  bool read_only = false;
  bool explain = false;
  bool digest = false;
  bool json = false;
  bool live = false;
  std::string trace;
  std::string prometheus;
};

constexpr const char* kBenchFooter = R"(Examples:
  stoker bench photos
  stoker bench photos --transform eval --epochs 3 --threads 4
  stoker bench photos --cold --reader uring --json | jq .images_per_second
  stoker bench photos --read-only --cold
  stoker bench photos --explain
  stoker bench photos --processor preprocessor_config.json --batch-tokens 65536

The figures (docs/cli.md says how each is measured):
  throughput      samples delivered per second, from the first request for a
                  batch to the last batch; with --processor also patches, or
                  tiles
  batch fill      patches or tokens of a batch, as a share of --batch-tokens
  CPU             user and system time of the whole process, for 1,000 samples:
                  the figure to compare on machines that are not idle
  read            bytes read per second, and how many came from storage, not
                  the page cache
  first batch     from opening the loader to having the first batch; listing
                  DIR is not included
  batch latency   duration of Next(): near 0 when batches are ready before they
                  are requested
  peak memory     the process' peak resident memory
  CPU by stage    read: reader threads; decode: bytes to pixels; resize: pixels
                  to the batch; augment: what is not fused with that; mix:
                  MixUp, CutMix; rest: everything else
  waited          for batches, by cause: storage, decode (workers), copy (to a
                  device), other
  settings        depth, workers and reads at the end, and their last changes

With --device, batches are copied while earlier ones are used (docs/gpu.md):
  to the device   bytes of the copies by their time on the device, and a copy
                  of as many bytes alone
  idle for input  the device's time between two steps
  stager waited   what the thread that issues the copies waited for

Exit codes: 0 done; 1 the data is missing or bad; 2 a bad option; 3 the system (permission, memory,
disk, I/O); 130 interrupted (Ctrl-C: the figures until then are printed).)";

ReaderKind ReaderOf(const std::string& name) {
  if (name == "uring") return ReaderKind::kUring;
  return name == "pread" ? ReaderKind::kPread : ReaderKind::kAuto;
}

ExecutorKind ExecutorOf(const std::string& name) {
  return name == "threads" ? ExecutorKind::kThreads : ExecutorKind::kTbb;
}

Status CheckTogether(const BenchArguments& given) {
  if (given.loader.rank >= given.loader.world) {
    return Error{Code::kInvalidArgument, fmt::format("--rank is {}; it must be below --world, {}",
                                                     given.loader.rank, given.loader.world)};
  }
  if (given.crop_index.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "--crop-index is empty",
                 .advice = "Give auto, off or the file that `stoker index` wrote"};
  }
  if (given.device.empty() && (given.step_ms != 0 || given.to_device.decodes)) {
    return Error{
        .code = Code::kInvalidArgument,
        .cause = fmt::format("{} needs --device",
                             given.to_device.decodes ? "--decode-on-device" : "--step-ms")};
  }
  const bool of_batches = !given.device.empty() || given.digest || given.live ||
                          !given.trace.empty() || !given.prometheus.empty() || given.loader.cache;
  if (given.read_only && (of_batches || given.loader.batch_tokens != 0)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause =
                     "--read-only makes no batches: --batch-tokens, --cache, --device, --digest, "
                     "--live, --trace and --prometheus have nothing to do"};
  }
  return {};
}

Result<std::optional<DeviceBench>> DeviceOf(const BenchArguments& given) {
  if (given.device.empty()) return std::optional<DeviceBench>();
  ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(given.device));
  return std::optional<DeviceBench>({.name = name,
                                     .options = given.to_device,
                                     .step_ns = static_cast<uint64_t>(given.step_ms * 1e6)});
}

BenchOptions OptionsOf(const BenchArguments& given, Recipe recipe,
                       std::shared_ptr<const SampleSource> source) {
  BenchOptions options;
  options.transform = std::move(recipe.name);
  LoaderOptions& loader = options.loader;
  loader = given.loader;
  loader.source = std::move(source);
  loader.transforms = std::move(recipe.transforms);
  loader.views = std::move(recipe.views);
  loader.mix = std::move(recipe.mix);
  loader.dtype = recipe.options.dtype;
  loader.layout = recipe.options.layout;
  loader.channels = recipe.options.channels;
  loader.exif_orientation = recipe.options.exif_orientation;
  loader.decode = recipe.options.decode;
  loader.limits = recipe.options.limits;
  loader.shuffle = given.shuffle || (recipe.shuffled && !given.no_shuffle);
  options.runtime.threads = static_cast<int>(given.threads);
  options.runtime.reads_in_flight = static_cast<uint32_t>(given.reads);
  options.runtime.reader = ReaderOf(given.reader);
  options.runtime.executor = ExecutorOf(given.executor);
  options.runtime.memory_budget = given.memory_budget;
  options.epochs = static_cast<uint64_t>(given.epochs);
  options.cold = given.cold;
  options.digest = given.digest;
  options.trace = given.trace;
  return options;
}

Result<BenchOptions> OptionsOf(const BenchArguments& given) {
  ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(given.recipe));
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   OpenSamples(given.directory, given.crop_index, given.source_options));
  ASSIGN_OR_RETURN(std::optional<DeviceBench> device, DeviceOf(given));
  BenchOptions options = OptionsOf(given, std::move(recipe), std::move(source));
  if (!given.processor.empty()) {
    ASSIGN_OR_RETURN(options.loader.processor, ProcessorOf(given.processor, given.recipe));
    options.transform = given.processor;
    options.loader.transforms.clear();
    options.loader.dtype = DType::kU8;  // the processor has its own, and limits
    options.loader.limits = {};
  }
  options.device = std::move(device);
  return options;
}

// Returns "epoch 2 of 3" if one is complete.
std::string EpochText(uint64_t complete, uint64_t all) {
  return fmt::format("epoch {} of {}", std::min(complete + 1, all), all);
}

Result<BenchReport> Measure(const BenchArguments& given) {
  ASSIGN_OR_RETURN(const BenchOptions options, OptionsOf(given));
  ProgressBar bar;
  LiveView view;
  Pace pace;
  const InterruptGuard interrupt;
  return RunBench(options, [&](const BenchProgress& progress) {
    const Progress so_far{
        .done = progress.batches, .total = progress.batches_total, .samples = progress.images};
    const std::string epoch = EpochText(progress.epochs, options.epochs);
    if (given.live) {
      pace.Add(Pace::Clock::now(), so_far);
      view.Show(fmt::format("{}  {}, {} samples{}", BarText(so_far.done, so_far.total), epoch,
                            so_far.samples, LeftText(pace)),
                progress.stats);
    } else {
      bar.Show(so_far, epoch);
    }
    return !interrupt.interrupted();
  });
}

Result<ReadReport> MeasureReads(const BenchArguments& given) {
  ASSIGN_OR_RETURN(const BenchOptions options, OptionsOf(given));
  ProgressBar bar;
  const InterruptGuard interrupt;
  return RunReadBench(options, [&](const ReadProgress& progress) {
    bar.Show(
        {.done = progress.samples, .total = progress.samples_total, .samples = progress.samples});
    return !interrupt.interrupted();
  });
}

Result<int> BenchReads(const BenchArguments& given) {
  ASSIGN_OR_RETURN(const ReadReport report, MeasureReads(given));
  TRY(Print(given.json ? ReadReportJson(report) + "\n" : ReadReportText(report, WidthOfPage())));
  return report.interrupted ? InterruptedExitCode() : kExitOk;
}

Result<Ceilings> MeasureParts(const BenchArguments& given) {
  ASSIGN_OR_RETURN(const BenchOptions options, OptionsOf(given));
  ProgressBar bar;
  const InterruptGuard interrupt;
  return MeasureCeilings(options, [&](const char* what) {
    bar.Say(fmt::format("measuring {}", what));
    return !interrupt.interrupted();
  });
}

Result<int> ExplainBench(const BenchArguments& given) {
  ASSIGN_OR_RETURN(const Ceilings ceilings, MeasureParts(given));
  TRY(Print(given.json ? CeilingsJson(ceilings) + "\n" : CeilingsText(ceilings, WidthOfPage())));
  return ceilings.interrupted ? InterruptedExitCode() : kExitOk;
}

std::string TraceText(const TraceSummary& trace) {
  std::string value =
      fmt::format("{}: {} {}", trace.path, trace.events, Plural(trace.events, "event", "events"));
  if (trace.dropped != 0) value += fmt::format("; {} more did not fit into memory", trace.dropped);
  ReportText text(WidthOfPage());
  text.Add("");
  text.Line("trace", value + "; open it at https://ui.perfetto.dev");
  return text.Take();
}

Result<int> TryBenchCommand(const BenchArguments& given) {
  TRY(CheckTogether(given));
  if (given.read_only) return BenchReads(given);
  if (given.explain) return ExplainBench(given);
  if (!given.prometheus.empty()) {  // checked before the run, too
    TRY(CheckCanWrite(given.prometheus));
  }
  ASSIGN_OR_RETURN(BenchReport report, Measure(given));
  std::string text;
  if (given.json) {
    text = BenchReportJson(report) + "\n";
  } else {
    text = BenchReportText(report, WidthOfPage()) + (report.trace ? TraceText(*report.trace) : "");
  }
  TRY(Print(text));
  if (!given.prometheus.empty()) {
    TRY(WriteFile(given.prometheus, PrometheusText(report.loader, "bench")));
  }
  return report.interrupted ? InterruptedExitCode() : kExitOk;
}

Result<int> RunBenchCommand(const BenchArguments& given) {
  Result<int> code = TryBenchCommand(given);
  if (code.ok()) return code;
  return Fail(code.error(), ExitCodeOf(code.error(), {given.trace, given.prometheus}), given.json);
}

void AddDataOptions(CLI::App& command, BenchArguments& given) {
  command.add_option("DIR", given.directory, kDirHelp)->type_name("")->required();
  AddRecipeOptions(command, given.recipe);
  CLI::Option* processor =
      command
          .add_option("--processor", given.processor,
                      "the configuration of an image processor of Hugging Face, a file or its "
                      "folder, instead of transforms; makes float32 unless --dtype is given")
          ->type_name("FILE")
          ->check([](const std::string& file) { return file.empty() ? "FILE is empty" : ""; });
  for (const char* name :
       {"--transform", "--size", "--interpolation", "--no-antialias", "--normalize", "--recipe"}) {
    processor->excludes(command.get_option(name));
  }
  command
      .add_option("--crop-index", given.crop_index,
                  "auto: DIR's own index if it has one (see `stoker index`); off; or the path of "
                  "an index [" +
                      given.crop_index + "]")
      ->type_name("auto|off|FILE");
  AddSourceOptions(command, given.source_options);
  AddNumber(command, "--epochs", given.epochs, {1, 1'000'000'000},
            "number of passes over the samples");
  CLI::Option* shuffle =
      command.add_flag("--shuffle", given.shuffle, "a new order each epoch, the default for train");
  command.add_flag("--no-shuffle", given.no_shuffle, "the folder's order, the default for eval")
      ->excludes(shuffle);
}

void AddMachineOptions(CLI::App& command, BenchArguments& given) {
  AddNumber(command, "--threads", given.threads, {0, 1024},
            "decode workers; 0 means tuned, at most the cores allotted to this process");
  AddNumber(command, "--reads", given.reads, {0, 1024},
            "reads in flight; 0 means tuned, at most 64");
  AddChoice(command, "--reader", given.reader, {"auto", "uring", "pread"},
            "auto: the faster one, measured at start-up");
  AddBytes(command, "--memory-budget", given.memory_budget,
           "limit on working memory: 500000000, 64MiB, 2GB, "
           "…; 0 means a quarter of what is available, at most 4 GiB");
  command.add_flag("--cold", given.cold,
                   "drop each file from the page cache before each "
                   "epoch (posix_fadvise: needs no privilege; names and inodes stay cached)");
  command.add_flag("--read-only", given.read_only,
                   "read the files and throw their bytes away, to see "
                   "what storage and reader give without decoding");
  command.add_flag("--json", given.json,
                   "print one JSON object on stdout and nothing else; {\"error\": …} on failure");
  command
      .add_option("--prometheus", given.prometheus,
                  "write the loader's counters to that file, as text that Prometheus reads")
      ->type_name("FILE");
}

void AddDeviceOptions(CLI::App& command, BenchArguments& given) {
  constexpr const char* kGroup = "To a device";
  command
      .add_option("--device", given.device,
                  "copy batches to a device ahead of their use: "
                  "cuda:0, cuda:1, …; host simulates one; see docs/gpu.md")
      ->type_name("NAME")
      ->group(kGroup);
  AddDeviceOption(command, "buffers", given.to_device)->group(kGroup);
  CLI::Option* decodes =
      command
          .add_flag("--decode-on-device", given.to_device.decodes,
                    "the device decodes packed JPEGs, and baseline ones with a crop index; workers "
                    "decode what it cannot")
          ->group(kGroup);
  AddDeviceOption(command, "crop_bytes", given.to_device)->needs(decodes)->group(kGroup);
  AddReal(command, "--step-ms", given.step_ms, {0, 10'000},
          "keep the device busy for this many milliseconds per batch, as a training step would")
      ->type_name("MS")
      ->group(kGroup);
}

// Excludes the options that set how long bench runs, or ask for more than its report.
void AddExplainOption(CLI::App& command, BenchArguments& given) {
  CLI::Option* explain =
      command.add_flag("--explain", given.explain,
                       "measure for a few seconds what storage, decoding, memory and the copy to a "
                       "device could do alone, what all together reach, and what to change first");
  for (const char* name : {"--epochs", "--read-only", "--cache", "--digest", "--live", "--trace",
                           "--prometheus", "--batch-tokens", "--processor"}) {
    explain->excludes(command.get_option(name));
  }
}

void AddWatchOptions(CLI::App& command, BenchArguments& given) {
  constexpr const char* kGroup = "Monitoring";
  command
      .add_flag("--live", given.live,
                "show what the loader does now: a panel on a terminal, otherwise a line every 5 s")
      ->group(kGroup);
  command
      .add_option("--trace", given.trace,
                  "record what every thread does in FILE, for https://ui.perfetto.dev")
      ->type_name("FILE")
      ->group(kGroup);
}

void AddTestOptions(CLI::App& command, BenchArguments& given) {
  constexpr const char* kGroup = "For testing";
  command
      .add_flag("--digest", given.digest,
                "hash ids, labels and pixels in order: equal for "
                "any number of threads, depth, reader, executor")
      ->group(kGroup);
  AddChoice(command, "--executor", given.executor, {"tbb", "threads"},
            "scheduler that runs the workers")
      ->group(kGroup);
}

}  // namespace

void AddBench(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "Stream samples as augmented batches, and measure");
  AddDataOptions(*command, *given);
  given->loader.batch_size = 64;
  AddLoaderOptions(*command, given->loader);
  AddMachineOptions(*command, *given);
  AddDeviceOptions(*command, *given);
  AddWatchOptions(*command, *given);
  AddTestOptions(*command, *given);
  AddExplainOption(*command, *given);
  command->footer(kBenchFooter);
  command->callback([command, given, &chosen] {
    const bool of_rows = !command->get_option("--batch-size")->empty();
    if (given->loader.batch_tokens != 0 && !of_rows) given->loader.batch_size = 0;
    chosen = [given] { return RunBenchCommand(*given); };
  });
}

}  // namespace stoker::cli
