// Plan::Apply: decodes, resamples and augments samples into rows.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "transforms/augment/emit_tile.h"
#include "transforms/decode/push_region.h"
#include "transforms/device/crop_maker.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"
#include "transforms/plan/resampling.h"
#include "transforms/plan/row/defer_to_device.h"
#include "transforms/plan/row/erase.h"
#include "transforms/plan/row/pad_row.h"
#include "transforms/plan/row/put_crop.h"
#include "transforms/plan/workspace.h"
#include "transforms/resize/emit.h"
#include "transforms/wide/wide_decoder.h"

namespace stoker {

namespace {

// Returns the address of the first pixel of a part of a row.
uint8_t* PixelOf(const RowFormat& format, void* row, const Rect& part) {
  return static_cast<uint8_t*>(row) + part.y * format.down + part.x * format.along;
}

PixelOutput CanvasOutput(const Tile& tile, bool gray) {
  return {.row = tile.pixels, .layout = Layout::kNchw, .row_size = tile.size, .gray = gray};
}

}  // namespace

// Returns whether there are pixels to decode.
Result<bool> Plan::Open(const EncodedImage& image, ImageContext& context) const {
  if (mask_) return OpenMask(image, context);
  ASSIGN_OR_RETURN(ImageInfo info, context.decoder.Open(image.bytes));
  const StoredImage stored = Stored(info, context);
  const WideFormat format(info, options_.channels, options_.dtype, options_.limits);
  TRY(CheckCount(format));
  if (format.bits < info.bits) TRY(CheckBits(info, options_.limits));
  if (format.is_wide) return ApplyWide(image, info, stored, format, context);
  ASSIGN_OR_RETURN(Rect region, StartRows(image, stored, context));
  if (region.width == 0) return false;  // only padding
  context.decoder.Start(region, context.sink(), image.crop_index, context.reduction);
  return true;
}

// Notes the size of the open image as viewed. Returns the image as stored.
Plan::StoredImage Plan::Stored(const ImageInfo& info, ImageContext& context) const {
  const Orientation orientation =
      options_.exif_orientation ? info.orientation : Orientation::kNormal;
  context.viewed = Viewed(info.size, orientation);
  return {info.size, orientation, MaxReduction(info)};
}

// Decodes and resamples a wide image (WideFormat) at once. Returns false: the row needs no other
// pixels.
Result<bool> Plan::ApplyWide(const EncodedImage& image, const ImageInfo& info,
                             const StoredImage& stored, const WideFormat& format,
                             ImageContext& context) const {
  TRY(CheckWide(info));
  TRY(CheckKept(context.decoder, info, format));
  ViewContext& view = context.views[0];
  view.to = image.to;
  TRY(DrawRow(image.key, context.viewed, view));
  const DrawnSample& drawn = view.drawn;
  assert(drawn.steps.empty() && !drawn.placed);
  const Resampling task = ResamplingOf(drawn.geometry, stored.size, stored.orientation);
  TRY(context.wide.Decode(context.decoder, info, format, task,
                          OutputTo(view.to.row, RowSize(drawn.size)), image.crop_index));
  return false;
}

// Refuses plans that compute with 8 bits, if only for some samples: which ones fail must not depend
// on what is drawn for them.
Status Plan::CheckWide(const ImageInfo& info) const {
  if (!takes_steps()) return {};  // Compile has refused them
  const auto tile = std::ranges::find(sites_, ExecutionSite::kTile);
  std::optional<size_t> index;
  if (staged_bytes() != 0) index = pad_to_index_;
  if (tile != sites_.end()) index = static_cast<size_t>(tile - sites_.begin());
  if (mosaic_) index = 0;
  std::string what =
      options_.defer_to_device ? "rows that a device finishes are" : "several views are";
  if (!options_.defer_to_device && views() == 1) {
    if (!index) return {};
    what = "transforms[" + std::to_string(*index) + "], " + NameOf(transforms_[*index]) + ", is";
  }
  return Error{.code = Code::kUnimplemented,
               .cause = std::string("a ") + NameOf(info.format) + " of 16 bits a channel, and " +
                        what + " computed with 8",
               .advice = options_.defer_to_device
                             ? "Ask for dtype uint16, or copy batches to the device in the program"
                             : "Leave it out, or convert the image",
               .changes = {{OptionChange::How::kUse, "accept_16_bits"}}};
}

Status Plan::Apply(const EncodedImage& image, Workspace& workspace, StageTimes& times) const {
  PlanRun run(*this, workspace, times);
  run.Begin(image);
  for (;;) {
    if (std::optional<FinishedRows> rows = run.Advance()) return std::move(rows->status);
  }
}

Status Plan::Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace,
                   void* row, StageTimes& times, std::span<const uint8_t> crop_index, void* work,
                   int32_t* size) const {
  return Apply({.bytes = bytes,
                .key = key,
                .to = {.row = row, .work = work, .size = size},
                .crop_index = crop_index},
               workspace, times);
}

