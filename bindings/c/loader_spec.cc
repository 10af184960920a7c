#include "bindings/c/loader_spec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/json_object.h"
#include "bindings/c/mix_spec.h"
#include "bindings/c/transform_spec.h"
#include "core/noun.h"
#include "core/try.h"
#include "gpu/device.h"
#include "io/sources/open_source.h"

namespace stoker {

namespace {

constexpr size_t kMostTransforms = 100;
constexpr uint64_t kMostSamples = uint64_t{1} << 62;
constexpr uint64_t kMostPixels = uint64_t{kMostSidePixels} * kMostSidePixels;
constexpr uint64_t kMostScans = 1'000'000;
constexpr uint64_t kMostBatches = 4096;  // in production, or lent
constexpr uint64_t kMost32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMost64 = std::numeric_limits<uint64_t>::max();

struct SourceSpec {
  std::string kind;
  SourceArguments arguments;
  std::optional<uint64_t> samples;  // that it had when the spec was written
  std::string fingerprint;          // of its list; empty: not checked
};

void ReadArgument(JsonObject& object, const SourceArgument& argument, SourceArguments& arguments) {
  const char* name = argument.name;
  if (argument.standard == nullptr) object.Required(name);
  std::string text;
  object.Text(name, text);
  if (!object.Has(name)) return;
  if (argument.standard == nullptr && text.empty()) object.FailKey(name, "is empty");
  const bool is_word = std::ranges::find(argument.words, text) != argument.words.end();
  if (!argument.words.empty() && !is_word && !text.starts_with('/')) {
    std::string words;
    for (const char* word : argument.words) words += "\"" + std::string(word) + "\" or ";
    object.FailKey(name, "must be " + words + "an absolute path");
  }
  arguments.emplace(name, std::move(text));
}

SourceSpec ReadSource(JsonObject& object) {
  std::vector<const char*> kinds;
  for (const SourceRow& row : AllSources()) kinds.push_back(row.kind);
  SourceSpec spec;
  object.Required("kind");
  if (const std::optional<size_t> place = object.Choice("kind", kinds)) {
    spec.kind = kinds[*place];
    for (const SourceArgument& argument : AllSources()[*place].arguments) {
      ReadArgument(object, argument, spec.arguments);
    }
  }
  if (object.Has("samples")) {
    spec.samples = 0;
    object.Integer("samples", *spec.samples, 1, kMostSamples);
  }
  object.Text("fingerprint", spec.fingerprint);
  return spec;
}

void ReadNumbers(JsonObject& object, LoaderOptions& options) {
  object.Required("batch_size");
  object.Integer("batch_size", options.batch_size, 1, 1 << 20);
  object.Boolean("shuffle", options.shuffle);
  object.Integer("seed", options.seed, 0, kMost64);
  object.Integer("rank", options.rank, 0, kMost32);
  object.Integer("world", options.world, 1, 1 << 20);
  object.Boolean("drop_remainder", options.drop_remainder);
  object.Integer("depth", options.depth, 0, kMostBatches);
  object.Number("wait_target", options.wait_target, 0.0001, 0.5);
  object.Number("weight", options.weight, 0.001, 1000);
  object.Integer("lent_batches", options.lent_batches, 0, kMostBatches);
}

// CUDA's first device: memory that is pinned for one of them is pinned for all.
Status Pin(LoaderOptions& options) {
  Result<std::shared_ptr<Device>> device = Device::Open({DeviceName::Kind::kCuda, 0});
  if (!device.ok()) {
    Error error = std::move(device).error();
    error.cause = "pin_memory needs a GPU: " + error.cause;
    return error;
  }
  options.pinned_for = *std::move(device);
  return {};
}

void ReadRemainder(JsonObject& object, LoaderOptions& options) {
  static constexpr std::array<const char*, 3> kNames = {"uneven", "drop", "pad"};
  static constexpr std::array<Remainder, 3> kValues = {Remainder::kUneven, Remainder::kDrop,
                                                       Remainder::kPad};
  if (const auto place = object.Choice("remainder", kNames)) options.remainder = kValues[*place];
}

TransformSpec ReadTransforms(JsonObject& object) {
  static constexpr std::array<DType, 4> kDTypes = {DType::kU8, DType::kF16, DType::kBF16,
                                                   DType::kF32};
  static constexpr std::array<const char*, 4> kNames = {NameOf(kDTypes[0]), NameOf(kDTypes[1]),
                                                        NameOf(kDTypes[2]), NameOf(kDTypes[3])};
  static constexpr std::array<const char*, 2> kLayouts = {NameOf(Layout::kNhwc),
                                                          NameOf(Layout::kNchw)};
  TransformSpec spec;
  if (const auto place = object.Choice("dtype", kNames)) spec.options.dtype = kDTypes[*place];
  if (const auto place = object.Choice("layout", kLayouts)) {
    spec.options.layout = *place == 0 ? Layout::kNhwc : Layout::kNchw;
  }
  object.Boolean("exif_orientation", spec.options.exif_orientation);
  object.Integer("max_pixels", spec.options.limits.max_pixels, 1, kMostPixels);
  object.Integer("max_scans", spec.options.limits.max_scans, 1, kMostScans);
  for (JsonObject& transform : object.Objects("transforms", kMostTransforms)) {
    spec.transforms.push_back(ReadTransform(transform));
    object.Fail(transform.Finish());
  }
  return spec;
}

Result<JsonObject> ParseObject(std::string_view json, const std::string& what) {
  if (json.size() > kLongestSpec) {
    return Error{Code::kInvalidArgument,
                 what + " is longer than " + std::to_string(kLongestSpec) + " bytes"};
  }
  return JsonObject::Parse(json, what);
}

}  // namespace

std::string FingerprintText(const SampleSource& source) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(source.Fingerprint()));
  return text;
}

