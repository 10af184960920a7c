// Plan::Apply: decodes, resamples and augments samples into rows.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/result/try.h"
#include "transforms/augment/augmenter.h"
#include "transforms/augment/emit_tile.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/decode/push_region.h"
#include "transforms/device/crop_maker.h"
#include "transforms/plan/defer_to_device.h"
#include "transforms/plan/erase.h"
#include "transforms/plan/pad_row.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/put_crop.h"
#include "transforms/plan/resampling.h"
#include "transforms/plan/views_sink.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// The resampler and augmenter of one view of a sample in progress.
struct ViewContext {
  ViewContext(size_t transforms, MemoryBudget& budget)
      : resampler(budget), augmenter(budget), transform_ns(transforms) {}

  Resampler resampler;
  Augmenter augmenter;
  DrawnSample drawn;
  void* row = nullptr;      // its destination
  void* work = nullptr;     // destination of its deferred operations
  int32_t* size = nullptr;  // destination of its height and width, or null
  std::vector<uint64_t> transform_ns;
  uint64_t augment_ns = 0;
};

// The decoder of one sample in progress, and its views.
struct ImageContext {
  // `transforms`: how many each view has.
  ImageContext(const DecodeLimits& limits, const std::vector<size_t>& transforms,
               MemoryBudget& budget)
      : decoder(limits, &budget), crop_index(budget), all_views(budget), crop_maker(budget) {
    for (const size_t of_view : transforms) views.emplace_back(of_view, budget);
  }

  // Returns the sink that the decoder writes to.
  RowSink& sink() {
    if (views.size() == 1) return views[0].resampler;
    return all_views;
  }

  ImageDecoder decoder;
  GrowingBuffer crop_index;  // for the queue
  std::vector<ViewContext> views;
  ViewsSink all_views;  // for more than one
  Reduction reduction = 1;
  std::optional<uint32_t> image;      // the tag of the image being decoded
  uint64_t scaled = 0, scalable = 0;  // as DecodePaths
  CropMaker crop_maker;               // for a device that decodes
  uint64_t on_device = 0;             // as DecodePaths
  uint64_t no_end_marker = 0;         // likewise, of those
  std::array<uint64_t, kOnWorkerReasons> on_worker{};
};

class Workspace {
 public:
  Workspace(const DecodeLimits& limits, std::vector<size_t> of_views, MemoryBudget& budget)
      : limits(limits),
        transforms(std::move(of_views)),
        memory(MemoryBudget::kNoLimit, budget),
        contexts{ImageContext(limits, transforms, memory),
                 ImageContext(limits, transforms, memory)} {}

  const DecodeLimits limits;
  const std::vector<size_t> transforms;  // how many each view has
  MemoryBudget memory;
  std::array<ImageContext, 2> contexts;
  DecodePaths paths;  // of freed contexts
};

uint64_t MemoryOf(const Workspace& workspace) { return workspace.memory.used(); }

// Replaces the contexts by new ones and keeps their counts.
void FreeMemoryOf(Workspace& workspace) {
  workspace.paths = PathsOf(workspace);
  for (ImageContext& context : workspace.contexts) {
    ImageContext fresh(workspace.limits, workspace.transforms, workspace.memory);
    for (size_t i = 0; i < fresh.views.size(); ++i) {
      fresh.views[i].transform_ns = std::move(context.views[i].transform_ns);
    }
    context = std::move(fresh);
  }
}

DecodePaths PathsOf(const Workspace& workspace) {
  DecodePaths paths = workspace.paths;
  for (const ImageContext& context : workspace.contexts) {
    paths += context.decoder.paths();
    paths.scaled += context.scaled;
    paths.scalable += context.scalable;
    paths.on_device += context.on_device;
    paths.no_end_marker += context.no_end_marker;
    for (size_t i = 0; i < kOnWorkerReasons; ++i) paths.on_worker[i] += context.on_worker[i];
  }
  return paths;
}

std::vector<uint64_t> TransformTimesOf(const Workspace& workspace) {
  std::vector<uint64_t> times;
  const auto& [a, b] = workspace.contexts;
  for (size_t view = 0; view < a.views.size(); ++view) {
    for (size_t i = 0; i < a.views[view].transform_ns.size(); ++i) {
      times.push_back(a.views[view].transform_ns[i] + b.views[view].transform_ns[i]);
    }
  }
  return times;
}