Status Plan::Apply(const ImageView& image, const DrawKey& key, Workspace& workspace,
                   const OutputRows& to, StageTimes& times) const {
  const StageWatch watch(workspace, times);
  TRY(CheckSides(image.size));
  ImageContext& context = workspace.contexts[0];
  if (key.part == 0) context.views[0].on_canvas = 0;
  EncodedImage unencoded{.key = key, .to = to};
  const ImageInfo info{.size = image.size,
                       .components = image.layout == PixelLayout::kGray ? 1 : 3};
  const WideFormat format(info, options_.channels, options_.dtype, options_.limits);
  TRY(CheckCount(format));
  if (format.is_wide) {
    ViewContext& view = context.views[0];
    view.to = to;
    TRY(DrawRow(key, image.size, view));
    return context.wide.Decode(image, format,
                               ResamplingOf(view.drawn.geometry, image.size, Orientation::kNormal),
                               OutputTo(to.row, RowSize(view.drawn.size)));
  }
  unencoded.to.crop_at = nullptr;  // no device decodes it
  ASSIGN_OR_RETURN(Rect region, StartRows(unencoded, {image.size}, context));
  Status status = region.width == 0 ? Status()
                                    : PushRegion(PartOf(image, region), region,
                                                 context.gray_rows.Before(context.sink()));
  if (status.ok()) status = EmitRows(context);
  FlushEmitted();
  return status;
}

PixelOutput Plan::OutputTo(void* row, ImageSize row_size) const {
  PixelOutput output = FinishedTo(row, row_size);
  if (staged_bytes() == 0) return output;
  output.row = static_cast<uint8_t*>(row) + row_bytes() - staged_bytes();
  output.dtype = DType::kU8;
  return output;
}

PixelOutput Plan::FinishedTo(void* row, ImageSize row_size) const {
  return {row,      dtype(),   scale_.data(), bias_.data(), layout(), options_.read_later,
          row_size, is_gray(), channels()};
}

RowFormat Plan::PaddingFormat(void* row, ImageSize row_size) const {
  constexpr float kZero[3] = {};
  PixelOutput output = FinishedTo(row, row_size);
  if (pads_finished_) output.scale = output.bias = kZero;
  return {output, row_size};
}

// Draws the sample's views and prepares their resamplers. Returns the region to decode, of the
// reduced image, empty if there is nothing to decode.
Result<Rect> Plan::StartRows(const EncodedImage& image, const StoredImage& stored,
                             ImageContext& context) const {
  const ImageSize viewed = Viewed(stored.size, stored.orientation);
  Reduction possible = stored.most;
  for (size_t i = 0; i < views(); ++i) {
    ViewContext& of_view = context.views[i];
    of_view.to = i == 0 ? image.to : OutputRows{.row = image.to.other_rows[i - 1]};
    DrawKey key = image.key;
    key.view += static_cast<uint32_t>(i);
    TRY(view(i).DrawRow(key, viewed, of_view));
    possible = ReductionOf(of_view.drawn.geometry, possible);
  }
  context.reduction = options_.decode == DecodeSize::kScaled ? possible : 1;
  if (options_.decode_on_device && image.to.crop_at != nullptr &&
      StartCrop(image, stored, context)) {
    return Rect{};
  }
  if (possible > 1) ++(context.reduction > 1 ? context.scaled : context.scalable);
  if (views() == 1) return StartRow(stored, context.reduction, context.views[0]);
  context.all_views.Clear();
  Status status;
  for (size_t i = 0; i < views(); ++i) {
    Result<Rect> region = view(i).StartRow(stored, context.reduction, context.views[i]);
    if (!region.ok()) {
      const uint64_t more = status.ok() ? 0 : status.error().wanted_bytes;
      status = AndMore(std::move(region).error(), more);
    } else if (region->width != 0) {
      context.all_views.Add(*region, context.views[i].resampler);
    }
  }
  if (!status.ok()) return std::move(status).error();
  return context.all_views.region();
}

