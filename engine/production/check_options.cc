#include "engine/production/check_options.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/batch/image.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "engine/arrays/processor.h"
#include "engine/map/map_caller.h"
#include "engine/options/option_table.h"
#include "engine/order/patch_counts.h"
#include "io/source/field.h"
#include "io/source/image_numbers.h"
#include "transforms/decode/decoding.h"
#include "transforms/processor/figures.h"
#include "transforms/resize/row_format.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

// The choices of an option are checked elsewhere, with the images or arrays that they apply to.
Status CheckNumbers(const LoaderOptions& given) {
  LoaderOptions options = given;  // the table gives access to what may be changed
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    if (row.option.in == nullptr || !row.option.choices.empty()) continue;
    if (auto refusal = CheckOption(row.option, row.option.in(options))) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::move(refusal->cause),
                   .advice = std::move(refusal->advice)};
    }
  }
  return {};
}

// Checks what limits a batch. TokenBatchesOf checks the column, and the numbers in it.
Status CheckBatches(const LoaderOptions& options) {
  const auto refuse = [](Code code, std::string cause, std::string advice) {
    return Error{.code = code, .cause = std::move(cause), .advice = std::move(advice)};
  };
  if (options.batch_tokens == 0) {
    if (!options.tokens.empty()) {
      return refuse(Code::kInvalidArgument,
                    "tokens is '" + options.tokens + "', and there is no batch_tokens",
                    "Give batch_tokens, the most tokens of a batch, or leave tokens out");
    }
    if (options.batch_size != 0) return {};
    return refuse(Code::kInvalidArgument, "batch_size is 0, and there is no batch_tokens",
                  "Give batch_size, the rows of a batch, or batch_tokens");
  }
  if (options.tokens.empty() && options.processor == nullptr) {
    return refuse(
        Code::kUnimplemented,
        "batch_tokens is " + std::to_string(options.batch_tokens) +
            ", and no column has the tokens of samples",
        "Give tokens, the name of a column of integers, or a processor, whose patches count");
  }
  if (options.batch_size == 1) {
    return refuse(Code::kInvalidArgument,
                  "batch_size is 1, so that each batch would have one row, and batch_tokens is " +
                      std::to_string(options.batch_tokens),
                  "Leave batch_size out, for no limit of rows, or give the most rows of a batch");
  }
  if (options.source->order() != nullptr) {
    return refuse(Code::kUnimplemented,
                  "batch_tokens needs each sample once in an epoch, and " +
                      options.source->Describe() + " has an order of its own",
                  "Give batch_size, or the sources that it is made of");
  }
  if (!options.to_device) return {};
  return refuse(Code::kUnimplemented,
                "batch_tokens makes batches of any number of rows, and a device has room for rows "
                "of a fixed number",
                "Let the program copy batches to it");
}

// Refuses a field with the name of a column that stoker adds. `added_by`: "the views add".
Status CheckIsFree(const SampleSource& source, const std::string& column,
                   const std::string& added_by) {
  const std::span<const Field> fields = source.fields();
  if (std::ranges::find(fields, column, &Field::name) == fields.end()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = source.Describe() + " has a field '" + column + "', and " + added_by +
                        " a column of this name",
               .advice = "Rename the field, or leave it out"};
}