namespace {

// Measures the stages of work with a workspace. Time that is neither resampling nor augmenting is
// decoding.
class ApplyWatch {
 public:
  ApplyWatch(Workspace& workspace, StageTimes& times)
      : workspace_(workspace), times_(times), last_(NowNanoseconds()) {
    for (ImageContext& context : workspace_.contexts) {
      for (ViewContext& view : context.views) {
        view.resampler.Reset();
        view.augment_ns = 0;
      }
      context.image.reset();  // left over if an exception was thrown
    }
  }
  ~ApplyWatch() { Add(); }
  ApplyWatch(const ApplyWatch&) = delete;
  ApplyWatch& operator=(const ApplyWatch&) = delete;

  // Adds the time since the last call.
  void Add() {
    const uint64_t now = NowNanoseconds(), passed = now - std::exchange(last_, now);
    uint64_t resampled = 0, augmented = 0;
    for (const ImageContext& context : workspace_.contexts) {
      for (const ViewContext& view : context.views) {
        resampled += view.resampler.busy_ns();
        augmented += view.augment_ns;
      }
    }
    resampled -= std::exchange(seen_.resize_ns, resampled);
    augmented -= std::exchange(seen_.augment_ns, augmented);
    times_.resize_ns += resampled;
    times_.augment_ns += augmented;
    times_.decode_ns += passed - resampled - augmented;
  }

  // Excludes the time since the last call.
  void Skip() { last_ = NowNanoseconds(); }

 private:
  Workspace& workspace_;
  StageTimes& times_;
  uint64_t last_;
  StageTimes seen_;
};

// Wraps a queue so that, when Done is called, the times are up to date and the row is visible to
// other threads.
class TimedQueue final : public ImageQueue {
 public:
  TimedQueue(ImageQueue& queue, ApplyWatch& watch) : queue_(queue), watch_(watch) {}
  std::optional<EncodedImage> Next(GrowingBuffer& crop_index) override {
    return queue_.Next(crop_index);
  }
  void Done(uint32_t tag, Status status) override {
    FlushEmitted();
    watch_.Add();
    queue_.Done(tag, std::move(status));
    watch_.Skip();
  }

 private:
  ImageQueue& queue_;
  ApplyWatch& watch_;
};

// A queue of one sample.
class Single final : public ImageQueue {
 public:
  explicit Single(const EncodedImage& image) : image_(image) {}
  std::optional<EncodedImage> Next(GrowingBuffer& /*crop_index*/) override {
    return std::exchange(image_, std::nullopt);
  }
  void Done(uint32_t, Status status) override { status_ = std::move(status); }
  Status status() { return std::move(status_); }

 private:
  std::optional<EncodedImage> image_;
  Status status_;
};

}  // namespace

std::unique_ptr<Workspace, void (*)(Workspace*)> Plan::MakeWorkspace(MemoryBudget& budget) const {
  std::vector<size_t> transforms;
  transforms.reserve(views());
  for (size_t i = 0; i < views(); ++i) transforms.push_back(view(i).transforms_.size());
  return {new Workspace(options_.limits, std::move(transforms), budget),
          [](Workspace* workspace) { delete workspace; }};
}

void Plan::ApplyAll(ImageQueue& samples, Workspace& workspace, StageTimes& times) const {
  ApplyWatch watch(workspace, times);
  TimedQueue queue(samples, watch);
  ImageContext &a = workspace.contexts[0], &b = workspace.contexts[1];
  for (bool more = true; more || a.image || b.image;) {
    more = false;
    for (ImageContext* context : {&a, &b}) more = Begin(queue, *context) || more;
    if (a.image && b.image) {
      ImageDecoder::AdvanceBoth(a.decoder, b.decoder);
    } else if (a.image || b.image) {
      (a.image ? a : b).decoder.Advance();
    }
    for (ImageContext* context : {&a, &b}) {
      if (context->image && !context->decoder.decoding()) End(queue, *context);
    }
  }
}