std::optional<AxisSpan> Plan::RowsOf(const DrawKey& key, ImageSize stored,
                                     Orientation orientation) const {
  if (mask_ || draws_by_boxes_ || in_order() || !CheckSides(stored).ok()) return std::nullopt;
  // Upsampling blends rows of chroma: the one above begins up to 3 rows of pixels higher.
  constexpr int kBlended = 3;
  constexpr Reduction kMost = 8;  // of any image
  if (!options_.exif_orientation) orientation = Orientation::kNormal;
  AxisSpan all{.begin = stored.height, .end = 0};
  DrawnSample drawn;
  for (size_t i = 0; i < views(); ++i) {
    DrawKey of_view = key;
    of_view.view += static_cast<uint32_t>(i);
    if (!view(i).Draw(of_view, Viewed(stored, orientation), drawn).ok()) return std::nullopt;
    // How far an image can be reduced depends on more than its size, and on the other views.
    const bool scaled = options_.decode == DecodeSize::kScaled;
    const Reduction most = scaled ? ReductionOf(drawn.geometry, kMost) : 1;
    for (Reduction reduction = 1; reduction <= most; reduction *= 2) {
      const AxisSpan rows =
          stoker::RowsOf(ResamplingOf(drawn.geometry, stored, orientation, reduction));
      if (rows.begin == rows.end) continue;
      all.begin = std::min(all.begin, std::max(0, (rows.begin - kBlended) * reduction));
      all.end = std::max(all.end, std::min(stored.height, (rows.end + kBlended) * reduction));
    }
  }
  return all.begin < all.end ? std::optional(all) : std::nullopt;
}

// Draws a sample that has objects, which are written with its first piece. Other pieces need boxes
// for the same draw.
Status Plan::DrawWithObjects(const DrawKey& key, ImageSize viewed, ViewContext& context) const {
  const ObjectRows& rows = *context.to.objects;
  const bool writes = !rows.to.empty();
  if (!writes && !draws_by_boxes_) return Draw(key, viewed, context.drawn);
  const auto load = writes ? MovedObjects::Load::kAll : MovedObjects::Load::kBoxes;
  TRY(context.objects.Read(options_.objects, rows, viewed, load, has_canvas_ ? 1 : copies_));
  TRY(Draw(key, viewed, context.drawn, &context));
  if (!writes) return {};
  const size_t after = key.part == 0 ? 0 : static_cast<size_t>(*rows.kept);
  context.objects.Write(rows, after);
  DrawnSample& drawn = context.drawn;
  const Placement* const placed = drawn.placed ? &*drawn.placed : nullptr;
  if (has_canvas_ || rows.masks.empty() || (placed != nullptr && IsEmpty(placed->part))) return {};
  const Rect window = drawn.geometry.window;
  if (placed != nullptr && drawn.steps.empty()) ShowPart(*placed, drawn.geometry);
  Status status = context.shapes.Draw(context.ImagesOf(drawn, viewed), context.objects.kept(),
                                      {.size = placed != nullptr ? placed->part.size() : drawn.size,
                                       .row = RowSize(drawn.size),
                                       .placed = placed,
                                       .after = after},
                                      context.augmenter);
  drawn.geometry.window = window;
  return status;
}

