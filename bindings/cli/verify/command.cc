#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/verify/good_samples.h"
#include "bindings/cli/verify/verify.h"
#include "bindings/cli/watched_work.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

struct VerifyArguments {
  std::string samples;
  std::vector<std::string> source_options;
  std::optional<std::string> good;
  LimitArguments limits;
  bool exif_orientation = true;
  int64_t list_bad = 100;
  int64_t threads = 0;
  bool json = false;
};

constexpr const char* kVerifyFooter =
    R"(Reads every sample and decodes all of its pixels, which a loader's crops do not: damage that only
some crops would meet is found. Names the samples that are bad, and why:
  vanished     the file is not there any more
  unreadable   the system refuses to read it
  truncated    bytes are missing at its end
  undecodable  its bytes are damaged, or no image; or its size is not the one
               of its annotations or its mask
  over limits  it has more pixels or scans than allowed, or needs too much
               memory
  unsupported  a format, or a kind of one, that stoker does not decode
  forbidden    a server answers 403: it may not be read, or does not exist and
               may not be listed

With --good the others are listed in a manifest, which stoker reads instead of the folder. Ctrl-C,
or a lack of memory or open files, prints what was found until then, and writes no list.

Examples:
  stoker verify photos && echo every sample is sound
  stoker verify photos --good good.jsonl; stoker bench good.jsonl
  stoker verify 'shards/{000..127}.tar' --json | jq -r '.bad[] | .path, .cause'

Exit codes: 0 no sample is bad; 1 a sample is, or there are none; 2 a bad option; 3 the system (no
memory, too many open files, --good cannot be written); 130 interrupted.)";

// Checks that --good can be written at the end of a long run.
Status CheckGood(const VerifyArguments& given, const SampleSource& source) {
  if (!given.good) return {};
  std::error_code failed;  // of a pattern, or a list that does not exist yet
  if (std::filesystem::equivalent(given.samples, *given.good, failed)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "--good is the manifest that is read",
                 .advice = "Give the list another name"};
  }
  return CheckGoodSamples(source, *given.good);
}

Result<VerifyReport> CheckAll(const SampleSource& source, const VerifyArguments& given) {
  VerifyOptions options{.threads = static_cast<int>(given.threads),
                        .exif_orientation = given.exif_orientation};
  SetLimits(given.limits, options.limits);
  WatchedWork work;
  return Verify(source, options, work.progress());
}

Status WriteGood(const SampleSource& source, const VerifyReport& report, const std::string& path) {
  if (report.interrupted) {
    Warn(path + " is not written, because not all samples were checked");
    return {};
  }
  ASSIGN_OR_RETURN(const GoodSamples good, WriteGoodSamples(source, report.bad, path));
  if (good.samples == 0) Warn(path + " is not written, because no sample is good");
  for (const std::string& name : good.lost_classes) {
    Warn(
        fmt::format("class '{}' has no good sample: in {} it is missing, and classes after it get "
                    "other numbers",
                    name, path));
  }
  return {};
}

Status PrintReport(const SampleSource& source, const VerifyReport& report,
                   const VerifyArguments& given) {
  if (given.json) return WriteVerifyJson(source, report, &Print);
  return Print(VerifyText(source, report, static_cast<size_t>(given.list_bad), WidthOfPage()));
}

// With --json, the report on standard output has the error, too.
int FailAfterReport(const Error& error) { return Fail(error, ExitCodeOf(error), /*json=*/false); }

Result<int> TryVerifyCommand(const VerifyArguments& given) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source,
                   OpenSamples(given.samples, "off", given.source_options));
  TRY(CheckGood(given, *source));
  ASSIGN_OR_RETURN(const VerifyReport report, CheckAll(*source, given));
  Status listed;
  if (given.good) listed = WriteGood(*source, report, *given.good);
  TRY(PrintReport(*source, report, given));
  if (report.error) return FailAfterReport(*report.error);
  if (!listed.ok()) return Fail(listed.error(), kExitSystem, false);
  if (report.interrupted) return InterruptedExitCode();
  return report.bad.empty() && report.checked > 0 ? kExitOk : kExitData;
}

Result<int> RunVerifyCommand(const VerifyArguments& given) {
  Result<int> code = TryVerifyCommand(given);
  if (code.ok()) return code;
  return Fail(code.error(), ExitCodeOf(code.error(), {given.good.value_or("")}), given.json);
}

}  // namespace

void AddVerify(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Decode every sample completely, and name those that are bad");
  command->add_option("DIR", given->samples, kDirHelp)->type_name("")->required();
  command
      ->add_option("--good", given->good,
                   "list the good samples in this manifest, a .jsonl or .ndjson file")
      ->type_name("FILE");
  AddSourceOptions(*command, given->source_options);
  AddLimits(*command, given->limits);
  command
      ->add_option(
          "--exif-orientation", given->exif_orientation,
          "true, the default: images are compared with their masks and annotations after they are "
          "turned as their EXIF tag says; false: as they are stored")
      ->type_name("true|false");
  AddNumber(*command, "--list-bad", given->list_bad, {0, 1'000'000'000},
            "number of bad samples to name, without --json");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "decoding threads; 0 means the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kVerifyFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunVerifyCommand(*given); }; });
}

}  // namespace stoker::cli
