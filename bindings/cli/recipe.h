// What is done to images, as the subcommands' options say it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/arguments.h"
#include "core/dtype.h"
#include "core/layout.h"
#include "core/result.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/plan/plan.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker::cli {

struct RecipeArguments {
  std::string transform = "train";
  int64_t size = 224;
  bool no_antialias = false;
  std::string dtype = "u8";
  std::string layout = "nhwc";
  bool normalize = false;
  std::string file;  // of --recipe: in place of all of these
  bool dtype_given = false;
  LimitArguments limits;  // go before the file's
};

struct Recipe {
  std::string name;  // "train", "eval" or the file
  std::vector<Transform> transforms;
  PlanOptions options;
  std::optional<BatchMix> mix;
  bool shuffled = true;  // where nobody says otherwise
};

// Adds the options; `given` outlives the parsing.
void AddRecipeOptions(CLI::App& command, RecipeArguments& given);

// InvalidArgument where options do not go together, NotFound and others where the file cannot be
// read. Whether the list makes sense is for Plan::Compile to say.
Result<Recipe> RecipeOf(const RecipeArguments& given);

}  // namespace stoker::cli