// Refuses what a processor, which makes rows of its own from files, cannot be combined with.
Status CheckProcessor(const LoaderOptions& given) {
  if (given.processor == nullptr) return {};
  const auto refuse = [](const std::string& what, std::string advice, Code code) {
    return Error{.code = code,
                 .cause = what + ", and the last of the transforms is a processor",
                 .advice = std::move(advice)};
  };
  LoaderOptions options = given, standard;  // the table gives access to what may be changed
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    const Option<LoaderOptions>& option = row.option;
    if (!row.of_images) continue;
    const std::string value = TextOf(option, option.in(options));
    if (value == TextOf(option, option.in(standard))) continue;
    return refuse(std::string(option.name) + " is " + value,
                  "Leave it out: rows are as the processor says", Code::kInvalidArgument);
  }
  const SampleSource& source = *options.source;
  std::string other;  // a transform
  for (const Transform& transform : options.transforms) {
    const bool flips = std::holds_alternative<RandomHorizontalFlip>(transform) ||
                       std::holds_alternative<RandomVerticalFlip>(transform);
    if (!flips && other.empty()) other = RowOf(transform).name;
  }
  const bool of_objects = std::ranges::any_of(source.fields(), [](const Field& field) {
    return field.is_of_objects() || field.is_drawn();
  });
  const struct {
    bool refused;
    std::string what, advice;
  } cases[] = {
      {!other.empty(), other + " is before it",
       "Before a processor only RandomHorizontalFlip and RandomVerticalFlip are possible"},
      {!options.views.empty(), "there are views", "Leave views out"},
      {options.mix.has_value(), "MixUp or CutMix mix rows of one size", "Leave them out"},
      {options.to_device.has_value(), "batches go to a device", "Let the program copy them to it"},
      {options.geometry, "geometry is given", "Leave geometry out"},
      {static_cast<bool>(options.cache), "a cache is given",
       "Leave cache out, or pack the images (`stoker pack`)"},
      {source.in_memory(), "samples are in memory", "Give encoded images"},
      {source.encoded_fields() > 1 || source.has_clips(), "samples have several fields of images",
       "Give one image a sample, or a list of any number of images (stoker.files)"},
      {of_objects, "samples have boxes or other objects", "Leave these columns out"}};
  for (const auto& [refused, what, advice] : cases) {
    if (refused) return refuse(what, advice, Code::kUnimplemented);
  }
  const ProcessorRecipe& recipe = options.processor->recipe();
  for (const ColumnSpec& column : FiguresOf(given)) {
    TRY(CheckIsFree(source, column.name, "the processor adds"));
  }
  const auto others = source.fields().subspan(1);  // the first field's column is replaced
  if (std::ranges::find(others, "pixel_values", &Field::name) != others.end()) {
    TRY(CheckIsFree(source, "pixel_values", "the processor adds"));
  }
  const std::optional<ImagePlan> fixed = FixedPlan(recipe);
  if (fixed && recipe.padded_rows == 0 && !source.varies() && options.batch_tokens != 0 &&
      options.tokens.empty()) {
    return refuse("batch_tokens counts patches, each image is one",
                  "Give batch_size, the rows of a batch", Code::kInvalidArgument);
  }
  if (fixed || recipe.patch.width != 0) return {};
  return refuse("its images would differ in size", "Let the processor resize them to one, or crop",
                Code::kInvalidArgument);
}

// Refuses a program's function of rows, whose size is that of their batch. `what` has this size.
Status CheckMapsBatches(const LoaderOptions& options, const std::string& what,
                        const std::string& advice) {
  if (options.map == nullptr) return {};
  ASSIGN_OR_RETURN(const MapCaller map, MapCaller::Of(*options.map));
  if (map.calls() != 0) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = "'" + map.name() + "' is called with rows, whose size with " + what +
                        " is that of their batch",
               .advice = "Let it be called with batches, or " + advice};
}

// Checks that rows differ in the number of patches or tiles if they are to be padded.
Status CheckRowPadding(const LoaderOptions& options) {
  if (options.padding == RowPadding::kNone) return {};
  const auto refuse = [](const std::string& why) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "padding is \"longest\", and " + why,
                 .changes = {{OptionChange::How::kLeaveOut, "padding"}}};
  };
  if (options.processor == nullptr) return refuse("there is no processor, whose rows it pads");
  const ProcessorRecipe& recipe = options.processor->recipe();
  if (FixedPlan(recipe) && recipe.padded_rows == 0) {
    return refuse("all rows of this processor have the same size, so there is nothing to pad");
  }
  TRY(CheckFixedImages("padding=\"longest\"", *options.source));
  return CheckMapsBatches(options, "padding", "leave padding out");
}