// Makes the tile of a Mosaic's canvas, if this is the first of its images, and keeps what
// FinishCanvas needs of the image.
Status Plan::KeepOnCanvas(const DrawKey& key, ImageSize viewed, ViewContext& context) const {
  context.row = key;
  if (LacksImages(context)) return {};
  const ImageSize tile = context.drawn.canvas->tile.size();
  if (mosaic_ && key.part == 0) TRY(context.augmenter.Start(tile));
  ViewContext::OnCanvas& kept = context.canvas[key.part];
  kept.drawn = context.drawn;
  kept.size = viewed;
  kept.steps = kept.drawn.steps.size();
  if (mosaic_) {
    auto& [rect, image, fill, corner] = *kept.drawn.placed;
    image.x += rect.x;
    image.y += rect.y;
    rect = {0, 0, tile.width, tile.height};
    ShowPart(*kept.drawn.placed, kept.drawn.geometry);
  }
  kept.masks.clear();
  kept.values.clear();
  kept.kept.clear();
  const ObjectRows* const rows = context.to.objects;
  if (options_.objects.empty() || rows == nullptr || rows->to.empty()) return {};
  const std::span<const uint32_t> objects = context.objects.kept();
  kept.kept.assign(objects.begin(), objects.end());
  kept.first = static_cast<uint32_t>(static_cast<size_t>(*rows->kept) - objects.size());
  kept.masks.assign(rows->masks.begin(), rows->masks.end());
  for (const ShapeMask& mask : rows->masks) {
    kept.values.insert(kept.values.end(), mask.values.begin(), mask.values.end());
  }
  size_t at = 0;
  for (ShapeMask& mask : kept.masks) {
    mask.values = std::span(kept.values)
                      .subspan(std::exchange(at, at + mask.values.size()), mask.values.size());
  }
  return {};
}

// Whether an image before this one is not on the canvas, because it has an error. The row is then
// lost.
bool Plan::LacksImages(const ViewContext& context) const {
  return has_canvas_ && context.on_canvas != context.row.part;
}

// Changes the canvas as the transforms after the Mosaic say, and writes the row. Until then, the
// row has the objects of all images, where they are on the canvas.
Status Plan::FinishCanvas(ViewContext& context) const {
  const ObjectRows* const to = context.to.objects;
  const bool has_objects = !options_.objects.empty() && to != nullptr && !to->to.empty();
  ObjectRows rows;
  if (has_objects) {
    std::vector<std::span<const uint8_t>>& from = context.object_fields;
    from.clear();
    rows = *to;
    rows.count = static_cast<uint32_t>(*to->kept);
    size_t bytes = 0;
    for (const ObjectField& field : options_.objects) bytes += rows.count * field.bytes;
    TRY(context.values.Grow(bytes));
    uint8_t* copy = context.values.data();
    for (size_t i = 0; i < options_.objects.size(); ++i) {
      bytes = rows.count * options_.objects[i].bytes;
      if (bytes != 0) std::memcpy(copy, rows.to[i], bytes);
      from.emplace_back(copy, bytes);
      copy += bytes;
    }
    rows.from = from;
    TRY(context.objects.Read(canvas_objects_, rows, context.drawn.canvas->all.size(),
                             MovedObjects::Load::kAll, copies_));
  }
  TRY(DrawCanvas(context, has_objects));
  if (has_objects) context.objects.Write(rows);
  if (has_objects && !rows.masks.empty()) {
    TRY(context.shapes.Draw(context.ImagesOf(context.drawn, {}), context.objects.kept(),
                            {.size = output_, .row = output_}, context.of_shapes));
  }
  return Augment(context);
}

// Returns the part whose image is the cause of the canvas's error: the one whose shapes are wrong,
// or else the one with the most objects.
uint32_t Plan::FailedPart(ViewContext& context) {
  if (const std::optional<size_t> image = context.shapes.TakeFailed()) {
    return static_cast<uint32_t>(*image);
  }
  const auto images = std::span(context.canvas).first(context.on_canvas);
  const auto count = [](const ViewContext::OnCanvas& image) { return image.kept.size(); };
  return static_cast<uint32_t>(std::ranges::max_element(images, {}, count) - images.begin());
}

