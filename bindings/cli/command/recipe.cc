#include "bindings/cli/command/recipe.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/processor_config.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "engine/arrays/processor.h"
#include "io/readers/plain_read.h"

namespace stoker::cli {

namespace {

std::vector<Transform> TransformsOf(const RecipeArguments& given) {
  const int size = static_cast<int>(given.size);
  const bool antialias = !given.no_antialias;
  const Interpolation interpolation = *InterpolationOf(given.interpolation);
  std::vector<Transform> transforms;
  if (given.transform == "train") {
    transforms.emplace_back(RandomResizedCrop{
        .height = size, .width = size, .antialias = antialias, .interpolation = interpolation});
    transforms.emplace_back(RandomHorizontalFlip{});
  } else {
    transforms.emplace_back(
        Resize{.size = size * 256 / 224, .antialias = antialias, .interpolation = interpolation});
    transforms.emplace_back(CenterCrop{.height = size, .width = size});
  }
  if (given.normalize) {
    transforms.emplace_back(Normalize{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}});
  }
  return transforms;
}

constexpr std::array kDTypes{DType::kU8, DType::kF16, DType::kBF16, DType::kF32, DType::kU16};

// Precondition: the name of one of kDTypes.
DType DTypeNamed(const std::string& name) {
  return *std::ranges::find(kDTypes, name, [](DType each) { return std::string(NameOf(each)); });
}

Layout LayoutNamed(const std::string& name) {
  return name == NameOf(Layout::kNchw) ? Layout::kNchw : Layout::kNhwc;
}

// Returns the error of a wrong recipe, which is a wrong option, as is a list that Plan::Compile
// refuses.
Error Wrong(const std::string& path, const std::string& cause) {
  return {.code = Code::kInvalidArgument,
          .cause = "--recipe " + path + ": " + cause,
          .advice = "docs/loader-spec.md has the keys"};
}

// Reads a file; nullopt if it is too long.
Result<std::optional<std::string>> TextIn(const std::string& path) {
  MemoryBudget budget(2 * kLongestSpec);
  ReadRequest read;
  read.buffer = GrowingBuffer(budget);
  read.path = path;
  ReadPlainly(read);
  if (!read.status.ok()) {
    Error error = std::move(read.status).error().WithFile(path);
    if (error.code != Code::kResourceExhausted) return error;
    return std::optional<std::string>();
  }
  return std::optional(std::string(reinterpret_cast<const char*>(read.buffer.data()), read.size));
}

Result<Recipe> RecipeOfFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, TextIn(path));
  if (!text) return Wrong(path, "is longer than " + std::to_string(kLongestSpec) + " bytes");
  Result<TransformSpec> spec = ParseRecipe(*text);
  if (!spec.ok()) return Wrong(path, spec.error().cause);
  if (spec->mix) {
    TRY(CheckMix(*spec->mix));
  }
  return Recipe{path, std::move(spec->transforms), std::move(spec->views), spec->options,
                std::move(spec->mix)};
}

// Applies the command line's options, which override a recipe's file.
void Override(const RecipeArguments& given, PlanOptions& options) {
  if (given.decode_given) {
    options.decode = given.decode == "scaled" ? DecodeSize::kScaled : DecodeSize::kFull;
  }
  if (given.dtype_given) options.dtype = DTypeNamed(given.dtype);
  if (given.layout_given) options.layout = LayoutNamed(given.layout);
  if (!given.channels.empty()) options.channels = *ParseChannels(given.channels);
  SetLimits(given.limits, options.limits);
}

}  // namespace