// Checks that there are buckets for a processor that makes rows of any length, and that each fits.
Status CheckBuckets(const LoaderOptions& options) {
  const Buckets& buckets = options.buckets;
  TRY(Buckets::Parse(buckets.ToString()));  // of a program
  if (buckets.empty()) return {};
  const auto refuse = [](const std::string& why, std::string advice) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "there are buckets, and " + why,
                 .advice = std::move(advice)};
  };
  if (options.processor == nullptr || options.processor->recipe().sizing != Sizing::kPatches) {
    return refuse("no processor resizes images to a number of patches",
                  "Give one of SigLIP2 (NaFlex), or leave buckets out");
  }
  if (options.batch_tokens == 0) {
    return refuse("there is no batch_tokens", "Give batch_tokens, the rows of a batch × length");
  }
  if (!options.tokens.empty() || options.padding != RowPadding::kNone) {
    return refuse(options.tokens.empty() ? "padding is \"longest\", which is another length"
                                         : "tokens is '" + options.tokens +
                                               "', while rows × length count against batch_tokens",
                  "Leave one of them out");
  }
  TRY(CheckFixedImages("a loader with buckets", *options.source));
  const uint32_t most_rows = options.batch_size == 0 ? kMostBatchRows : options.batch_size;
  ProcessorRecipe recipe = options.processor->recipe();
  for (const Buckets::Bucket& bucket : buckets.all) {
    recipe.padded_rows = bucket.length;
    if (Status fits = CheckRowBytes(recipe, *FixedPlan(recipe)); !fits.ok()) {
      Error error = std::move(fits).error();
      error.advice = "Give a shorter length";
      return error;
    }
    if (buckets.RowsOf(bucket, options.batch_tokens, most_rows) != 0) continue;
    std::string limits = "batch_tokens is " + std::to_string(options.batch_tokens);
    if (options.batch_size != 0) limits += " and batch_size " + std::to_string(most_rows);
    return refuse(limits + ", which leaves no room for " + std::to_string(buckets.multiple) +
                      Plural(buckets.multiple, " row of ", " rows of ") +
                      std::to_string(bucket.length) + " patches",
                  "Raise it, or give a shorter length or a lower multiple");
  }
  return CheckMapsBatches(options, "buckets", "leave buckets out");
}

// Checks the layout and dtype of the output. Plan::Compile checks everything else.
Status CheckOutput(const LoaderOptions& options) {
  if (CopiesRows(options)) {
    const Field& array = options.source->fields()[0];
    if (options.layout != Layout::kNhwc) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::string("layout is ") + NameOf(options.layout) + ", but rows of '" +
                            array.name + "', which are " + DescribeRow(array) +
                            ", are copied as they are if there are no transforms",
                   .advice = "Leave layout out, or transpose the array"};
    }
    if (options.channels != Channels::kRgb) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = std::string("channels is \"") + NameOf(options.channels) +
                            "\", but rows of '" + array.name + "', which are " +
                            DescribeRow(array) +
                            ", are copied as they are if there are no transforms",
                   .advice = "Leave channels out, or convert the array"};
    }
    if (options.dtype == DType::kU8 || options.dtype == array.dtype) return {};
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("dtype is ") + NameOf(options.dtype) + ", but rows of '" +
                          array.name + "', which are " + DescribeRow(array) +
                          ", are copied as they are if there are no transforms",
                 .advice = "Leave dtype out, or convert the array"};
  }
  return CheckPixelType(options.dtype);
}

// Transforms need RGB with 8 bits per channel.
Status CheckImages(const LoaderOptions& options) {
  if (!options.source->in_memory() || CopiesRows(options)) return {};
  const Field& array = options.source->fields()[0];
  const std::vector<int64_t>& shape = array.row_shape;
  if (array.dtype == DType::kU8 && shape.size() == 3 && shape[2] == 3 &&
      std::max(shape[0], shape[1]) <= kMaxSidePixels) {
    return {};
  }
  return Error{.code = Code::kInvalidArgument,
               .cause = "transforms need images of uint8 (height, width, 3), at most " +
                        std::to_string(kMaxSidePixels) + " on a side; the rows of '" + array.name +
                        "' are " + DescribeRow(array),
               .advice =
                   "Convert the array, or leave the transforms out: then rows of any type "
                   "and shape are copied as they are"};
}

// The largest number of threads that call a source, and that call a function of whole batches.
constexpr int kMostCalls = 1024;