// Begins one sample if the context is free; returns false if there was none. (A sample without
// pixels, or one that cannot be decoded in pieces, is finished at once.)
bool Plan::Begin(ImageQueue& queue, ImageContext& context) const {
  if (context.image) return false;
  const std::optional<EncodedImage> next = queue.Next(context.crop_index);
  if (!next) return false;
  Result<bool> pixels = Open(*next, context);
  if (pixels.ok() && *pixels) {
    context.image = next->tag;
    if (!context.decoder.decoding()) End(queue, context);
  } else {
    queue.Done(next->tag, pixels.ok() ? EmitRows(context) : std::move(pixels).error());
  }
  return true;
}

// Returns whether there are pixels to decode.
Result<bool> Plan::Open(const EncodedImage& image, ImageContext& context) const {
  ASSIGN_OR_RETURN(ImageInfo info, context.decoder.Open(image.bytes));
  TRY(CheckBits(info, options_.limits));
  const Orientation orientation =
      options_.exif_orientation ? info.orientation : Orientation::kNormal;
  ASSIGN_OR_RETURN(Rect region,
                   StartRows(image, {info.size, orientation, MaxReduction(info)}, context));
  if (region.width == 0) return false;  // only padding
  context.decoder.Start(region, context.sink(), image.crop_index, context.reduction);
  return true;
}

void Plan::End(ImageQueue& queue, ImageContext& context) const {
  Status status = context.decoder.Finish();
  if (status.ok()) status = EmitRows(context);
  queue.Done(*std::exchange(context.image, std::nullopt), std::move(status));
}

Status Plan::Apply(const EncodedImage& image, Workspace& workspace, StageTimes& times) const {
  Single single(image);
  ApplyAll(single, workspace, times);
  return single.status();
}

Status Plan::Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace,
                   void* row, StageTimes& times, std::span<const uint8_t> crop_index, void* work,
                   int32_t* size) const {
  return Apply({0, bytes, key, row, crop_index, work, size}, workspace, times);
}

Status Plan::Apply(const ImageView& image, const DrawKey& key, Workspace& workspace, void* row,
                   StageTimes& times, void* work, int32_t* size,
                   std::span<void* const> other_rows) const {
  const ApplyWatch watch(workspace, times);
  TRY(CheckSides(image.size));
  ImageContext& context = workspace.contexts[0];
  ASSIGN_OR_RETURN(
      Rect region,
      StartRows({.key = key, .row = row, .work = work, .size = size, .other_rows = other_rows},
                {image.size}, context));
  Status status =
      region.width == 0 ? Status() : PushRegion(PartOf(image, region), region, context.sink());
  if (status.ok()) status = EmitRows(context);
  FlushEmitted();
  return status;
}

PixelOutput Plan::OutputTo(void* row) const {
  return {row, dtype(), scale_.data(), bias_.data(), layout(), options_.read_later, output_};
}

RowFormat Plan::PaddingFormat(void* row) const {
  constexpr float kZero[3] = {};
  PixelOutput output = OutputTo(row);
  if (pads_finished_) output.scale = output.bias = kZero;
  return {output, output_};
}

