#include "bindings/cli/show/show.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "bindings/cli/show/labels.h"
#include "bindings/sheet/sheet.h"
#include "bindings/sheet/sheet_png.h"
#include "core/result/try.h"
#include "core/system/output_file.h"
#include "engine/loader/loader.h"
#include "engine/production/producer_parts.h"
#include "transforms/plan/plan.h"

namespace stoker {

namespace {

// Checks that no other file than a sheet is replaced. Others that cannot be written, such as
// folders, are left to CheckCanWrite.
Status CheckIsSheet(const std::string& out) {
  const int descriptor = open(out.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return {};
  struct stat info {};
  const bool regular = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  std::array<uint8_t, kSheetBeginBytes> begin{};
  const ssize_t got = regular ? pread(descriptor, begin.data(), begin.size(), 0) : 0;
  close(descriptor);
  if (!regular || (got > 0 && BeginsAsSheet({begin.data(), static_cast<size_t>(got)}))) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "cannot write: a file that is not a contact sheet is in the way",
               .file = out,
               .advice = "Name another file"};
}

// The transform that Draw undoes; nullopt if the list has none.
std::optional<Normalize> NormalizeOf(std::span<const Transform> transforms) {
  for (const Transform& transform : transforms) {
    if (const auto* const normalize = std::get_if<Normalize>(&transform)) return *normalize;
  }
  return std::nullopt;
}

uint8_t ByteOf(float fraction) {
  if (!(fraction > 0)) return 0;  // a NaN, too
  return static_cast<uint8_t>(std::lround(std::min(fraction, 1.0F) * 255));
}

std::vector<uint8_t> BytesOfFractions(std::span<const float> values, size_t channels,
                                      const Normalize& undone) {
  std::vector<uint8_t> bytes(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t c = i % channels;
    bytes[i] = ByteOf(values[i] * ChannelOf(undone.std, c) + ChannelOf(undone.mean, c));
  }
  return bytes;
}

// Returns the first three channels of each pixel, or the first one three times.
std::vector<uint8_t> ToRgb(std::span<const uint8_t> values, size_t channels) {
  std::vector<uint8_t> rgb;
  rgb.reserve(values.size() / channels * 3);
  for (size_t i = 0; i < values.size(); i += channels) {
    for (size_t c = 0; c < 3; ++c) rgb.push_back(values[i + (channels < 3 ? 0 : c)]);
  }
  return rgb;
}

// The labels of the objects: "labels", or the first number of a class.
std::vector<int64_t> LabelsOf(const Batch& batch, const SampleSource& source) {
  const Field* labels = nullptr;
  for (const Field& field : source.fields()) {
    if (field.kind != Field::Kind::kObject || !field.is_class_number()) continue;
    if (labels == nullptr || field.name == "labels") labels = &field;
  }
  const Column* const column = labels == nullptr ? nullptr : batch.column(labels->name);
  std::vector<int64_t> numbers;
  if (column == nullptr) return numbers;
  const auto* const rows = static_cast<const uint8_t*>(column->data);
  for (int64_t i = 0; i < column->shape[0]; ++i) {
    const size_t at = static_cast<size_t>(i) * labels->row_bytes();
    numbers.push_back(labels->ClassNumberIn(rows + at));
  }
  return numbers;
}

// The objects of a batch that are drawn.
SheetObjects ObjectsOf(const Batch& batch, const SampleSource& source,
                       const std::vector<int64_t>& labels) {
  SheetObjects objects;
  for (const Field& field : source.fields()) {
    const Column* const column = field.is_of_objects() ? batch.column(field.name) : nullptr;
    if (column == nullptr || field.kind == Field::Kind::kObject) continue;
    objects.offsets = {column->offsets, static_cast<size_t>(batch.rows() + 1)};
    if (field.kind == Field::Kind::kBoxes) {
      objects.boxes = column->as<const float>().data();
      objects.format = field.box_format;
    } else {
      objects.points = column->as<const float>().data();
      objects.points_each = field.row_shape[0];
    }
  }
  if (!labels.empty()) objects.labels = labels.data();
  return objects;
}

Result<WholeImage> Draw(const Batch& batch, const SampleSource& source, int64_t columns,
                        const Normalize& undone) {
  const Column& images = batch.images();
  std::vector<uint8_t> bytes;
  const auto channels = static_cast<size_t>(images.shape[3]);
  if (images.dtype == DType::kF32) bytes = BytesOfFractions(images.as<float>(), channels, undone);
  if (channels != 3) bytes = ToRgb(bytes.empty() ? images.as<uint8_t>() : bytes, channels);
  const std::vector<int64_t> labels = LabelsOf(batch, source);
  SheetRows rows{.count = images.shape[0],
                 .size = {static_cast<int>(images.shape[2]), static_cast<int>(images.shape[1])},
                 .images = bytes.empty() ? images.as<uint8_t>().data() : bytes.data(),
                 .objects = ObjectsOf(batch, source, labels)};
  const Column* const mask = batch.column("mask");
  if (mask != nullptr && std::ranges::equal(mask->shape, std::span(images.shape).first(3))) {
    if (mask->dtype == DType::kU8) rows.masks = mask->as<const uint8_t>().data();
    if (mask->dtype == DType::kU16) rows.masks_of_16_bits = mask->as<const uint16_t>().data();
  }
  return DrawSheet(rows, columns);
}

// Sets the recipe, and that one batch is made, of bytes or float32.
void CompleteOptions(const cli::Recipe& recipe, LoaderOptions& loader) {
  loader.transforms = recipe.transforms;
  std::erase_if(loader.transforms, [](const Transform& transform) {  // Draw has the source's format
    return std::holds_alternative<ConvertBoundingBoxFormat>(transform);
  });
  loader.mix = recipe.mix;
  // Some transforms act differently on fractions, so the recipe decides.
  const bool bytes = recipe.options.dtype == DType::kU8;
  loader.dtype = bytes ? DType::kU8 : DType::kF32;
  loader.layout = Layout::kNhwc;
  loader.channels = recipe.options.channels;
  loader.exif_orientation = recipe.options.exif_orientation;
  loader.decode = recipe.options.decode;
  loader.limits = recipe.options.limits;
  loader.batch_size =
      static_cast<uint32_t>(std::clamp<uint64_t>(loader.source->size(), 1, loader.batch_size));
  loader.depth = 1;
  loader.epochs = 1;
}

// The limits of a sheet are checked before memory is reserved for the batch.
Status CheckSize(const cli::Recipe& recipe, int64_t count, int64_t columns) {
  ASSIGN_OR_RETURN(const Plan plan, Plan::Compile(recipe.transforms, recipe.options));
  Result<ImageSize> sheet = SizeOfSheet(count, plan.output_size(), columns);
  return sheet.ok() ? Status() : std::move(sheet).error();
}

Result<std::shared_ptr<Loader>> OpenLoader(LoaderOptions options) {
  Result<std::shared_ptr<Loader>> loader = Loader::Open(std::move(options));
  if (loader.ok() || loader.error().code != Code::kResourceExhausted) return loader;
  Error error = std::move(loader).error();
  error.changes.clear();  // of options that this command does not have
  error.advice = "Show fewer or smaller images";
  return error;
}

Result<Batch> FirstBatch(Loader& loader, const Interrupt& interrupt) {
  ASSIGN_OR_RETURN(Batch batch, loader.Iterate(0)->Next(interrupt));
  if (batch) return batch;
  return Error{.code = Code::kNotFound, .cause = "there is no sample to show"};
}

}  // namespace

Result<ShowReport> Show(ShowOptions options, cli::Recipe recipe, const Interrupt& interrupt) {
  if (!recipe.views.empty()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = recipe.name + " has several views, and a contact sheet shows one",
                 .advice = "Put the transforms of one view into a recipe of their own"};
  }
  TRY(CheckIsSheet(options.out));
  TRY(CheckCanWrite(options.out));
  CompleteOptions(recipe, options.loader);
  const std::shared_ptr<const SampleSource> source = options.loader.source;
  recipe.options.objects = PlannedObjects(*source);
  TRY(CheckSize(recipe, options.loader.batch_size, options.columns));
  ASSIGN_OR_RETURN(const std::shared_ptr<Loader> loader, OpenLoader(std::move(options.loader)));
  ASSIGN_OR_RETURN(const Batch batch, FirstBatch(*loader, interrupt));
  const Normalize undone = NormalizeOf(recipe.transforms).value_or(Normalize{});
  ASSIGN_OR_RETURN(const WholeImage sheet, Draw(batch, *source, options.columns, undone));
  ASSIGN_OR_RETURN(const std::vector<uint8_t> file, EncodeSheet(sheet));
  TRY(WriteFile(options.out, {reinterpret_cast<const char*>(file.data()), file.size()}));
  ShowReport report{.source = source->Describe(),
                    .out = options.out,
                    .size = sheet.size,
                    .bytes = file.size(),
                    .columns = std::min(options.columns, batch.rows()),
                    .samples = static_cast<uint64_t>(batch.rows()),
                    .labels = {}};
  if (const std::optional<size_t> label = source->label()) {
    const Column* const column = batch.column(source->fields()[*label].name);
    if (column != nullptr) report.labels = LabelTexts(*column, source->classes());
  }
  return report;
}

}  // namespace stoker