// Checks a program's source's number of calls.
Status CheckCalls(const SampleSource& source) {
  if (source.calls() < 0 || source.calls() > kMostCalls) {
    return Error{Code::kInvalidArgument,
                 "calls() of " + source.Describe() + " is " + std::to_string(source.calls()) +
                     "; it must be between 0 and " + std::to_string(kMostCalls)};
  }
  const std::span<const Field> fields = source.fields();
  if (source.calls() != 0 && (fields.empty() || fields[0].kind != Field::Kind::kImage)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the first field of " + source.Describe() +
                          " is not a kImage, but the source has calls",
                 .advice = "Load gives images; let calls() be 0 if the samples have none"};
  }
  for (const Field& field : fields) {
    if (field.kind != Field::Kind::kLoaded) continue;
    if (std::ranges::any_of(field.row_shape, [](int64_t side) { return side < 1; })) {
      return Error{Code::kInvalidArgument, "rows of field '" + field.name + "' of " +
                                               source.Describe() + " have a side below 1"};
    }
    const bool is_given = source.calls() != 0 || source.has_records();
    if (!is_given || (IsString(field.dtype) && !source.has_records())) {
      return Error{.code = Code::kInvalidArgument,
                   .cause = "field '" + field.name + "' of " + source.Describe() + " is kLoaded" +
                            (!is_given ? ", but the source has no calls"
                                       : " and a string, whose memory nobody keeps"),
                   .advice = "Make it kFixed, in the memory of the source"};
    }
  }
  return {};
}

// Checks the fields of samples with several encoded images.
Status CheckPieces(const LoaderOptions& options) {
  const SampleSource& source = *options.source;
  const std::span<const Field> fields = source.fields();
  const size_t encoded = source.encoded_fields(), pieces = source.pieces();
  if (pieces == 0) return {};
  const bool come_first = std::ranges::all_of(fields.first(encoded), &Field::is_encoded);
  if (!come_first || fields[0].kind != Field::Kind::kImage) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the encoded fields of " + source.Describe() +
                          " are not its first ones, of which the first is a kImage",
                 .advice = "Put the image first, then its masks, then all others"};
  }
  if (options.processor == nullptr) TRY(CheckFixedImages("a loader without a processor", source));
  if (pieces == 1 && !source.has_clips()) return {};
  if (pieces > kMostPieces) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "each sample of " + source.Describe() + " has " + std::to_string(pieces) +
                          " encoded images; at most " + std::to_string(kMostPieces) +
                          " are possible",
                 .advice = "Make samples of fewer images"};
  }
  if (source.calls() != 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = source.Describe() + " has " + std::to_string(pieces) +
                          " encoded images per sample, and calls, which give one",
                 .advice = "Give the others as files of their own"};
  }
  const auto refuse = [&](const std::string& what, std::string advice) {
    const std::string counted =
        pieces == 1 ? "a clip of one image" : std::to_string(pieces) + " encoded images";
    return Error{.code = Code::kUnimplemented,
                 .cause = what + ", and each sample of " + source.Describe() + " has " + counted,
                 .advice = std::move(advice)};
  };
  if (!options.views.empty()) {
    return refuse("there are several views", "Use one list of transforms");
  }
  if (options.mix) {
    const std::string mix = NameOf(*options.mix);
    return refuse(mix + " mixes one image and its labels", "Leave " + mix + " out");
  }
  if (options.to_device && options.to_device->decodes && HasFurtherImages(source)) {
    return refuse("a device decodes one image", kLetWorkersDecode);
  }
  return {};
}

// Checks the fields of objects, and refuses options that they cannot follow yet.
Status CheckHasObjects(const LoaderOptions& options) {
  const SampleSource& source = *options.source;
  const std::span<const Field> fields = source.fields();
  TRY(CheckObjects(fields));
  const auto found = std::ranges::find_if(fields, &Field::is_of_objects);
  if (found == fields.end()) return {};
  if (found == fields.begin()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "the first field of " + source.Describe() + ", '" + found->name +
                          "', is of objects",
                 .advice = "Put the image first"};
  }
  constexpr uint64_t kMostBytes = uint64_t{1} << 36;
  for (const Field& field : fields) {
    const uint64_t most = source.max_objects();
    if (!field.is_of_objects() || (most <= kMaxObjects && most * field.row_bytes() <= kMostBytes)) {
      continue;
    }
    return Error{Code::kInvalidArgument,
                 "a sample of " + source.Describe() + " has " + std::to_string(most) +
                     " objects of " + std::to_string(field.row_bytes()) + " bytes ('" + field.name +
                     "'); at most 2^20, and 2^36 bytes, are possible"};
  }
  const auto refuse = [&](const std::string& what, std::string advice) {
    return Error{.code = Code::kUnimplemented,
                 .cause = what + ", and the samples of " + source.Describe() + " have objects ('" +
                          found->name + "')",
                 .advice = std::move(advice)};
  };
  if (CopiesRows(options) && std::ranges::any_of(fields, &Field::is_drawn)) {
    return refuse("rows are copied as they are, without drawing masks", "Give transforms");
  }
  if (!options.views.empty()) {
    return refuse("there are several views", "Use one list of transforms");
  }
  if (options.mix) {
    const std::string mix = NameOf(*options.mix);
    return refuse(mix + " mixes images and their labels", "Leave " + mix + " out");
  }
  if (options.to_device) {
    return refuse("batches go to a device", "Let the program copy batches to it");
  }
  return {};
}

