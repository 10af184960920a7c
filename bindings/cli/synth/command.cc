#include "bindings/cli/synth/synth.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/watched_work.h"
#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

struct SynthArguments {
  std::string directory;
  int64_t count = 0;
  int64_t classes = 0;
  uint64_t seed = 0;
  int64_t threads = 0;
  bool overwrite = false;
  bool json = false;
};

constexpr const char* kSynthFooter =
    R"(Writes DIR/class07/photo_000027.jpg and so on: photograph-like JPEGs whose sizes, chroma formats and
bits per pixel are distributed like ImageNet's, so that decoding them costs about the same. The same
options write the same bytes. A second run with another --count adds or removes samples; a folder
that stoker did not make is left alone.

Examples:
  stoker synth photos --count 2000
  stoker synth photos --count 50000 --classes 100 --seed 7

Exit codes: 0 done; 2 a bad option, or a folder that stoker did not make; 3 the system (disk full,
permission, I/O); 130 interrupted. Complete samples stay; a second run continues from there.)";

// This command reads no data: an error about a file is the system's, unless the file is DIR, an
// option.
int ExitCodeOfWriting(const Error& error, const std::string& directory) {
  const bool of_option = error.file.empty() || error.file == directory;
  if (error.code == Code::kInvalidArgument && of_option) return kExitUsage;
  return error.code == Code::kCancelled ? InterruptedExitCode() : kExitSystem;
}

Result<SynthSummary> Write(const SynthArguments& given) {
  const SynthOptions options{.count = static_cast<uint64_t>(given.count),
                             .classes = static_cast<int>(given.classes),
                             .seed = given.seed,
                             .threads = static_cast<int>(given.threads),
                             .overwrite = given.overwrite};
  WatchedWork work;
  return WritePhotographs(given.directory, options, work.progress());
}

std::string Text(const std::string& directory, const SynthSummary& summary) {
  ReportText text(WidthOfPage());
  text.Add("", fmt::format("{}: {} in {} {}, {} ({} new, {} kept)", directory,
                           SamplesText(summary.written + summary.kept), summary.classes,
                           Plural(summary.classes, "class", "classes"), SizeText(summary.bytes),
                           summary.written, summary.kept));
  return text.Take();
}

std::string Json(const std::string& directory, const SynthSummary& summary) {
  const nlohmann::ordered_json json = {
      {"directory", directory},     {"images", summary.written + summary.kept},
      {"written", summary.written}, {"kept", summary.kept},
      {"bytes", summary.bytes},     {"classes", summary.classes}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> RunSynthCommand(const SynthArguments& given) {
  const Result<SynthSummary> summary = Write(given);
  if (!summary.ok()) {
    const int code = ExitCodeOfWriting(summary.error(), given.directory);
    return Fail(summary.error(), code, given.json);
  }
  TRY(Print(given.json ? Json(given.directory, *summary) : Text(given.directory, *summary)));
  return kExitOk;
}

}  // namespace

void AddSynth(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<SynthArguments>();
  CLI::App* command = app.add_subcommand("synth", "Write photograph-like JPEGs to try stoker with");
  command->add_option("DIR", given->directory, "folder to make, or one that `stoker synth` made")
      ->type_name("")
      ->required();
  AddNumber(*command, "--count", given->count, {1, 1'000'000'000}, "number of samples")->required();
  AddNumber(*command, "--classes", given->classes, {0, 100'000},
            "number of class folders; 0: 20, or --count where that is smaller");
  AddSeed(*command, "--seed", given->seed, "seed of everything drawn");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "drawing threads; 0 means the cores allotted");
  command->add_flag("--overwrite", given->overwrite,
                    "replace what another seed or number of classes "
                    "made; write next to files that are not stoker's");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kSynthFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunSynthCommand(*given); }; });
}

}  // namespace stoker::cli
