#include "bindings/c/processor_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/c/json_object.h"
#include "bindings/c/loader_spec.h"
#include "bindings/c/option_spec.h"
#include "core/result/try.h"
#include "engine/options/option_table.h"

namespace stoker {

namespace {

constexpr int kMostSide = 16384, kMostPatch = 256, kMostCopies = 16, kMostPinpoints = 1024,
              kMostTiles = 256, kMostRows = 1 << 20;
constexpr int64_t kMostPixels = int64_t{1} << 40;

constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};
constexpr std::array<double, 3> kImageNetMean{0.485, 0.456, 0.406};
constexpr std::array<double, 3> kImageNetStd{0.229, 0.224, 0.225};

using Family = ProcessorFamily;

struct Class {
  const char* name;  // image_processor_type, without Fast or Pil
  bool square;  // default_to_square: a number is the height and the width, not the shorter side
  ProcessorRecipe recipe;
};

// The defaults of each class.
std::vector<Class> Classes() {
  ProcessorRecipe clip{.sizing = Sizing::kShortest,
                       .crop = ImageSize{224, 224},
                       .onto_white = true,
                       .mean = kClipMean,
                       .deviation = kClipStd};
  const ProcessorRecipe siglip{.onto_white = true};
  const ProcessorRecipe vit{.interpolation = Interpolation::kBilinear};
  ProcessorRecipe dino = vit;
  dino.resizes_floats = true;
  dino.mean = kImageNetMean;
  dino.deviation = kImageNetStd;
  const ProcessorRecipe naflex{.family = Family::kNaFlex,
                               .sizing = Sizing::kPatches,
                               .patch = {16, 16},
                               .padded_rows = 256,
                               .interpolation = Interpolation::kBilinear};
  const ProcessorRecipe qwen{.family = Family::kQwen,
                             .sizing = Sizing::kPixels,
                             .min_pixels = 56 * 56,
                             .max_pixels = 28 * 28 * 1280,
                             .patch = {14, 14},
                             .merge = 2,
                             .temporal = 2,
                             .onto_white = true,
                             .mean = kClipMean,
                             .deviation = kClipStd};
  ProcessorRecipe next = clip;
  next.family = Family::kLlavaNext;
  next.pads_batch = true;
  next.pinpoints = {{672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}};
  ProcessorRecipe onevision = next;
  onevision.family = Family::kLlavaOnevision;
  onevision.sizing = Sizing::kExact;
  onevision.size = {384, 384};
  onevision.crop.reset();
  onevision.pinpoints.clear();
  for (int height = 384; height <= 2304; height += 384) {
    for (int width = 384; width <= 2304; width += 384)
      onevision.pinpoints.push_back({width, height});
  }
  ProcessorRecipe tiled = siglip;
  tiled.family = Family::kTiled;
  tiled.size = {384, 384};
  tiled.mean = kClipMean;
  tiled.deviation = kClipStd;
  return {{"CLIPImageProcessor", false, clip},
          {"BitImageProcessor", false, clip},
          {"SiglipImageProcessor", false, siglip},
          {"ViTImageProcessor", true, vit},
          {"DINOv3ViTImageProcessor", true, dino},
          {"Siglip2ImageProcessor", true, naflex},
          {"Qwen2VLImageProcessor", true, qwen},
          {"LlavaNextImageProcessor", false, next},
          {"LlavaOnevisionImageProcessor", false, onevision},
          {"GotOcr2ImageProcessor", true, tiled}};
}

class Config {
 public:
  Config(JsonObject& object, ResampledAs resampler) : object_(object), resampler_(resampler) {}

  Result<ProcessorRecipe> Read() {
    ReadClass();
    recipe_.resampler = resampler_;
    ReadValues();
    const bool resizes = Flag("do_resize", true);
    if (family() == Family::kQwen) {
      ReadPixels();
    } else if (family() != Family::kNaFlex) {
      ReadSize();
    }
    if (crops()) ReadCrop();
    if (!resizes) recipe_.sizing = Sizing::kKept;
    if (recipe_.flat()) ReadPatches();
    if (llava()) ReadPinpoints();
    if (family() == Family::kTiled) ReadTiles();
    ReadWithoutEffect();
    TRY(object_.CheckAllRead());
    return Checked();
  }

