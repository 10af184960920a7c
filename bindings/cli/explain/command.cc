#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/command/arguments.h"
#include "bindings/cli/command/recipe.h"
#include "bindings/cli/explain/plan_cost.h"
#include "bindings/cli/interrupt.h"
#include "bindings/cli/open_samples.h"
#include "bindings/cli/outcome.h"
#include "bindings/cli/text/terminal.h"
#include "bindings/cli/watched_work.h"
#include "core/result/try.h"
#include "engine/production/producer_parts.h"

namespace stoker::cli {

namespace {

struct ExplainArguments {
  std::string directory;
  std::vector<std::string> source_options;
  RecipeArguments recipe;
  int64_t images = 500;
  int64_t rounds = 3;
  uint64_t seed = 0;
  bool json = false;
};

constexpr const char* kExplainFooter =
    R"(Shows where each transform runs. Fused: while decoding and resizing, without a pass over the image of
its own. Tile: on the resized image, while it is in the worker's cache. Row: on the finished row of
the batch.

With DIR it also measures: some of its samples are read into memory, and one thread applies the
transforms to them as a worker does. Fused transforms count as decode and resize; for each other one
its own time is shown, the mean over all samples, including those that it leaves unchanged. Images
with masks are not measured.

Examples:
  stoker explain --transform eval
  stoker explain photos --recipe recipe.json

Exit codes: 0 done; 1 the data is missing or bad; 2 a bad option; 3 the system (permission, memory,
I/O); 130 interrupted.)";

// Returns nullopt, after a warning, if samples do not have one image each, or rows have several
// samples.
Result<std::optional<PlanCost>> Measure(const ExplainArguments& given, const SampleSource& source,
                                        const Plan& plan) {
  if (source.pieces() > 1 || source.varies()) {
    Warn("the cost is not measured, because the samples of " + source.Describe() +
         " do not have one image each");
    return std::optional<PlanCost>();
  }
  if (plan.parts() > 1) {
    Warn("the cost is not measured, because each row is made of several samples");
    return std::optional<PlanCost>();
  }
  WatchedWork work;
  Result<PlanCost> cost = MeasurePlan(source, plan,
                                      {.images = static_cast<uint64_t>(given.images),
                                       .rounds = static_cast<int>(given.rounds),
                                       .seed = given.seed},
                                      work.progress());
  if (cost.ok() && cost->images == 0) {
    return Error{Code::kDataLoss, "no sample could be read; the first: " + cost->first_refusal};
  }
  if (!cost.ok()) return std::move(cost).error();
  return std::optional(*std::move(cost));
}

Result<int> RunExplainCommand(const ExplainArguments& given) {
  ASSIGN_OR_RETURN(Recipe recipe, RecipeOf(given.recipe));
  if (!recipe.views.empty()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = given.recipe.file + " has several views, which explain does not measure",
                 .advice = "Put the transforms of one view into a recipe of their own"};
  }
  std::shared_ptr<const SampleSource> source;
  if (!given.directory.empty()) {
    ASSIGN_OR_RETURN(source, OpenSamples(given.directory, "auto", given.source_options));
    recipe.options.objects = PlannedObjects(*source);
  }
  ASSIGN_OR_RETURN(Plan plan, Plan::Compile(std::move(recipe.transforms), recipe.options));
  std::optional<PlanCost> cost;
  if (source != nullptr) {
    ASSIGN_OR_RETURN(cost, Measure(given, *source, plan));
  }
  const PlanCost* const known = cost ? &*cost : nullptr;
  const BatchMix* const mix = recipe.mix ? &*recipe.mix : nullptr;
  TRY(Print(given.json ? PlanJson(plan, mix, known) + "\n"
                       : PlanText(plan, mix, known, WidthOfPage())));
  return kExitOk;
}

}  // namespace

void AddExplain(CLI::App& app, Command& chosen) {
  auto given = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app.add_subcommand("explain", "Show where each transform runs and what it costs");
  command
      ->add_option(
          "DIR", given->directory,
          "folder of images, tar archives, TFRecord or Arrow files, to measure with; without it "
          "nothing is measured")
      ->check([](const std::string& folder) { return folder.empty() ? "DIR is empty" : ""; })
      ->type_name("");
  AddSourceOptions(*command, given->source_options);
  AddRecipeOptions(*command, given->recipe);
  AddNumber(*command, "--images", given->images, {1, 1'000'000},
            "largest number of samples to measure with");
  AddNumber(*command, "--rounds", given->rounds, {1, 1'000'000},
            "how often each sample is transformed, after one round that is not measured");
  AddSeed(*command, "--seed", given->seed, "seed of every random transform");
  command->add_flag("--json", given->json, "print one JSON object on stdout and nothing else");
  command->footer(kExplainFooter);
  command->callback([given, &chosen] { chosen = [given] { return RunExplainCommand(*given); }; });
}

}  // namespace stoker::cli