void AddRecipeOptions(CLI::App& command, RecipeArguments& given) {
  AddChoice(command, "--transform", given.transform, {"train", "eval"},
            "train: RandomResizedCrop(size) and RandomHorizontalFlip, shuffled; "
            "eval: Resize(size × 256 / 224) and CenterCrop(size), in the folder's order");
  AddNumber(command, "--size", given.size, {1, 16384},
            "height and width of the images in a batch, in pixels");
  std::vector<std::string> interpolations;
  for (const Interpolation each : kInterpolations) interpolations.emplace_back(NameOf(each));
  AddChoice(command, "--interpolation", given.interpolation, interpolations,
            "how images are resized, as by Pillow");
  command.add_flag("--no-antialias", given.no_antialias,
                   "filters keep their width when shrinking, as in "
                   "tf.image and OpenCV; without it antialiased, as torchvision and Pillow");
  std::vector<std::string> dtypes;
  dtypes.reserve(std::size(kDTypes));
  for (const DType each : kDTypes) dtypes.emplace_back(NameOf(each));
  CLI::Option* dtype =
      AddChoice(command, "--dtype", given.dtype, dtypes,
                "uint8: 0…255; the others: 0…1, or as --normalize makes it",
                {{"u8", "uint8"}, {"f16", "float16"}, {"bf16", "bfloat16"}, {"f32", "float32"}});
  dtype->each([&given](const std::string&) { given.dtype_given = true; });
  CLI::Option* layout =
      AddChoice(command, "--layout", given.layout, {"NHWC", "NCHW"},
                "channels last, or a plane for each channel", {{"nhwc", "NHWC"}, {"nchw", "NCHW"}});
  layout->each([&given](const std::string&) { given.layout_given = true; });
  command
      .add_option("--channels", given.channels,
                  "rgb, gray (luma alone), rgba, or the number of channels that every file has")
      ->type_name("CHANNELS")
      ->check([](const std::string& name) {
        const Result<Channels> channels = ParseChannels(name);
        return channels.ok() ? "" : channels.error().cause + ". " + channels.error().advice;
      });
  command.add_flag("--normalize", given.normalize,
                   "subtract ImageNet's mean, divide by its standard "
                   "deviation; implies --dtype float32 where none is given");
  CLI::Option* recipe =
      command
          .add_option(
              "--recipe", given.file,
              "a JSON file with transforms, dtype, layout, channels and mix, instead of the "
              "options above; --dtype, --layout and --channels override its own "
              "(docs/loader-spec.md)")
          ->type_name("FILE")
          ->check([](const std::string& file) { return file.empty() ? "FILE is empty" : ""; });
  for (const char* name :
       {"--transform", "--size", "--interpolation", "--no-antialias", "--normalize"}) {
    recipe->excludes(command.get_option(name));
  }
  CLI::Option* decode = AddChoice(command, "--decode", given.decode, {"full", "scaled"},
                                  "scaled: decode a JPEG at 1/2, 1/4 or 1/8 of its size where the "
                                  "crop is at least twice as large as the resized image");
  decode->each([&given](const std::string&) { given.decode_given = true; });
  AddLimits(command, given.limits);
}

Result<std::shared_ptr<const Processor>> ProcessorOf(const std::string& path,
                                                     const RecipeArguments& given) {
  std::error_code failed;  // opening the file says why
  const bool is_folder = std::filesystem::is_directory(path, failed);
  const std::string file = is_folder ? path + "/preprocessor_config.json" : path;
  ASSIGN_OR_RETURN(const std::optional<std::string> text, TextIn(file));
  Result<ProcessorRecipe> parsed =
      text ? ParseProcessorConfig(*text, ResampledAs::kTorchvision)
           : Error{Code::kInvalidArgument, "it is longer than a configuration may be"};
  if (!parsed.ok()) return std::move(parsed).error().WithFile(file);
  ProcessorOptions options{.recipe = *std::move(parsed)};
  if (given.dtype_given) options.dtype = DTypeNamed(given.dtype);
  SetLimits(given.limits, options.limits);
  ASSIGN_OR_RETURN(std::shared_ptr<const Processor> processor,
                   Processor::Create(std::move(options)));
  return processor;
}

Result<Recipe> RecipeOf(const RecipeArguments& given) {
  if (!given.file.empty()) {
    Result<Recipe> recipe = RecipeOfFile(given.file);
    if (recipe.ok()) Override(given, recipe->options);
    return recipe;
  }
  if (given.normalize && given.dtype_given && given.dtype == "uint8") {
    return Error{
        Code::kInvalidArgument,
        "--normalize makes fractions and negative numbers, which --dtype uint8 cannot hold", "",
        std::nullopt, "Use --dtype float32, float16 or bfloat16, or leave --dtype out"};
  }
  Recipe recipe{given.transform, TransformsOf(given), {}, {}, {}};
  recipe.shuffled = given.transform == "train";
  recipe.options.dtype = given.normalize ? DType::kF32 : DType::kU8;
  Override(given, recipe.options);
  return recipe;
}

}  // namespace stoker::cli