// Draws one view.
Status Plan::DrawRow(const DrawKey& key, ImageSize viewed, ViewContext& context) const {
  DrawnSample& drawn = context.drawn;
  if (options_.objects.empty() || context.to.objects == nullptr) {
    TRY(Draw(key, viewed, drawn));
  } else {
    TRY(DrawWithObjects(key, viewed, context));
  }
  if (has_canvas_) TRY(KeepOnCanvas(key, viewed, context));
  if (context.to.size != nullptr) {
    context.to.size[0] = drawn.size.height;
    context.to.size[1] = drawn.size.width;
  }
  if (context.to.geometry != nullptr)
    std::ranges::copy_n(MapToRow(drawn).begin(), 6, context.to.geometry);
  if (context.to.original_size != nullptr) {
    context.to.original_size[0] = viewed.height;
    context.to.original_size[1] = viewed.width;
  }
  if (options_.defer_to_device) {
    if (pads_finished_) EraseAround(drawn, output_);
    DeferToDevice(drawn, output_, boxes(), context.to.work);
  }
  return {};
}

// Prepares one view's resampler. Returns the region that it needs, as StartRows does.
Result<Rect> Plan::StartRow(const StoredImage& stored, Reduction reduction,
                            ViewContext& context) const {
  const DrawnSample& drawn = context.drawn;
  if (LacksImages(context) || (drawn.placed && IsEmpty(drawn.geometry.window))) return Rect{};
  PixelOutput output = OutputTo(context.to.row, RowSize(drawn.size));
  if (!drawn.steps.empty() || pastes_others()) {
    const Status started = context.augmenter.Start(drawn.geometry.window.size());
    if (!started) return started.error();
    output = {.row = context.augmenter.tile().pixels, .layout = Layout::kNchw, .gray = is_gray()};
  } else if (drawn.placed) {
    const auto& [part, image, fill, corner] = *drawn.placed;
    if (has_canvas_) output = CanvasOutput(context.augmenter.tile(), is_gray());
    const RowFormat format(output, has_canvas_ ? output.row_size : output_);
    output.row = PixelOf(format, PixelOf(format, output.row, part), image);
  }
  return context.resampler.Start(
      ResamplingOf(drawn.geometry, stored.size, stored.orientation, reduction), output);
}

// Counts whether the device gets the image's crop; false if the worker must decode it.
bool Plan::StartCrop(const EncodedImage& image, const StoredImage& stored,
                     ImageContext& context) const {
  *image.to.crop_at = decode::kNoCrop;
  if (const auto why = GiveCrop(image, stored, context)) {
    ++context.on_worker[static_cast<size_t>(*why)];
    return false;
  }
  ++context.on_device;
  return true;
}

// Gives the image's crop to the device, or says why not.
std::optional<OnWorker> Plan::GiveCrop(const EncodedImage& image, const StoredImage& stored,
                                       ImageContext& context) const {
  const packed::PackedFile* const packed = context.decoder.packed_file();
  const std::optional<IndexedJpeg> jpeg = context.decoder.indexed_jpeg(image.crop_index);
  if (packed == nullptr && !jpeg) return OnWorker::kNotPrepared;
  const DrawnSample& drawn = context.views[0].drawn;
  if (image.to.crops == nullptr || !drawn.steps.empty() || context.reduction != 1) {
    return OnWorker::kUnsupported;
  }
  const Resampling task = ResamplingOf(drawn.geometry, stored.size, stored.orientation);
  CropMaker& maker = context.crop_maker;
  const uint64_t room = image.to.crops->bytes_left();
  const Status planned =
      packed != nullptr ? maker.Plan(*packed, task, room) : maker.Plan(*jpeg, task, room);
  if (!planned.ok()) return ReasonOf(planned.error());
  if (!PutCrop(maker, *image.to.crops, *image.to.crop_at)) return OnWorker::kNoRoom;
  if (jpeg && jpeg->no_end_marker) ++context.no_end_marker;
  return std::nullopt;
}

// Completes the rows of all views once the geometry's pixels are written.
Status Plan::EmitRows(ImageContext& context) const {
  if (mask_) return EmitMask(context.views[0]);
  if (views() > 1) context.all_views.Finish();
  for (size_t i = 0; i < views(); ++i) TRY(view(i).EmitRow(context.views[i]));
  return {};
}

