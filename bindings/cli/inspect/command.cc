#include "bindings/cli/inspect/inspect.h"
#include "core/try.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "bindings/cli/arguments.h"
#include "bindings/cli/command.h"
#include "bindings/cli/inspect/inspect_report.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/split_folders.h"
#include "io/sources/image_folder.h"

namespace stoker::cli {

namespace {

struct InspectArguments {
  std::string directory;
  int64_t list_broken = 100;
  int64_t threads = 0;
  bool json = false;
};

constexpr const char* kInspectFooter =
    R"(Reads the header of every file, and reports how many there are, their classes, formats, chroma
formats and sizes, and which are broken. A file is broken if it cannot be opened, is empty or not an
image, or is a JPEG, PNG or WebP whose header cannot be read. Files that are truncated or damaged
after the header are found by `stoker verify`, which decodes each one whole.

Examples:
  stoker inspect photos
  stoker inspect photos --json | jq -r '.broken_files[].file'

Exit codes: 0 no file is broken; 1 one is, or the folder is missing or has no image; 2 a bad option;
3 the system (permission, memory, I/O); 130 interrupted.)";

Result<DatasetReport> Look(const InspectArguments& given) {
  const int threads = static_cast<int>(given.threads);
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   ImageFolder(given.directory, {.threads = threads}));
  WarnOfSplits(given.directory, source->classes());
  InspectOptions options{.threads = threads, .list_broken = static_cast<size_t>(given.list_broken)};
  ProgressBar bar;
  const InterruptGuard interrupt;
  return Inspect(*source, options, [&](uint64_t done, uint64_t total) {
    if (bar.Due()) bar.Show(done, total, fmt::format("{} of {} files", done, total));
    return !interrupt.interrupted();
  });
}

Result<int> RunInspectCommand(const InspectArguments& given) {
  ASSIGN_OR_RETURN(DatasetReport report, Look(given));
  for (Error& error : report.broken_files) error.advice = AsOptions(std::move(error.advice));
  std::string text = given.json ? InspectJson(report) : InspectText(report);
  if (!text.ends_with('\n')) text += '\n';
  TRY(Print(text));
  return report.broken == 0 ? kExitOk : kExitData;
}

}  // namespace

void AddInspect(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Describe a folder of photographs: counts, sizes, formats, broken files");
  command
      ->add_option("DIR", given->directory,
                   "folder of photographs, with a subfolder for each class")
      ->type_name("")
      ->required();
  AddNumber(*command, "--list-broken", given->list_broken, {0, 1'000'000'000},
            "number of broken files to name");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "reading threads; 0: the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kInspectFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunInspectCommand(*given); }; });
}

}  // namespace stoker::cli
