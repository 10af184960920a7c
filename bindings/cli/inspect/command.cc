#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/inspect/inspect.h"
#include "bindings/cli/inspect/inspect_report.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/pack/restore_file.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/watched_work.h"
#include "core/result/try.h"
#include "io/folder/image_folder.h"
#include "io/packed/open_packed.h"

namespace stoker::cli {

namespace {

struct InspectArguments {
  std::string directory;
  int64_t list_broken = 100;
  int64_t threads = 0;
  int64_t pack = 64;
  bool json = false;
};

constexpr const char* kInspectFooter =
    R"(Reads the header of every file, and reports how many there are, their classes, formats, chroma
formats and sizes, and which are broken. A file is broken if it cannot be opened, is empty or not an
image, or is of a format that stoker decodes and its header cannot be read. Files that are truncated
or damaged after the header are found by `stoker verify`, which decodes each one whole.

Packs a sample of the files in memory, and reports how much CPU time random crops would take if the
folder were packed, and how large it would be.

Examples:
  stoker inspect photos
  stoker inspect photos --json | jq -r '.broken_files[].file'

Exit codes: 0 no file is broken; 1 one is, or the folder is missing or has no image; 2 a bad option;
3 the system (permission, memory, I/O); 130 interrupted.)";

// Looks at the files that a packed set was made of.
Result<DatasetReport> InspectSet(const std::string& folder, const InspectOptions& options,
                                 const InspectProgress& progress) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const PackedIndex> index, OpenPackedIndex(folder));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SampleSource> source, Packed(folder, index));
  WarnOfPackedSplits(folder, source->classes());
  return Inspect(*source, options, progress, [&]() -> InspectSample {
    auto restorer = std::make_shared<FileRestorer>(*source, *index);
    return [&, restorer](uint64_t id, std::string& path) -> FileFacts {
      source->NameOf(id, path);
      Result<std::span<const uint8_t>> file = restorer->Restore(id);
      FileFacts facts;
      if (!file.ok()) {
        facts.error = std::move(file).error();
        return facts;
      }
      facts = FileInspector::InspectBytes(*file);
      if (facts.error) facts.error = std::move(*facts.error).WithFile(path);
      return facts;
    };
  });
}

Result<DatasetReport> RunInspect(const InspectArguments& given) {
  const int threads = static_cast<int>(given.threads);
  const InspectOptions options{.threads = threads,
                               .list_broken = static_cast<size_t>(given.list_broken)};
  WatchedWork work;
  const InspectProgress progress = work.progress();
  if (IsPackedSet(given.directory)) return InspectSet(given.directory, options, progress);
  TRY(CheckIsFolder("inspect", given.directory));
  ASSIGN_OR_RETURN(std::shared_ptr<const SampleSource> source,
                   ImageFolder(given.directory, {.threads = threads, .allow_empty = true}));
  WarnOfFolder(given.directory, *source);
  ASSIGN_OR_RETURN(DatasetReport report, Inspect(*source, options, progress));
  ASSIGN_OR_RETURN(report.packing,
                   MeasurePacking(*source, static_cast<uint64_t>(given.pack),
                                  [&progress, all = source->size()](uint64_t done, uint64_t total) {
                                    return progress(all + done, all + total);
                                  }));
  return report;
}

Result<int> RunInspectCommand(const InspectArguments& given) {
  ASSIGN_OR_RETURN(const DatasetReport report, RunInspect(given));
  std::string text = given.json ? InspectJson(report) : InspectText(report, WidthOfPage());
  if (!text.ends_with('\n')) text += '\n';
  TRY(Print(text));
  return report.broken == 0 ? kExitOk : kExitData;
}

}  // namespace

void AddInspect(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Describe a folder of images: counts, sizes, formats, broken files");
  command
      ->add_option("DIR", given->directory,
                   "folder of images, with a subfolder for each class, or what `stoker pack` "
                   "made of it")
      ->type_name("")
      ->required();
  AddNumber(*command, "--list-broken", given->list_broken, {0, 1'000'000'000},
            "number of broken files to name");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "reading threads; 0 means the cores allotted");
  AddNumber(*command, "--pack", given->pack, {0, 10'000},
            "number of files to pack in memory, to measure what packing the folder would gain");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kInspectFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunInspectCommand(*given); }; });
}

}  // namespace stoker::cli
