#include "engine/production/mixer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/batch/deferred_ops.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "engine/production/check_options.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/resize/row_format.h"

namespace stoker {

namespace {

constexpr size_t kImages = 0;  // the index of the column

Error InvalidMix(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

bool Cuts(const BatchMix& mix) {
  return std::any_of(mix.choices.begin(), mix.choices.end(),
                     [](const auto& choice) { return std::holds_alternative<CutMix>(choice); });
}

// Returns the number of classes; an error if the source has no labels.
Result<int64_t> ClassesOf(const LoaderOptions& options) {
  const BatchMix& mix = *options.mix;
  const SampleSource& source = *options.source;
  const std::string name = NameOf(mix), option = name + ".num_classes";
  const auto known = static_cast<int64_t>(source.classes().size());
  const std::optional<size_t> label = source.label();
  if (!label) {
    return InvalidMix(name + " mixes labels, and " + source.Describe() + " has none");
  }
  if (const Field& labels = source.fields()[*label]; !labels.is_class_number()) {
    return InvalidMix(name + " needs one integer or bool per sample as label; the rows of '" +
                          labels.name + "' are " + DescribeRow(labels),
                      "Give class numbers");
  }
  if (mix.num_classes == 0 && known == 0) {
    return InvalidMix(option + " is not given, and " + source.Describe() +
                          " does not say how many classes there are",
                      "Give " + option);
  }
  if (mix.num_classes != 0 && mix.num_classes < known) {
    return InvalidMix(option + " is " + std::to_string(mix.num_classes) + ", but " +
                          source.Describe() + " has " + std::to_string(known) +
                          Plural(known, " class", " classes"),
                      "Leave it out, or raise it");
  }
  return mix.num_classes != 0 ? mix.num_classes : known;
}

// Describes a row that the plan produces: interleaved or planar channels.
MixedRow TransformedRow(const ColumnSpec& images, Layout layout) {
  const auto side = [&](size_t d) { return static_cast<size_t>(images.row_shape[d]); };
  if (layout == Layout::kNhwc) return {images.dtype, 1, side(0), side(1), side(2)};
  return {images.dtype, side(0), side(1), side(2), 1};
}

// Describes a copied row: any shape can be blended, but only one that looks like an image can be
// cut.
Result<MixedRow> CopiedRow(const Field& array, const BatchMix& mix) {
  if (!IsPixelType(array.dtype)) {
    return InvalidMix(std::string(NameOf(mix)) +
                          " mixes uint8, float16, bfloat16 or float32; the rows of '" + array.name +
                          "' are " + DescribeRow(array),
                      "Convert the array");
  }
  const std::vector<int64_t>& shape = array.row_shape;
  const auto side = [&](size_t d) { return static_cast<size_t>(shape[d]); };
  const bool is_image = shape.size() == 2 || (shape.size() == 3 && shape[2] <= 4);
  if (is_image && std::max(shape[0], shape[1]) <= kMaxSidePixels) {
    return MixedRow{array.dtype, 1, side(0), side(1), shape.size() == 2 ? 1 : side(2)};
  }
  if (!Cuts(mix))
    return MixedRow{.dtype = array.dtype, .values = array.row_bytes() / SizeOf(array.dtype)};
  return InvalidMix("CutMix needs images (height, width) or (height, width, 1 to 4), at most " +
                        std::to_string(kMaxSidePixels) + " on a side; the rows of '" + array.name +
                        "' are " + DescribeRow(array),
                    "Put the channels last, or use MixUp");
}

// Writes the mixing that MixRows would do into each row's deferred operations, for a device.
void DeferToDevice(const DrawnMix& drawn, Slot& slot) {
  for (int64_t row = 0; row < slot.rows; ++row) {
    void* const at = slot.Row(slot.columns.size() - 1, row);
    DeferredOps work;
    std::memcpy(&work, at, sizeof(work));
    work.mixing = drawn.cut ? RowMixing::kCut : RowMixing::kBlend;
    work.own = static_cast<float>(drawn.lam);
    work.others = static_cast<float>(1 - drawn.lam);
    work.cut = {drawn.box.x, drawn.box.y, drawn.box.width, drawn.box.height};
    std::memcpy(at, &work, sizeof(work));
  }
}

}  // namespace

Result<Mixer> Mixer::Make(const LoaderOptions& options, bool defer_to_device,
                          std::vector<ColumnSpec>& columns) {
  TRY(CheckMix(*options.mix));
  ASSIGN_OR_RETURN(int64_t classes, ClassesOf(options));
  Mixer mixer;
  mixer.mix_ = *options.mix;
  if (CopiesRows(options)) {
    ASSIGN_OR_RETURN(mixer.image_, CopiedRow(options.source->fields()[kImages], *options.mix));
  } else {
    if (!IsPixelType(options.dtype)) {
      return InvalidMix(
          std::string(NameOf(*options.mix)) + " does not mix " + NameOf(options.dtype),
          "Ask for uint8, float16, bfloat16 or float32");
    }
    mixer.on_device_ = defer_to_device;
    const Layout layout = defer_to_device ? Layout::kNhwc : options.layout;
    mixer.image_ = TransformedRow(columns[kImages], layout);
  }
  mixer.label_ = {.dtype = DType::kF32, .values = static_cast<size_t>(classes)};
  mixer.label_column_ = *options.source->label();  // the column of a field has its number
  mixer.label_field_ = options.source->fields()[mixer.label_column_];
  columns[mixer.label_column_].dtype = DType::kF32;
  columns[mixer.label_column_].row_shape = {classes};
  return mixer;
}

Status Mixer::WriteLabels(const SampleSource& source, std::span<const uint64_t> ids, Slot& slot,
                          uint32_t row) const {
  constexpr size_t kAtATime = 32;
  const size_t bytes = label_field_.row_bytes();
  std::array<uint64_t, kAtATime> labels{};  // each as large as any integer
  while (!ids.empty()) {
    const std::span<const uint64_t> now = ids.first(std::min(ids.size(), kAtATime));
    source.FixedRows(label_column_, now, labels.data());
    const auto* label = reinterpret_cast<const uint8_t*>(labels.data());
    for (const uint64_t id : now) {
      TRY(WriteLabel(label, id, slot, row++));
      label += bytes;
    }
    ids = ids.subspan(now.size());
  }
  return {};
}

Status Mixer::WriteLabel(const uint8_t* row_of_label, uint64_t id, Slot& slot, uint32_t row) const {
  const int64_t label = label_field_.ClassNumberIn(row_of_label);
  auto* const one_hot = static_cast<float*>(slot.Row(label_column_, row));
  std::fill_n(one_hot, label_.values, 0.0F);
  if (label >= 0 && static_cast<uint64_t>(label) < label_.values) {
    one_hot[label] = 1;
    return {};
  }
  return InvalidMix("the label of sample " + std::to_string(id) + " is " + std::to_string(label) +
                        "; with " + NameOf(mix_) + " it must be between 0 and " +
                        std::to_string(label_.values - 1),
                    std::string("Raise ") + NameOf(mix_) + ".num_classes, or correct the label");
}

void Mixer::Mix(Slot& slot, const DrawKey& first_row) const {
  const ImageSize image{static_cast<int>(image_.width), static_cast<int>(image_.height)};
  const DrawnMix drawn = DrawMix(mix_, first_row, image);
  const auto rows = static_cast<size_t>(slot.rows);
  if (on_device_) {
    DeferToDevice(drawn, slot);
  } else {
    MixRows(drawn, image_, rows, slot.columns[kImages].data);
  }
  MixRows({false, drawn.lam, {}}, label_, rows, slot.columns[label_column_].data);
}

}  // namespace stoker
