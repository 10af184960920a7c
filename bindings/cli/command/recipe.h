// Options for transforms, which several subcommands share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/command/arguments.h"
#include "core/batch/dtype.h"
#include "core/result/result.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/plan/plan.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace stoker {
class Processor;
}

namespace stoker::cli {

struct RecipeArguments {
  std::string transform = "train";
  int64_t size = 224;
  std::string interpolation = "bilinear";
  bool no_antialias = false;
  std::string dtype = "uint8";
  std::string layout = "NHWC";
  bool normalize = false;
  std::string file;  // --recipe; replaces the transforms
  // If given, these override what the file says, as the limits do.
  bool dtype_given = false;
  bool layout_given = false;
  std::string channels;  // empty if not given
  std::string decode = "full";
  bool decode_given = false;
  LimitArguments limits;
};

struct Recipe {
  std::string name;  // "train", "eval" or the file
  std::vector<Transform> transforms;
  std::vector<std::vector<Transform>> views{};  // LoaderOptions::views
  PlanOptions options;
  std::optional<BatchMix> mix;
  bool shuffled = true;  // defaults of the subcommand
};

// Adds the options; `given` must outlive the parsing.
void AddRecipeOptions(CLI::App& command, RecipeArguments& given);

// Reads the configuration of an image processor: a file, or preprocessor_config.json in a folder.
// The options' dtype, if it is given, and limits apply. Errors: those of the file and of
// ParseProcessorConfig.
Result<std::shared_ptr<const Processor>> ProcessorOf(const std::string& path,
                                                     const RecipeArguments& given);

// InvalidArgument if options contradict each other, NotFound and others if the file cannot be read.
// Plan::Compile checks the list of transforms.
Result<Recipe> RecipeOf(const RecipeArguments& given);

}  // namespace stoker::cli
