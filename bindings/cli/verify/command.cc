#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/arguments.h"
#include "bindings/cli/command.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/verify/verify.h"
#include "core/try.h"

namespace stoker::cli {

namespace {

struct VerifyArguments {
  std::string samples;
  std::vector<std::string> source_options;
  std::optional<std::string> good;
  LimitArguments limits;
  int64_t list_bad = 100;
  int64_t threads = 0;
  bool json = false;
};

constexpr const char* kVerifyFooter =
    R"(Reads every sample and decodes all of its pixels, which a loader's crops do not: a sample that is
good here is refused by no loader with the same limits. Names the samples that are bad, and why:
  vanished         the file is not there any more
  unreadable       the system refuses to read it
  truncated        bytes are missing at its end
  undecodable      its bytes are damaged, or no image
  over the limits  it has more pixels or scans than allowed
  unsupported      a format, or a kind of one, that stoker does not decode

With --good the others are listed in a manifest, which stoker reads in place of the folder.

Examples:
  stoker verify photos && echo every photograph is sound
  stoker verify photos --good good.jsonl; stoker bench good.jsonl
  stoker verify 'shards/{000..127}.tar' --json | jq -r '.bad[] | .path, .cause'

Exit codes: 0 no sample is bad; 1 a sample is, or there are none; 2 a bad option; 3 the system
(permission, memory, I/O, --good cannot be written); 130 interrupted.)";

Result<VerifyReport> CheckAll(const SampleSource& source, const VerifyArguments& given) {
  VerifyOptions options{.threads = static_cast<int>(given.threads)};
  SetLimits(given.limits, options.limits);
  ProgressBar bar;
  const InterruptGuard interrupt;
  return Verify(source, options, [&](uint64_t done, uint64_t total) {
    if (bar.Due()) bar.Show(done, total, fmt::format("{} of {} samples", done, total));
    return !interrupt.interrupted();
  });
}

Result<int> RunVerifyCommand(const VerifyArguments& given) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source,
                   OpenSamples(given.samples, "off", given.source_options));
  ASSIGN_OR_RETURN(VerifyReport report, CheckAll(*source, given));
  for (BadSample& sample : report.bad) {
    sample.error.advice = AsOptions(std::move(sample.error.advice));
  }
  TRY(Print(given.json ? VerifyJson(report)
                       : VerifyText(report, static_cast<size_t>(given.list_bad))));
  if (given.good) {
    if (Status s = WriteGoodSamples(*source, report, *given.good); !s.ok()) {
      return Fail(s.error(), ExitCodeOf(s.error(), {*given.good}), false);
    }
  }
  return report.bad.empty() ? kExitOk : kExitData;
}

}  // namespace

void AddVerify(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Decode every sample completely, and name those that are bad");
  command->add_option("DIR", given->samples, kDirHelp)->type_name("")->required();
  command
      ->add_option("--good", given->good, "write the good samples to this manifest, a .jsonl file")
      ->type_name("FILE");
  AddSourceOptions(*command, given->source_options);
  AddLimits(*command, given->limits);
  AddNumber(*command, "--list-bad", given->list_bad, {0, 1'000'000'000},
            "number of bad samples to name, without --json");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "decoding threads; 0: the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kVerifyFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunVerifyCommand(*given); }; });
}

}  // namespace stoker::cli
