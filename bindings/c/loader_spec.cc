#include "bindings/c/loader_spec.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/json_object.h"
#include "bindings/c/mix_spec.h"
#include "bindings/c/option_spec.h"
#include "bindings/c/processor_config.h"
#include "bindings/c/transform_spec.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "engine/options/option_table.h"
#include "gpu/backend/device.h"
#include "io/open_source.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

constexpr uint64_t kMaxSamples = uint64_t{1} << 62;

struct SourceSpec {
  std::string kind;
  SourceArguments arguments;
  std::optional<uint64_t> samples;  // the number when the spec was written
  std::string fingerprint;          // of the list; empty means not checked
};

void ReadArgument(JsonObject& object, const SourceArgument& argument, SourceArguments& arguments) {
  const char* name = argument.name;
  if (argument.standard == nullptr) object.RequireKey(name);
  std::string text;
  object.Text(name, text);
  if (!object.Has(name)) return;
  if (argument.standard == nullptr && text.empty()) object.FailKey(name, "is empty");
  const bool is_word = std::ranges::find(argument.words, text) != argument.words.end();
  if (argument.is_path && !is_word && !text.starts_with('/') && !IsObjectUrl(text)) {
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
  object.RequireKey("kind");
  if (const std::optional<size_t> index = object.Choice("kind", kinds)) {
    spec.kind = kinds[*index];
    for (const SourceArgument& argument : AllSources()[*index].arguments) {
      ReadArgument(object, argument, spec.arguments);
    }
  }
  if (object.Has("samples")) {
    spec.samples = 0;
    object.Integer("samples", *spec.samples, 1, kMaxSamples);
  }
  object.Text("fingerprint", spec.fingerprint);
  return spec;
}

// Returns CUDA's first device: memory pinned for one device is pinned for all.
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

// Reads the options. Compose and recipes have only those of images.
void ReadOptions(JsonObject& object, LoaderOptions& options, bool only_of_images) {
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    const auto& option = row.option;
    if (option.in == nullptr || (only_of_images && !row.of_images)) continue;
    ReadOption(object, option, option.in(options));
  }
}

void ReadTransforms(JsonObject& object, std::vector<Transform>& transforms) {
  for (JsonObject& transform : object.Objects("transforms", kMaxTransforms)) {
    transforms.push_back(ReadTransform(transform));
    object.Fail(transform.CheckAllRead());
  }
}

void ReadViews(JsonObject& object, std::vector<std::vector<Transform>>& views) {
  for (JsonObject& view : object.Objects("views", kMaxViews)) {
    ReadTransforms(view, views.emplace_back());
    object.Fail(view.CheckAllRead());
  }
}

TransformSpec ReadTransformSpec(JsonObject& object) {
  LoaderOptions options;
  ReadOptions(object, options, /*only_of_images=*/true);
  TransformSpec spec;
  spec.options = {.dtype = options.dtype,
                  .layout = options.layout,
                  .channels = options.channels,
                  .exif_orientation = options.exif_orientation,
                  .decode = options.decode,
                  .limits = options.limits};
  ReadTransforms(object, spec.transforms);
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

Result<LoaderOptions> ParseLoaderSpec(std::string_view json,
                                      std::shared_ptr<const SampleSource> source,
                                      std::shared_ptr<const MapFunction> map) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the loader spec"));
  LoaderOptions options;
  ReadOptions(object, options, /*only_of_images=*/false);
  if (options.batch_size == 0 && options.batch_tokens == 0) {
    object.FailKey("batch_size", "is 0, and there is no batch_tokens");
  }
  ReadTransforms(object, options.transforms);
  ReadViews(object, options.views);
  JsonObject processor = object.Object("processor");
  options.mix = ReadMix(object);
  std::string function;
  object.Text("map", function);
  bool pins = false;
  object.Boolean("pin_memory", pins);
  object.RequireKey("source");
  JsonObject described = object.Object("source");
  const SourceSpec spec = ReadSource(described);
  if (object.Has("source")) object.Fail(described.CheckAllRead());
  TRY(object.CheckAllRead());
  if (object.Has("processor")) {
    ASSIGN_OR_RETURN(ProcessorOptions of, ReadProcessor(processor));
    ASSIGN_OR_RETURN(options.processor, Processor::Create(std::move(of)));
  }

  if (object.Has("map") && map == nullptr) {
    return Error{
        .code = Code::kFailedPrecondition,
        .cause = "the loader calls the function " + function +
                 " of the process that made it, which cannot be called here",
        .advice = "Iterate in that process, or apply the function to the dataset's batches"};
  }
  if (!options.cache.folder.empty() && !options.cache.folder.starts_with('/')) {
    return Error{Code::kInvalidArgument, "the loader spec's cache has the folder " +
                                             options.cache.folder +
                                             "; it must be an absolute path"};
  }
  options.map = std::move(map);
  if (pins) {
    TRY(Pin(options));
  }
  if (source == nullptr) {
    ASSIGN_OR_RETURN(source, OpenSource(spec.kind, spec.arguments));
  }
  if (spec.samples && *spec.samples != source->size()) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = source->Describe() + " has " + std::to_string(source->size()) +
                          Plural(source->size(), " sample", " samples") + ", and had " +
                          std::to_string(*spec.samples) + " when the loader was made",
                 .advice = "Create the loader again"};
  }
  if (!spec.fingerprint.empty() && spec.fingerprint != FingerprintText(*source)) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = source->Describe() +
                          " has other file names or classes than when the loader was made",
                 .advice = "Create the loader again, or give all machines the same files"};
  }
  options.source = std::move(source);
  return options;
}

Result<DeviceOptions> ParseDeviceOptions(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the device's options"));
  DeviceOptions options;
  for (const DeviceOptionRow& row : AllDeviceOptions()) {
    ReadOption(object, row.option, row.option.in(options));
  }
  TRY(object.CheckAllRead());
  return options;
}

Result<TransformSpec> ParseTransformSpec(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the loader spec"));
  TransformSpec spec = ReadTransformSpec(object);
  TRY(object.CheckAllRead());
  return spec;
}

Result<TransformSpec> ParseRecipe(std::string_view json) {
  ASSIGN_OR_RETURN(JsonObject object, ParseObject(json, "the recipe"));
  TransformSpec spec = ReadTransformSpec(object);
  ReadViews(object, spec.views);
  spec.mix = ReadMix(object);
  TRY(object.CheckAllRead());
  return spec;
}

}  // namespace stoker