// Draws the sample's views and prepares their resamplers. Returns the region to decode, of the
// reduced image, empty if there is nothing to decode.
Result<Rect> Plan::StartRows(const EncodedImage& image, const StoredImage& stored,
                             ImageContext& context) const {
  const ImageSize viewed = Viewed(stored.size, stored.orientation);
  Reduction possible = stored.most;
  for (size_t i = 0; i < views(); ++i) {
    ViewContext& of_view = context.views[i];
    of_view.row = i == 0 ? image.row : image.other_rows[i - 1];
    of_view.work = i == 0 ? image.work : nullptr;
    of_view.size = i == 0 ? image.size : nullptr;
    DrawKey key = image.key;
    key.view += static_cast<uint32_t>(i);
    TRY(view(i).DrawRow(key, viewed, of_view));
    possible = ReductionOf(of_view.drawn.geometry, possible);
  }
  context.reduction = options_.decode == DecodeSize::kScaled ? possible : 1;
  if (options_.decode_on_device && image.crop_at != nullptr && StartCrop(image, stored, context)) {
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
  if (!CheckSides(stored).ok()) return std::nullopt;
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

// Draws one view.
Status Plan::DrawRow(const DrawKey& key, ImageSize viewed, ViewContext& context) const {
  DrawnSample& drawn = context.drawn;
  TRY(Draw(key, viewed, drawn));
  if (context.size != nullptr) {
    context.size[0] = drawn.size.height;
    context.size[1] = drawn.size.width;
  }
  if (options_.defer_to_device) {
    if (pads_finished_) EraseAround(drawn, output_);
    DeferToDevice(drawn, output_, boxes(), context.work);
  }
  return {};
}

// Prepares one view's resampler. Returns the region that it needs, as StartRows does.
Result<Rect> Plan::StartRow(const StoredImage& stored, Reduction reduction,
                            ViewContext& context) const {
  const DrawnSample& drawn = context.drawn;
  PixelOutput output = OutputTo(context.row);
  if (!drawn.steps.empty()) {
    const Status started = context.augmenter.Start(drawn.geometry.window.size());
    if (!started) return started.error();
    output = {.row = context.augmenter.tile().pixels, .layout = Layout::kNchw};
  }
  return context.resampler.Start(
      ResamplingOf(drawn.geometry, stored.size, stored.orientation, reduction), output);
}

// Counts whether the device gets the image's crop; false if the worker must decode it.
bool Plan::StartCrop(const EncodedImage& image, const StoredImage& stored,
                     ImageContext& context) const {
  *image.crop_at = decode::kNoCrop;
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
  if (image.crops == nullptr || !drawn.steps.empty() || context.reduction != 1) {
    return OnWorker::kUnsupported;
  }
  const Resampling task = ResamplingOf(drawn.geometry, stored.size, stored.orientation);
  CropMaker& maker = context.crop_maker;
  const uint64_t room = image.crops->bytes_left();
  const Status planned =
      packed != nullptr ? maker.Plan(*packed, task, room) : maker.Plan(*jpeg, task, room);
  if (!planned.ok()) return ReasonOf(planned.error());
  if (!PutCrop(maker, *image.crops, *image.crop_at)) return OnWorker::kNoRoom;
  if (jpeg && jpeg->no_end_marker) ++context.no_end_marker;
  return std::nullopt;
}

// Completes the rows of all views once the geometry's pixels are written.
Status Plan::EmitRows(ImageContext& context) const {
  if (views() > 1) context.all_views.Finish();
  for (size_t i = 0; i < views(); ++i) TRY(view(i).EmitRow(context.views[i]));
  return {};
}

Status Plan::EmitRow(ViewContext& context) const {
  if (pad_to_) Surround(context);
  return context.drawn.steps.empty() && context.drawn.erasures.empty() ? Status()
                                                                       : Augment(context);
}

// Writes the pixels of the row outside its image.
void Plan::Surround(ViewContext& context) const {
  const uint64_t start = NowNanoseconds();
  PadRow(context.drawn.size, pad_to_->fill, PaddingFormat(context.row), output_,
         static_cast<uint8_t*>(context.row));
  const uint64_t spent = NowNanoseconds() - start;
  context.transform_ns[pad_to_index_] += spent;
  context.augment_ns += spent;
}

// Executes the steps after the geometry.
Status Plan::Augment(ViewContext& context) const {
  const DrawnSample& drawn = context.drawn;
  const uint64_t start = NowNanoseconds();
  uint64_t last = start;
  const auto count = [&](uint32_t transform) {
    const uint64_t now = NowNanoseconds();
    context.transform_ns[transform] += now - std::exchange(last, now);
  };
  const RowFormat format(OutputTo(context.row), output_);
  auto* const row = static_cast<uint8_t*>(context.row);
  for (const DrawnStep& step : drawn.steps) {
    TRY(context.augmenter.Apply(step.step));
    count(step.transform);
  }
  if (!drawn.steps.empty()) EmitTile(context.augmenter.tile(), format, row);
  if (!drawn.erasures.empty()) FlushEmitted();
  last = NowNanoseconds();
  for (const Erasure& erasure : drawn.erasures) {
    Erase(erasure, format, row);
    count(erasure.transform);
  }
  context.augment_ns += NowNanoseconds() - start;
  return {};
}

}  // namespace stoker