// Returns the first field whose rows have several images; null if there is none.
const Field* FieldOfSeveral(std::span<const Field> fields) {
  const auto found =
      std::ranges::find_if(fields, [](const Field& field) { return field.count != 0; });
  return found == fields.end() ? nullptr : &*found;
}

// Refuses what needs the size of a row before all rows are written, if it is that of the batch's
// largest image.
Status CheckLargest(const LoaderOptions& options, const std::string& pad_to) {
  if (options.to_device) {
    return Error{.code = Code::kUnimplemented,
                 .cause = pad_to + ": a device has rows of one size for all batches",
                 .advice = "Give height and width, or let the program copy batches to it"};
  }
  if (const Field* const field = FieldOfSeveral(options.source->fields())) {
    return Error{.code = Code::kUnimplemented,
                 .cause = pad_to + ": '" + field->name +
                          "' has several images in a row, and its rows have one size for all "
                          "batches",
                 .advice = "Give height and width"};
  }
  return CheckMapsBatches(options, pad_to, "give PadTo a height and width");
}

// Refuses to mix images that differ in size, and refuses a field named like the column of sizes.
Status CheckPadding(const LoaderOptions& options) {
  const auto found = std::ranges::find_if(options.transforms, [](const Transform& transform) {
    return std::holds_alternative<PadTo>(transform);
  });
  if (found == options.transforms.end()) return {};
  const std::string pad_to =
      "transforms[" + std::to_string(found - options.transforms.begin()) + "], PadTo";
  if (options.mix) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string(NameOf(*options.mix)) +
                          " mixes images of one size, and with " + pad_to + ", they may differ",
                 .advice = "Leave one of them out, or crop images to one size instead of PadTo"};
  }
  if (std::get<PadTo>(*found).multiple != 0) TRY(CheckLargest(options, pad_to));
  return CheckIsFree(*options.source, kSizeColumn, pad_to + " adds");
}

// Refuses a cache, which keeps the first piece of a row, for rows of several samples.
Status CheckSeveral(const LoaderOptions& options) {
  const std::vector<Transform>& list = options.transforms;
  const auto found = std::ranges::find_if(list, &TakesSamples);
  if (found == list.end()) return {};
  const std::string name = NameOf(*found);
  const std::string makes = "transforms[" + std::to_string(found - list.begin()) + "], " + name +
                            ", makes rows of several samples";
  if (const Field* const field = FieldOfSeveral(options.source->fields())) {
    return Error{.code = Code::kUnimplemented,
                 .cause = makes + ", and '" + field->name + "' has several images of each",
                 .advice = "Leave " + name + " out"};
  }
  if (!options.cache) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = "a cache was given, and " + makes,
               .advice = "Leave cache out, or pack the images (`stoker pack`)"};
}

// Refuses to add columns of geometry to rows that have none or several, and next to fields with
// their names.
Status CheckGeometry(const LoaderOptions& options) {
  if (!options.geometry) return {};
  if (CopiesRows(options)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "rows are copied as they are, so they have no geometry",
                 .advice = "Give transforms",
                 .changes = {{OptionChange::How::kLeaveOut, "geometry"}}};
  }
  if (!options.views.empty()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "geometry cannot be given for several views",
                 .advice = "Use one list of transforms"};
  }
  if (options.mix) {
    const std::string mix = NameOf(*options.mix);
    return Error{.code = Code::kUnimplemented,
                 .cause = mix + " makes rows of two images, and the geometry is of one",
                 .advice = "Leave " + mix + " out"};
  }
  TRY(CheckIsFree(*options.source, kGeometryColumn, "the geometry adds"));
  return CheckIsFree(*options.source, kOriginalSizeColumn, "the geometry adds");
}

