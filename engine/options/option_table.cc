#include "engine/options/option_table.h"

#include <algorithm>
#include <vector>

#include "core/batch/device_crop.h"
#include "core/batch/image.h"
#include "gpu/staging/device_copier.h"

namespace stoker {

namespace {

using Choices = std::vector<OptionInfo::Choice>;

constexpr const char* kMain = "";  // the command's main group of options
constexpr const char* kForTesting = "For testing";
constexpr const char* kBad = "Bad samples";

template <auto member, typename Options = LoaderOptions>
OptionValue ValueOf(Options& options) {
  return ValueAt(options.*member);
}

// A number in [low, high].
template <auto member, typename Options = LoaderOptions>
Option<Options> Number(const char* name, double low, double high) {
  return {{.name = name, .low = low, .high = high}, &ValueOf<member, Options>};
}

template <auto member>
Option<LoaderOptions> Flag(const char* name) {
  return {{.name = name}, &ValueOf<member>};
}

template <auto member>
Option<LoaderOptions> ChoiceOf(const char* name, const Choices& choices) {
  return {{.name = name, .choices = choices}, &ValueOf<member>};
}

// An option whose type has Parse and ToString.
template <auto member>
OptionValue Parsed(LoaderOptions& options) {
  using Value = std::decay_t<decltype(options.*member)>;
  return TextValue{&(options.*member),
                   [](const void* from) { return static_cast<const Value*>(from)->ToString(); },
                   [](void* to, const std::string& text) -> std::optional<Refusal> {
                     Result<Value> value = Value::Parse(text);
                     if (!value.ok()) return Refusal{value.error().cause, value.error().advice};
                     *static_cast<Value*>(to) = *std::move(value);
                     return std::nullopt;
                   }};
}

template <auto member>
OptionValue AnyText(LoaderOptions& options) {
  return TextValue{&(options.*member),
                   [](const void* from) { return *static_cast<const std::string*>(from); },
                   [](void* to, const std::string& text) -> std::optional<Refusal> {
                     *static_cast<std::string*>(to) = text;
                     return std::nullopt;
                   }};
}

OptionValue ChannelsOf(LoaderOptions& options) {
  return TextValue{&options.channels,
                   [](const void* from) { return NameOf(*static_cast<const Channels*>(from)); },
                   [](void* to, const std::string& text) -> std::optional<Refusal> {
                     const Result<Channels> channels = ParseChannels(text);
                     if (!channels.ok())
                       return Refusal{channels.error().cause, channels.error().advice};
                     *static_cast<Channels*>(to) = *channels;
                     return std::nullopt;
                   }};
}

template <typename Enum>
OptionInfo::Choice ChoiceValue(Enum value) {
  return {NameOf(value), value};
}

std::vector<LoaderOptionRow> MakeTable() {
  using O = LoaderOptions;
  constexpr double kMaxRanks = 1 << 20, kMaxBatches = 4096;
  std::vector<LoaderOptionRow> table = {
      {.option = Number<&O::batch_size>("batch_size", 0, kMostBatchRows),
       .doc = "rows per batch",
       .more = "With batch_tokens, the most rows of one.",
       .zero = "no limit but batch_tokens",
       .flag_group = kMain},
      {.option = Number<&O::batch_tokens>("batch_tokens", 0, kMostTokens),
       .doc = "the most tokens of a batch, as `tokens` counts them, or the patches of a processor",
       .more = "Batches then have any number of rows. Each sample comes once in an epoch, and all "
               "epochs have the same number of batches, which the ranks share. A sample with more "
               "tokens is a ValueError that names it. `stats()[\"batch_fill\"]` says how full they "
               "are.",
       .zero = "batches of batch_size rows",
       .flag_group = kMain},
      {.option = {{.name = "tokens"}, &AnyText<&O::tokens>},
       .doc = "the column of the source that counts against batch_tokens: integers, (n,)",
       .zero = "the patches that a processor makes",
       .flag_group = kMain,
       .flag_value = "COLUMN"},
      {.option = ChoiceOf<&O::padding>(
           "padding", {{"none", RowPadding::kNone}, {"longest", RowPadding::kLongest}}),
       .doc = "how rows of a processor that differ in the number of patches or tiles are returned",
       .more =
           "\"none\": one after another (`Ragged`). \"longest\": `pixel_values` is (rows, "
           "longest, …), zeros after each row's own; `pixel_attention_mask`, int32 (rows, "
           "longest), is 1 for these. With batch_tokens, rows × longest is at most that, "
           "counted in `tokens` if these are given, and samples of a batch have similar numbers.",
       .flag_group = kMain},
      {.option = {{.name = "buckets"}, &Parsed<&O::buckets>},
       .doc = "lengths for the rows of SigLIP2's processor (NaFlex), one for each step of all "
              "processes: a `Buckets`, or as text \"128:0.5,256:2%8\": with weights, and a "
              "multiple of rows",
       .more = "A batch has batch_tokens // length rows, and sizes need not be known.",
       .zero = "all rows have the processor's max_num_patches",
       .flag_group = kMain,
       .flag_value = "LENGTHS"},
      {.option = Flag<&O::shuffle>("shuffle"), .doc = "a new order each epoch"},
      {.option = Number<&O::seed>("seed", 0, 0),  // a uint64_t, which has no bounds
       .doc = "seed of the order and of every random transform",
       .flag_group = kMain},
      {.option = ChoiceOf<&O::dtype>(
           "dtype", {ChoiceValue(DType::kU8), ChoiceValue(DType::kF16), ChoiceValue(DType::kBF16),
                     ChoiceValue(DType::kF32), ChoiceValue(DType::kU16)}),
       .doc = "data type of transformed images",
       .more = "Also takes the objects of NumPy, TensorFlow and JAX for these types. The "
               "conversion costs little, and rounds as astype does from float32. NumPy "
               "arrays of bfloat16 need the package ml_dtypes; tensors (`to_device`) do "
               "not.",
       .of_images = true},
      {.option =
           ChoiceOf<&O::layout>("layout", {ChoiceValue(Layout::kNhwc), ChoiceValue(Layout::kNchw)}),
       .doc = "memory layout of transformed images",
       .more = "\"NHWC\": channels last; \"NCHW\": a plane for each channel, as in PyTorch.",
       .of_images = true},
      {.option = {{.name = "channels"}, &ChannelsOf},
       .doc = "channels of transformed images: \"rgb\", \"gray\", \"rgba\", or their number",
       .more =
           "\"gray\": one, the luma: of a JPEG as it is stored, which is decoded without its "
           "colours, of others Pillow's convert(\"L\"). Transforms of colours compute with "
           "three equal channels; fills, means and the like must be the same for each. "
           "\"rgba\": colours and alpha, which is the largest value where a file has none. A "
           "number, 1 to 64: those of the file, as the bands of a TIFF; an image with another "
           "number is an error of its sample. With \"rgba\" or a number, images can be resized, "
           "cropped, flipped and normalised; transforms that change pixels are refused.",
       .of_images = true},
      {.option = Flag<&O::drop_remainder>("drop_remainder"),
       .doc = "leave out a last batch that is not full",
       .flag_group = kMain},
      {.option = Number<&O::rank>("rank", 0, kMaxRanks - 1),
       .doc = "index of this process, below `world`",
       .changes_batches = false,
       .flag_group = kForTesting},
      {.option = Number<&O::world>("world", 1, kMaxRanks),
       .doc = "number of processes that share the dataset",
       .flag_group = kForTesting},
      {.option = ChoiceOf<&O::remainder>(
           "remainder",
           {{"uneven", Remainder::kUneven}, {"drop", Remainder::kDrop}, {"pad", Remainder::kPad}}),
       .doc = "what happens to samples that do not divide evenly among the processes",
       .more =
           "\"uneven\": each comes exactly once; \"drop\": they are left out; \"pad\": the order "
           "starts again."},
      {.option = Flag<&O::exif_orientation>("exif_orientation"),
       .doc = "turn photographs as their EXIF tag says",
       .of_images = true},
      {.option = Flag<&O::geometry>("geometry"),
       .doc = "add columns that say where the points of each image are in its row",
       .more =
           "`geometry`, float32 (rows, 2, 3), maps (x, y, 1) of the image, turned as its EXIF "
           "tag says, to (x, y) of the row, in pixels from the top left corner; the centre of the "
           "first pixel is at (0.5, 0.5). `original_size`, int32 (rows, 2), has the image's "
           "height and width. Boxes and keypoints follow crops, flips and rotations by it."},
      {.option = ChoiceOf<&O::decode>(
           "decode", {ChoiceValue(DecodeSize::kFull), ChoiceValue(DecodeSize::kScaled)}),
       .doc = "decode JPEGs at their full size, or scaled down",
       .more =
           "\"scaled\": a JPEG whose crop is at least twice as high and as wide as what it is "
           "resized to is decoded at 1/2, 1/4 or 1/8 of its size, as by libjpeg's scale_denom "
           "and Pillow's draft, and then resized, which is faster for large photographs. Random "
           "crops are the same, to less than a pixel of the scaled image. This applies only to "
           "antialiased resizing by other filters than nearest, with the default `resampler`.",
       .of_images = true},
      // AddLimits in bindings/cli adds flags for these four, and not only to bench.
      {.option = {{.name = "max_pixels", .low = 1, .high = 1.0 * kMaxSidePixels * kMaxSidePixels},
                  [](O& options) -> OptionValue { return &options.limits.max_pixels; }},
       .doc = "refuse images with more pixels (width × height)",
       .more = "Such an image is a ResourceExhaustedError. This also limits what a JPEG "
               "of several scans (a progressive one) may cost: 4 bytes of memory for each "
               "of the pixels, and 16 scans of an image that large.",
       .of_images = true,
       .changes_batches = false,
       .decides = SampleFault::kOverLimits},
      {.option = {{.name = "max_scans", .low = 1, .high = 1e6},
                  [](O& options) -> OptionValue { return &options.limits.max_scans; }},
       .doc = "refuse JPEGs with more scans",
       .of_images = true,
       .changes_batches = false,
       .decides = SampleFault::kOverLimits},
      {.option = {{.name = "accept_truncated"},
                  [](O& options) -> OptionValue { return &options.limits.accept_truncated; }},
       .doc = "decode truncated JPEGs as far as they go",
       .more = "What is missing is as libjpeg leaves it: gray, or coarse in a progressive JPEG. "
               "`stats()` counts such samples as `accepted_truncated`. Without it, and for other "
               "formats, truncation is a DataLossError.",
       .of_images = true,
       .changes_batches = false,
       .decides = SampleFault::kTruncated},
      {.option = {{.name = "accept_16_bits"},
                  [](O& options) -> OptionValue { return &options.limits.accept_16_bits; }},
       .doc = "take the upper 8 bits of images of 16 bits",
       .more = "Suits photographs, of which Pillow (RGB) and TensorFlow also keep 8 bits; depths "
               "and masks of instances lose half of each number. Without it, such an image is an "
               "UnimplementedError with uint8, and keeps all bits with float types. It has no "
               "effect on uint16.",
       .of_images = true,
       .decides = SampleFault::kUnsupported},
      {.option = {{.name = "on_bad"}, &Parsed<&O::on_bad>},
       .doc = "what becomes of photographs and records that cannot be read or decoded: \"fail\", "
              "\"substitute\" or \"drop\"; or by class of faults, and the others fail: "
              "\"truncated=drop,vanished=substitute\"",
       .more =
           "\"fail\": an error takes the place of the batch; \"substitute\": a random other "
           "sample takes the sample's place, the same one in each run; \"drop\": the batch is a "
           "row shorter. Classes: vanished, unreadable, truncated, undecodable, over_limits, "
           "unsupported; and forbidden (a server answers 403), which is only handled by name. "
           "Also takes a dictionary of them.",
       .flag_group = kBad,
       .flag_value = "fail|substitute|drop|LIST"},
      {.option = Number<&O::max_bad_fraction>("max_bad_fraction", 0, 1),
       .doc = "share of the samples that may be substituted or dropped, after the first 1,000; "
              "beyond it the run ends with a DataLossError",
       .changes_batches = false,
       .flag_group = kBad},
      {.option = {{.name = "bad_samples_file"}, &AnyText<&O::bad_samples_file>},
       .doc = "a file that a line of JSON is appended to for each bad sample, when its batch is "
              "delivered",
       .more =
           "Its keys: path, offset (in bytes, or null), id, epoch, batch, start (of the epoch's "
           "batches: not 0 where other ranks had begun it), class, cause, action. "
           "Processes may share one on a local file system.",
       .zero = "no list",
       .changes_batches = false,
       .flag_group = kBad,
       .flag_value = "FILE"},
      {.option = {{.name = "cache"}, &Parsed<&O::cache>},
       .doc = "keeps photographs, packed, for later epochs and other processes: "
              "\"ram:8GiB\" in memory, \"dir:/scratch:200GB\" in a folder on a local disk",
       .more = "Batches are the same with and without it. Baseline JPEGs take about twice as long "
               "in the first epoch, and less than half as long in later ones. All processes with "
               "the same cache share it, and its size; what is kept in memory is freed with the "
               "last loader that uses it.",
       .zero = "no cache",
       .changes_batches = false,
       .flag_group = kMain,
       .flag_value = "PLACE"},
      {.option = Number<&O::depth>("depth", 0, kMaxBatches),
       .doc = "batches in production at once",
       .zero = "tuned, within the memory budget",
       .changes_batches = false,
       .flag_group = kMain},
      {.option = Number<&O::wait_target>("wait_target", 0.0001, 0.5),
       .doc = "target of tuning: the share of its time that the program may wait for "
              "batches, beyond what no setting could avoid",
       .changes_batches = false},
      {.option = Number<&O::weight>("weight", 0.001, 1000),
       .doc = "share of workers and memory when there is too little, relative to the "
              "other loaders of the Runtime",
       .changes_batches = false},
      {.option = Number<&O::lent_batches>("lent_batches", 0, kMaxBatches),
       .doc = "batches that the program may hold at once",
       .more = "Beyond it the next batch is a ResourceExhaustedError.",
       .zero = "no limit",
       .changes_batches = false},
      // Has no member: its readers open the device and set LoaderOptions::pinned_for.
      {.option = {{.name = "pin_memory"}, nullptr},
       .doc = "pin (page-lock) the memory of batches, so that GPUs copy from it "
              "directly; requires CUDA",
       .more = "This pins the batches in production and `lent_batches` more (4 without a "
               "limit), when the loader is made. It is for programs that copy batches "
               "themselves; `to_device` pins what it needs. A copy with non_blocking=True "
               "must be complete before the program drops the array, or the workers "
               "overwrite its source; TensorFlow keeps the array by itself. Loads CUDA's "
               "driver. A forked child cannot access batches that it inherits.",
       .changes_batches = false},
  };
  table[0].option.required = true;
  return table;
}

}  // namespace

std::span<const LoaderOptionRow> AllLoaderOptions() {
  static const std::vector<LoaderOptionRow> table = MakeTable();
  return table;
}

std::span<const DeviceOptionRow> AllDeviceOptions() {
  using D = DeviceOptions;
  static const std::vector<DeviceOptionRow> table = {
      {.option = Number<&D::buffers, D>("buffers", DeviceCopier::kFewestBuffers,
                                        DeviceCopier::kMaxBuffers),
       .doc = "number of batches to allocate on the device"},
      {.option = Number<&D::crop_bytes, D>("crop_bytes", 1, decode::kMaxCropBytes),
       .doc = "room for the bits of crops, for each row of a batch on average"},
  };
  return table;
}

const LoaderOptionRow& LoaderOptionNamed(std::string_view name) {
  return *std::ranges::find_if(
      AllLoaderOptions(), [name](const LoaderOptionRow& row) { return row.option.name == name; });
}

}  // namespace stoker