Status Plan::EmitRow(ViewContext& context) const {
  if (pad_to_ && !pads_batches()) Surround(context);
  if (has_canvas_) return EmitOnCanvas(context);
  if (context.drawn.placed) return EmitPart(context);
  return context.drawn.steps.empty() && context.drawn.erasures.empty() ? Status()
                                                                       : Augment(context);
}

// Writes the pixels of the row outside its image.
void Plan::Surround(ViewContext& context) const {
  const uint64_t start = NowNanoseconds();
  PadRow(context.drawn.size, pad_to_->fill, PaddingFormat(context.to.row, output_), output_,
         static_cast<uint8_t*>(context.to.row));
  const uint64_t spent = NowNanoseconds() - start;
  context.transform_ns[pad_to_index_] += spent;
  context.augment_ns += spent;
}

// Completes the part of a row of several images: writes the pixels around the image, and executes
// the steps on both.
Status Plan::EmitPart(ViewContext& context) const {
  const DrawnSample& drawn = context.drawn;
  const auto& [part, image, fill, corner] = *drawn.placed;
  if (IsEmpty(part)) return {};
  const uint64_t start = NowNanoseconds();
  const RowFormat format(OutputTo(context.to.row, output_), output_);
  uint8_t* const to = PixelOf(format, context.to.row, part);
  if (drawn.steps.empty()) {
    FillAround(image, fill, format, part.size(), to);
  } else {
    const Tile& tile = context.augmenter.tile();
    const RowFormat planes({.row = tile.pixels, .layout = Layout::kNchw}, tile.size);
    FillAround(image, fill, planes, tile.size, tile.pixels);
    TRY(context.ApplySteps());
    const Tile& made = context.augmenter.tile();
    if (!corner) EmitTile(made, format, to);
    for (int y = 0; corner && y < part.height; ++y) {
      const auto [begin, end] = ColumnsOf(*drawn.placed, y);
      EmitColumns(made, y, begin, end, format, to);
    }
  }
  context.augment_ns += NowNanoseconds() - start;
  return {};
}

// Completes one of the images that are changed together, and the row after the last one. Two images
// with tiles of their own swap theirs, so that `augmenter` has the first one in the end.
Status Plan::EmitOnCanvas(ViewContext& context) const {
  if (LacksImages(context)) return {};
  const uint64_t start = NowNanoseconds();
  if (mosaic_) {
    const auto& [part, image, fill, corner] = *context.drawn.placed;
    const Tile& tile = context.augmenter.tile();
    const RowFormat format(CanvasOutput(tile, false), tile.size);
    FillAround(image, fill, format, part.size(), PixelOf(format, tile.pixels, part));
  } else {
    TRY(context.ApplySteps());
    std::swap(context.augmenter, context.other);
  }
  context.augment_ns += NowNanoseconds() - start;
  if (++context.on_canvas != context.drawn.canvas->images) return {};
  Status status = FinishCanvas(context);
  if (!status.ok()) context.failed = FailedPart(context);
  return status;
}

// Executes the steps after the geometry.
Status Plan::Augment(ViewContext& context) const {
  const DrawnSample& drawn = context.drawn;
  const uint64_t start = NowNanoseconds();
  const ImageSize row_size = RowSize(drawn.size);
  const PixelOutput output = OutputTo(context.to.row, row_size);
  const RowFormat format(output, row_size);
  auto* const row = static_cast<uint8_t*>(output.row);
  if (has_canvas_ || !drawn.steps.empty()) {
    TRY(context.ApplySteps());
    EmitTile(context.augmenter.tile(), format, row);
  }
  if (!drawn.erasures.empty()) FlushEmitted();
  uint64_t last = NowNanoseconds();
  for (const Erasure& erasure : drawn.erasures) {
    Erase(erasure, format, row);
    const uint64_t now = NowNanoseconds();
    context.transform_ns[erasure.transform] += now - std::exchange(last, now);
  }
  context.augment_ns += NowNanoseconds() - start;
  return {};
}

}  // namespace stoker