 private:
  Family family() const { return recipe_.family; }
  bool llava() const {
    return family() == Family::kLlavaNext || family() == Family::kLlavaOnevision;
  }
  bool crops() const { return family() == Family::kPlain || llava(); }

  // Whether a key has a value. One that is null is as good as missing.
  bool Has(const char* key) { return object_.Has(key) && !object_.IsNull(key); }

  bool Flag(const char* key, bool value) {
    if (Has(key)) object_.Boolean(key, value);
    return value;
  }

  template <typename T>
  void Integer(const char* key, T& value, int64_t high) {
    if (Has(key)) object_.Integer(key, value, 1, static_cast<uint64_t>(high));
  }

  void ReadClass() {
    const bool old = !Has("image_processor_type") && Has("feature_extractor_type");
    const char* const key = old ? "feature_extractor_type" : "image_processor_type";
    (void)object_.IsNull("feature_extractor_type");
    std::string name;
    object_.RequireKey(key);
    object_.Text(key, name);
    for (const std::string_view suffix : {"Fast", "Pil"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    constexpr std::string_view kOld = "FeatureExtractor";
    if (old && name.ends_with(kOld)) {
      name.replace(name.size() - kOld.size(), kOld.size(), "ImageProcessor");
    }
    std::vector<const char*> names;
    for (const Class& one : Classes()) {
      names.push_back(one.name);
      if (name == one.name) std::tie(square_, recipe_) = std::tie(one.square, one.recipe);
    }
    if (std::ranges::find(names, name) == names.end()) (void)object_.Choice(key, names);
  }

  void ReadValues() {
    recipe_.onto_white = Flag("do_convert_rgb", recipe_.onto_white);
    recipe_.rescales = Flag("do_rescale", true);
    recipe_.normalizes = Flag("do_normalize", true);
    if (Has("rescale_factor")) object_.Number("rescale_factor", recipe_.factor, 1e-6, 1e6);
    if (Has("image_mean")) object_.Numbers("image_mean", recipe_.mean);
    if (Has("image_std")) object_.Numbers("image_std", recipe_.deviation);
    for (size_t c = 0; c < 3; ++c) {
      if (!(std::abs(recipe_.mean[c]) < 1e6)) object_.FailKey("image_mean", "is too large");
      if (!(recipe_.deviation[c] > 1e-6 && recipe_.deviation[c] < 1e6)) {
        object_.FailKey("image_std", "has a number out of range");
      }
    }
    // Pillow's numbers; 5 is Hamming.
    constexpr std::array kFilters{Interpolation::kNearest, Interpolation::kLanczos,
                                  Interpolation::kBilinear, Interpolation::kBicubic,
                                  Interpolation::kBox};
    size_t filter = kFilters.size();
    if (Has("resample")) object_.Integer("resample", filter, 0, kFilters.size() - 1);
    if (filter < kFilters.size()) recipe_.interpolation = kFilters[filter];
  }

  // Reads height and width, or a number, which is both.
  ImageSize ReadSides(const char* key) {
    ImageSize size;
    if (!object_.IsObject(key)) {
      object_.Integer(key, size.width, 1, kMostSide);
      return {size.width, size.width};
    }
    JsonObject inner = object_.Object(key);
    for (const auto& [side, value] :
         {std::pair{"height", &size.height}, std::pair{"width", &size.width}}) {
      inner.RequireKey(side);
      inner.Integer(side, *value, 1, kMostSide);
    }
    object_.Fail(inner.CheckAllRead());
    return size;
  }

  void ReadSize() {
    const bool square = Flag("default_to_square", square_);
    if (!Has("size")) return;
    recipe_.sizing = Sizing::kShortest;
    if (object_.IsObject("size")) {
      JsonObject inner = object_.Object("size");
      inner.Integer("shortest_edge", recipe_.shortest, 1, kMostSide);
      if (inner.Has("shortest_edge")) return object_.Fail(inner.CheckAllRead());
    } else if (!square) {
      return object_.Integer("size", recipe_.shortest, 1, kMostSide);
    }
    recipe_.sizing = Sizing::kExact;
    recipe_.size = ReadSides("size");
  }

  void ReadCrop() {
    const bool crops = Flag("do_center_crop", recipe_.crop.has_value());
    if (Has("crop_size")) recipe_.crop = ReadSides("crop_size");
    if (!crops && !llava()) recipe_.crop.reset();  // LLaVA's is the size of the tiles in any case
    if (crops && !recipe_.crop) object_.FailKey("crop_size", "is missing");
  }

  void ReadPixels() {
    if (Has("size")) {
      JsonObject inner = object_.Object("size");
      for (const auto& [key, other, value] :
           {std::tuple{"shortest_edge", "min_pixels", &recipe_.min_pixels},
            std::tuple{"longest_edge", "max_pixels", &recipe_.max_pixels}}) {
        const char* const name = inner.Has(other) ? other : key;
        inner.RequireKey(name);
        inner.Integer(name, *value, 1, kMostPixels);
      }
      object_.Fail(inner.CheckAllRead());
    }
    Integer("min_pixels", recipe_.min_pixels, kMostPixels);
    Integer("max_pixels", recipe_.max_pixels, kMostPixels);
    if (recipe_.min_pixels > recipe_.max_pixels) {
      object_.FailKey(Has("min_pixels") ? "min_pixels" : "size.shortest_edge",
                      "is " + std::to_string(recipe_.min_pixels) + ", and the most pixels are " +
                          std::to_string(recipe_.max_pixels));
    }
  }

  void ReadPatches() {
    Integer("patch_size", recipe_.patch.width, kMostPatch);
    recipe_.patch.height = recipe_.patch.width;
    if (family() == Family::kNaFlex)
      return Integer("max_num_patches", recipe_.padded_rows, kMostRows);
    Integer("merge_size", recipe_.merge, kMostCopies);
    Integer("temporal_patch_size", recipe_.temporal, kMostCopies);
  }

  // The whole image and the tiles have one size, as those of all published models.
  void ReadPinpoints() {
    if (Has("image_grid_pinpoints")) {
      std::vector<std::array<int, 2>> pairs;  // (height, width)
      object_.IntegerPairs("image_grid_pinpoints", pairs, 1, kMostSide, kMostPinpoints);
      recipe_.pinpoints.clear();
      for (const auto& [height, width] : pairs) recipe_.pinpoints.push_back({width, height});
    }
    recipe_.pads_batch = Flag("do_pad", true);
    if (recipe_.sizing == Sizing::kKept)
      object_.FailKey("do_resize", "is false, and tiles need it");
    if (recipe_.sizing == Sizing::kShortest) recipe_.size = {recipe_.shortest, recipe_.shortest};
    const ImageSize tile = recipe_.size;
    if (tile.width != tile.height || recipe_.crop.value_or(tile) != tile) {
      object_.FailKey("crop_size", "is not the size of a tile, which must be a square");
    }
    const auto fits = [&tile](ImageSize point) {  // a size that was refused is 0
      return tile.width > 0 && point.width % tile.width == 0 && point.height % tile.width == 0;
    };
    if (recipe_.pinpoints.empty() || !std::ranges::all_of(recipe_.pinpoints, fits)) {
      object_.FailKey("image_grid_pinpoints",
                      "has no multiples of the tile's side, " + std::to_string(tile.width));
    }
    recipe_.sizing = Sizing::kPinpoints;
    recipe_.patch = tile;
    recipe_.crop.reset();
  }

  void ReadTiles() {
    const bool tiles = Flag("crop_to_patches", false);
    Integer("min_patches", recipe_.min_tiles, kMostTiles);
    Integer("max_patches", recipe_.max_tiles, kMostTiles);
    if (recipe_.min_tiles > recipe_.max_tiles) {
      object_.FailKey("min_patches", "is larger than max_patches");
    }
    if (recipe_.sizing != Sizing::kExact) {
      object_.FailKey("size", "is not a height and a width, or is not used");
    }
    recipe_.patch = recipe_.size;
    if (tiles) recipe_.sizing = Sizing::kTiles;
  }

  // Keys that transformers writes, and that do not change what bytes become.
  void ReadWithoutEffect() {
    for (const char* key :
         {"processor_class", "_processor_class", "auto_map", "_valid_processor_keys",  // names
          "image_seq_length",  // the number of tokens in a text
          "return_tensors", "device", "disable_grouping", "input_data_format",  // of a call
          "default_to_square"}) {  // what a number means as a size, which has been read
      (void)object_.IsNull(key);
    }
    constexpr const char *kFirst[] = {"channels_first"}, *kAny[] = {"anyres"};
    if (Has("data_format")) (void)object_.Choice("data_format", kFirst);
    if (Has("aspect_ratio_setting")) (void)object_.Choice("aspect_ratio_setting", kAny);
    // Without effect unless they are set.
    constexpr const char* kNotDone = "is set, and this processor does not do that";
    if (!llava() && Flag("do_pad", false)) object_.FailKey("do_pad", kNotDone);
    if (Has("pad_size")) object_.FailKey("pad_size", kNotDone);
    if (crops()) return;
    if (Flag("do_center_crop", false)) object_.FailKey("do_center_crop", kNotDone);
    (void)object_.IsNull("crop_size");  // of a crop that is not done
    if (family() == Family::kNaFlex && Has("size")) object_.FailKey("size", kNotDone);
  }

  Result<ProcessorRecipe> Checked() {
    const Interpolation filter = recipe_.interpolation;
    const bool lacks = resampler_ == ResampledAs::kTorchvision &&
                       (filter == Interpolation::kNearest || filter == Interpolation::kBox);
    if (recipe_.resizes_floats && resampler_ != ResampledAs::kTorchvision) {
      return Error{.code = Code::kUnimplemented,
                   .cause = "transformers has no such processor of Pillow",
                   .advice = "Use the resampler of torchvision"};
    }
    if (!lacks && (!recipe_.resizes_floats || filter == Interpolation::kBilinear)) return recipe_;
    return Error{
        .code = Code::kUnimplemented,
        .cause = "this processor does not resample by " + TextOf(filter, resampler_),
        .advice = recipe_.resizes_floats
                      ? "Set resample to 2, which is bilinear"
                      : "Set resample to 2, which is bilinear, or resampler to \"pillow\""};
  }

  JsonObject& object_;
  const ResampledAs resampler_;
  bool square_ = true;
  ProcessorRecipe recipe_;
};

Result<JsonObject> Parsed(std::string_view json, const std::string& what) {
  if (json.size() <= kLongestSpec) return JsonObject::Parse(json, what);
  return Error{Code::kInvalidArgument,
               what + " is longer than " + std::to_string(kLongestSpec) + " bytes"};
}

}  // namespace

Result<ProcessorRecipe> ParseProcessorConfig(std::string_view json, ResampledAs resampler,
                                             std::string_view overrides) {
  ASSIGN_OR_RETURN(JsonObject object, Parsed(json, "the processor's configuration"));
  ASSIGN_OR_RETURN(const JsonObject others, Parsed(overrides, "the object of overrides"));
  JsonObject keys =
      object.IsObject("image_processor") ? object.Object("image_processor") : std::move(object);
  keys.Replace(others);
  return Config(keys, resampler).Read();
}

Result<ProcessorOptions> ReadProcessor(JsonObject& object) {
  LoaderOptions options;
  options.dtype = DType::kF32;
  for (const char* name : {"dtype", "exif_orientation", "max_pixels", "max_scans",
                           "accept_truncated", "accept_16_bits"}) {
    const Option<LoaderOptions>& option = LoaderOptionNamed(name).option;
    ReadOption(object, option, option.in(options));
  }
  constexpr const char* kResamplers[] = {"torchvision", "pillow"};
  const size_t resampler = object.Choice("resampler", kResamplers).value_or(0);
  std::string config, overrides = "{}";
  object.RequireKey("config");
  object.Text("config", config);
  object.Text("overrides", overrides);
  TRY(object.CheckAllRead());
  ASSIGN_OR_RETURN(
      ProcessorRecipe recipe,
      ParseProcessorConfig(config,
                           resampler == 0 ? ResampledAs::kTorchvision : ResampledAs::kPillowExact,
                           overrides));
  return ProcessorOptions{.recipe = std::move(recipe),
                          .dtype = options.dtype,
                          .exif_orientation = options.exif_orientation,
                          .limits = options.limits};
}

Result<ProcessorOptions> ParseProcessorOptions(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, JsonObject::Parse(json, "the processor"));
  return ReadProcessor(object);
}

}  // namespace stoker