Result<LoaderOptions> ParseLoaderSpec(std::string_view json,
                                      std::shared_ptr<const SampleSource> source) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the loader spec"));
  LoaderOptions options;
  ReadNumbers(object, options);
  ReadRemainder(object, options);
  TransformSpec transforms = ReadTransforms(object);
  options.transforms = std::move(transforms.transforms);
  options.dtype = transforms.options.dtype;
  options.layout = transforms.options.layout;
  options.exif_orientation = transforms.options.exif_orientation;
  options.limits = transforms.options.limits;
  options.mix = ReadMix(object);
  bool pins = false;
  object.Boolean("pin_memory", pins);
  object.Required("source");
  JsonObject described = object.Object("source");
  const SourceSpec spec = ReadSource(described);
  if (object.Has("source")) object.Fail(described.Finish());
  TRY(object.Finish());

  if (pins) {
    if (Status pinned = Pin(options); !pinned.ok()) return std::move(pinned).error();
  }
  if (source == nullptr) {
    ASSIGN_OR_RETURN(source, OpenSource(spec.kind, spec.arguments));
  }
  if (spec.samples && *spec.samples != source->size()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = source->Describe() + " has " + std::to_string(source->size()) +
                          Noun(source->size(), " sample", " samples") + ", and had " +
                          std::to_string(*spec.samples) + " when the loader was made",
                 .advice = "Make the loader anew"};
  }
  if (!spec.fingerprint.empty() && spec.fingerprint != FingerprintText(*source)) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = source->Describe() +
                          " has other file names or classes than when the loader was made",
                 .advice = "Make the loader anew, or give all machines the same files"};
  }
  options.source = std::move(source);
  return options;
}

Result<TransformSpec> ParseTransformSpec(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the loader spec"));
  TransformSpec spec = ReadTransforms(object);
  TRY(object.Finish());
  return spec;
}

Result<TransformSpec> ParseRecipe(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the recipe"));
  TransformSpec spec = ReadTransforms(object);
  spec.mix = ReadMix(object);
  TRY(object.Finish());
  return spec;
}

}  // namespace stoker