// Refuses options that conflict with views: transforms, mixing, and a field named like one of their
// columns. Plan::CompileViews checks the lists.
Status CheckViews(const LoaderOptions& options) {
  const size_t views = options.views.size();
  if (views == 0) return {};
  const auto refuse = [](std::string cause, std::string advice) {
    return Error{
        .code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
  };
  if (!options.transforms.empty()) {
    return refuse("there are both transforms and views",
                  "Put the transforms into each view that needs them");
  }
  if (views == 1) return refuse("there is one view", "Give its list as transforms");
  size_t transforms = 0;
  for (const std::vector<Transform>& view : options.views) transforms += CountOf(view);
  if (views > kMaxViews || transforms > kMaxTransforms) {
    return refuse("there are " + std::to_string(views) + " views with " +
                      std::to_string(transforms) + " transforms; the most are " +
                      std::to_string(kMaxViews) + " views with " + std::to_string(kMaxTransforms),
                  "Leave some of them out");
  }
  if (options.mix) {
    return refuse(std::string(NameOf(*options.mix)) + " cannot be used with several views",
                  "Leave it out, and mix the views in the program");
  }
  for (size_t view = 1; view < views; ++view) {
    TRY(CheckIsFree(*options.source, ViewColumn(*options.source, view), "the views add"));
  }
  return {};
}

}  // namespace

bool HasFurtherImages(const SampleSource& source) {
  return source.has_clips() ||
         std::ranges::count(source.fields(), Field::Kind::kImage, &Field::kind) > 1;
}

std::string ViewColumn(const SampleSource& source, size_t view) {
  return source.fields()[0].name + "_" + std::to_string(view);
}

Status CheckOptions(const LoaderOptions& options) {
  if (options.source == nullptr) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no source was given",
                 .advice = "Set options.source, for example to ImageFolder(directory)"};
  }
  TRY(CheckCalls(*options.source));
  TRY(CheckPieces(options));
  TRY(CheckHasObjects(options));
  TRY(CheckNumbers(options));
  TRY(CheckBuckets(options));
  TRY(CheckBatches(options));
  TRY(CheckProcessor(options));
  TRY(CheckRowPadding(options));
  TRY(CheckOutput(options));
  TRY(CheckImages(options));
  TRY(CheckPadding(options));
  TRY(CheckSeveral(options));
  TRY(CheckViews(options));
  TRY(CheckGeometry(options));
  if (options.epochs && (*options.epochs == 0 || *options.epochs > kMaxEpochs)) {
    return Error{Code::kInvalidArgument,
                 "epochs is " + std::to_string(*options.epochs) + "; it must be between 1 and " +
                     std::to_string(kMaxEpochs) + ", or left out for no limit"};
  }
  return {};
}

std::vector<ColumnSpec> FiguresOf(const LoaderOptions& options) {
  const ProcessorRecipe& recipe = options.processor->recipe();
  return FigureColumns(recipe, recipe.padded_rows != 0 || PadsRows(options));
}

uint32_t MostRows(const LoaderOptions& options) {
  return options.token_batches == nullptr ? options.batch_size : options.token_batches->most_rows();
}

SamplerOptions SamplerOptionsOf(const LoaderOptions& options) {
  const SampleOrder* order = options.source->order();
  const TokenBatches* tokens = options.token_batches.get();
  return {.samples = tokens != nullptr  ? tokens->batches(options.drop_remainder)
                     : order == nullptr ? options.source->size()
                                        : order->positions(),
          .shuffle = options.shuffle && order == nullptr,
          .order = order,
          .tokens = tokens,
          .seed = options.seed,
          .batch_size = tokens == nullptr ? options.batch_size : 1,
          .rank = options.rank,
          .world = options.world,
          .remainder = options.remainder,
          .drop_remainder = options.drop_remainder};
}

}  // namespace stoker
