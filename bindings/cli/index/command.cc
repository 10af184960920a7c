#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/index/index_dataset.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/watched_work.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

struct IndexArguments {
  std::string directory;
  std::optional<std::string> out;
  int64_t list_skipped = 100;
  int64_t threads = 0;
  bool json = false;
};

constexpr const char* kIndexFooter =
    R"(The index has four parts: the list of DIR, so that opening it does not mean listing it, which takes
minutes for millions of files on a network disk; each image's size in bytes, width, height,
orientation and format; entry points, positions in a JPEG where decoding can start: before every
fourth MCU (8 or 16 pixels wide, and 8 or 16 high) of each row of MCUs; and checksums of the JPEGs, for
devices that decode them. With entry points a random crop is decoded without most of what lies above
it and to its left, for about a quarter less CPU. The index takes some 4 % of the files' size.
The files are not changed; list and pixels are the same with and without it.

Without --out the index is written to DIR, and loaders of DIR use it automatically. With --out, give
its path when reading: --crop-index FILE, in Python crop_index=.

Files may be added, removed, changed or moved. Once a folder has changed (its time says so), DIR is
listed as without an index, with a warning, until `stoker index` is run again. A file that is new,
has changed or has moved is decoded without the index. So are files without entry points: progressive
ones, damaged ones, other formats.

Examples:
  stoker index photos
  stoker index /readonly/photos --out photos.index
  stoker bench /readonly/photos --crop-index photos.index

Exit codes: 0 done; 1 the folder is missing or has no image; 2 a bad option; 3 the system (disk full,
permission, memory, I/O, --out names a file that is not an index); 130 interrupted. An existing index
stays until the new one is complete.)";

Result<IndexReport> Make(const IndexArguments& given) {
  const IndexOptions options{.out = given.out.value_or(""),
                             .threads = static_cast<int>(given.threads),
                             .list_skipped = static_cast<size_t>(given.list_skipped)};
  TRY(CheckIsFolder("index", given.directory));
  WatchedWork work;
  return IndexDataset(given.directory, options, work.progress());
}

double Share(const IndexReport& report) {
  return report.photograph_bytes == 0 ? 0
                                      : static_cast<double>(report.index_bytes) /
                                            static_cast<double>(report.photograph_bytes);
}

std::string Text(const IndexReport& report) {
  ReportText text(WidthOfPage());
  text.Add("",
           fmt::format("{}: {} of {} indexed in {:.1f} s ({:.0f} s for a million)", report.source,
                       report.indexed, SamplesText(report.samples), report.seconds,
                       report.seconds * 1e6 / static_cast<double>(report.samples)));
  text.Add("  ", fmt::format("{}: {}, {:.2f} % of the samples' size; width and height of {}",
                             report.out, SizeText(report.index_bytes), 100 * Share(report),
                             SamplesText(report.sized)));
  for (const auto& [reason, count] : report.skipped) {
    text.Add("  ", fmt::format("not indexed: {} ({})", count, reason));
  }
  for (const IndexReport::Skipped& skipped : report.skipped_files) {
    text.Add("    ", fmt::format("{}: {}", skipped.file, skipped.reason));
  }
  return text.Take();
}

std::string Json(const IndexReport& report) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const IndexReport::Skipped& skipped : report.skipped_files) {
    files.push_back({{"file", skipped.file}, {"reason", skipped.reason}});
  }
  const nlohmann::ordered_json json = {{"source", report.source},
                                       {"index", report.out},
                                       {"samples", report.samples},
                                       {"sized", report.sized},
                                       {"indexed", report.indexed},
                                       {"photograph_bytes", report.photograph_bytes},
                                       {"index_bytes", report.index_bytes},
                                       {"share", Share(report)},
                                       {"seconds", report.seconds},
                                       {"not_indexed", report.skipped},
                                       {"not_indexed_files", std::move(files)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> RunIndexCommand(const IndexArguments& given) {
  if (given.out && given.out->empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "--out is empty",
                 .advice = "Give the file to write, or leave --out out"};
  }
  const Result<IndexReport> report = Make(given);
  if (!report.ok()) {
    const std::string out = given.out.value_or(IndexFileOf(given.directory));
    return Fail(report.error(), ExitCodeOf(report.error(), {out}), given.json);
  }
  TRY(Print(given.json ? Json(*report) : Text(*report)));
  return kExitOk;
}

}  // namespace

void AddIndex(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<IndexArguments>();
  CLI::App* command = app.add_subcommand(
      "index", "Record a folder's list and entry points, to open and crop it faster");
  command->add_option("DIR", given->directory, "folder of images, with a subfolder for each class")
      ->type_name("")
      ->required();
  command->add_option("--out", given->out, "file to write; without it DIR/.stoker-index")
      ->type_name("FILE");
  AddNumber(*command, "--list-skipped", given->list_skipped, {0, 1'000'000'000},
            "number of files without entry points to name");
  AddNumber(*command, "--threads", given->threads, {0, 256},
            "reading threads; 0 means the cores allotted");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kIndexFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunIndexCommand(*given); }; });
}

}  // namespace stoker::cli
