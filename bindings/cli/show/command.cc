#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/command/recipe.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/show/show.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/sheet/sheet.h"
#include "core/result/try.h"

namespace stoker::cli {

namespace {

struct ShowArguments {
  std::string directory;
  std::string out;
  std::string masks;
  std::string suffix;
  std::vector<std::string> source_options;
  RecipeArguments recipe;
  int64_t count = 32;
  int64_t columns = 8;
  uint64_t seed = 0;
  bool shuffle = false;
  bool no_shuffle = false;
  bool json = false;
};

constexpr const char* kShowFooter =
    R"(Makes one batch as a loader does, and writes it as a PNG file: a contact sheet, to see what the
transforms do before training with them. Labels are printed line by line, as in the sheet. Images
that --normalize or a recipe normalizes are drawn in the colours that they had before.

With --masks, samples are images and masks, which lie in two folders: the mask of DIR/a/7.jpg is
MASKS/a/7.png, or with --suffix _mask MASKS/a/7_mask.png. Each mask is drawn over its image in the
colours of PASCAL VOC: 0, the background, has none; 1 is dark red, 2 dark green, 255 (ignored)
nearly white. --source-option fill=255 is the value of pixels outside the image.

Examples:
  stoker show photos --out sheet.png
  stoker show photos --out sheet.png --transform eval --count 8 --columns 4
  stoker show photos --out sheet.png --recipe recipe.json --seed 1
  stoker show street/images --masks street/masks --out sheet.png

Exit codes: 0 done; 1 the data is missing or bad; 2 a bad option; 3 the system (permission, disk,
memory, I/O, --out names a file that is not a contact sheet); 130 interrupted. An existing sheet
is replaced.)";

Result<std::shared_ptr<const SampleSource>> SourceOf(const ShowArguments& given) {
  std::vector<std::string> options = given.source_options;
  if (!given.masks.empty()) options.push_back("masks=" + given.masks);
  if (!given.suffix.empty()) options.push_back("suffix=" + given.suffix);
  return OpenSamples(given.directory, "auto", options);
}

Result<ShowReport> Make(const ShowArguments& given) {
  ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(given.recipe));
  ShowOptions options{.loader = {}, .out = given.out, .columns = given.columns};
  ASSIGN_OR_RETURN(options.loader.source, SourceOf(given));
  options.loader.batch_size = static_cast<uint32_t>(given.count);
  options.loader.seed = given.seed;
  options.loader.shuffle = given.shuffle || (recipe.shuffled && !given.no_shuffle);
  const InterruptGuard interrupt;
  return Show(std::move(options), std::move(recipe), [&] { return interrupt.interrupted(); });
}

std::string Text(const ShowReport& report) {
  ReportText text(WidthOfPage());
  const auto columns = static_cast<size_t>(report.columns);
  for (size_t first = 0; first < report.labels.size(); first += columns) {
    const auto begin = report.labels.begin() + static_cast<ptrdiff_t>(first);
    const size_t count = std::min(columns, report.labels.size() - first);
    text.Add("", fmt::format("{}", fmt::join(begin, begin + static_cast<ptrdiff_t>(count), ", ")));
  }
  text.Add("", fmt::format("{}: {}, {} to a line, {} × {} pixels, {}", report.out,
                           SamplesText(report.samples), report.columns, report.size.width,
                           report.size.height, SizeText(report.bytes)));
  return text.Take();
}

std::string Json(const ShowReport& report) {
  const nlohmann::ordered_json json = {{"source", report.source},      {"out", report.out},
                                       {"samples", report.samples},    {"columns", report.columns},
                                       {"labels", report.labels},      {"width", report.size.width},
                                       {"height", report.size.height}, {"bytes", report.bytes}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<int> RunShowCommand(const ShowArguments& given) {
  if (given.out.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "--out is empty",
                 .advice = "Give the file to write"};
  }
  const Result<ShowReport> report = Make(given);
  if (!report.ok()) {
    return Fail(report.error(), ExitCodeOf(report.error(), {given.out}), given.json);
  }
  TRY(Print(given.json ? Json(*report) : Text(*report)));
  return kExitOk;
}

void AddDataOptions(CLI::App& command, ShowArguments& given) {
  command.add_option("DIR", given.directory, kDirHelp)->type_name("")->required();
  command.add_option("--out", given.out, "file to write, a PNG")->type_name("FILE")->required();
  CLI::Option* masks =
      command
          .add_option("--masks", given.masks,
                      "folder of the masks of DIR's images: PNG files of one channel")
          ->type_name("DIR")
          ->check([](const std::string& folder) { return folder.empty() ? "DIR is empty" : ""; });
  command.add_option("--suffix", given.suffix, "end of the masks' names, before .png")
      ->type_name("TEXT")
      ->needs(masks);
  AddSourceOptions(command, given.source_options);
  AddRecipeOptions(command, given.recipe);
}

}  // namespace

void AddShow(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<ShowArguments>();
  CLI::App* command =
      app.add_subcommand("show", "Draw a batch as a PNG file, to see what transforms do");
  AddDataOptions(*command, *given);
  AddNumber(*command, "--count", given->count, {1, kMaxSheetRows}, "number of samples");
  AddNumber(*command, "--columns", given->columns, {1, kMaxSheetRows},
            "number of samples next to each other");
  AddSeed(*command, "--seed", given->seed, "seed of the order and of every random transform");
  CLI::Option* shuffle = command->add_flag("--shuffle", given->shuffle,
                                           "samples in random order, the default for train");
  command
      ->add_flag("--no-shuffle", given->no_shuffle,
                 "the folder's first samples, the default for eval")
      ->excludes(shuffle);
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kShowFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunShowCommand(*given); }; });
}

}  // namespace stoker::cli
