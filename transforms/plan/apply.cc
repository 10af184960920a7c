// Plan::Apply: decodes, resamples and augments samples into rows.
#include <array>
#include <utility>

#include "core/try.h"
#include "transforms/augment/augmenter.h"
#include "transforms/augment/emit_tile.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/decode/push_region.h"
#include "transforms/plan/defer_to_device.h"
#include "transforms/plan/erase.h"
#include "transforms/plan/pad_row.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/resampling.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// The decoder, resampler and augmenter of one sample in progress.
struct ImageContext {
  ImageContext(const DecodeLimits& limits, size_t transforms, MemoryBudget& budget)
      : decoder(limits, &budget), resampler(budget), augmenter(budget), transform_ns(transforms) {}

  ImageDecoder decoder;
  Resampler resampler;
  Augmenter augmenter;
  DrawnSample drawn;
  Reduction reduction = 1;
  std::optional<uint32_t> image;  // the tag of the image being decoded
  void* row = nullptr;            // its destination
  void* work = nullptr;           // destination of its deferred operations
  int32_t* size = nullptr;        // destination of its height and width, or null
  std::vector<uint64_t> transform_ns;
  uint64_t augment_ns = 0;
  uint64_t scaled = 0, scalable = 0;  // as DecodePaths
};

class Workspace {
 public:
  Workspace(const DecodeLimits& limits, size_t transforms, MemoryBudget& budget)
      : limits(limits),
        memory(MemoryBudget::kNoLimit, budget),
        contexts{ImageContext(limits, transforms, memory),
                 ImageContext(limits, transforms, memory)} {}

  const DecodeLimits limits;
  MemoryBudget memory;
  std::array<ImageContext, 2> contexts;
  DecodePaths paths;  // of freed contexts
};

uint64_t MemoryOf(const Workspace& workspace) { return workspace.memory.used(); }

// Replaces the contexts by new ones and keeps their counts.
void FreeMemoryOf(Workspace& workspace) {
  workspace.paths = PathsOf(workspace);
  for (ImageContext& context : workspace.contexts) {
    std::vector<uint64_t> times = std::move(context.transform_ns);
    context = ImageContext(workspace.limits, times.size(), workspace.memory);
    context.transform_ns = std::move(times);
  }
}

DecodePaths PathsOf(const Workspace& workspace) {
  DecodePaths paths = workspace.paths;
  for (const ImageContext& context : workspace.contexts) {
    paths += context.decoder.paths();
    paths.scaled += context.scaled;
    paths.scalable += context.scalable;
  }
  return paths;
}

std::vector<uint64_t> TransformTimesOf(const Workspace& workspace) {
  std::vector<uint64_t> times = workspace.contexts[0].transform_ns;
  for (size_t i = 0; i < times.size(); ++i) times[i] += workspace.contexts[1].transform_ns[i];
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
      context.resampler.Reset();
      context.augment_ns = 0;
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
      resampled += context.resampler.busy_ns();
      augmented += context.augment_ns;
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

// Wraps a feed so that, when Done is called, the times are up to date and the row is visible to
// other threads.
class TimedFeed final : public ImageFeed {
 public:
  TimedFeed(ImageFeed& feed, ApplyWatch& watch) : feed_(feed), watch_(watch) {}
  std::optional<EncodedImage> Next() override { return feed_.Next(); }
  void Done(uint32_t tag, Status status) override {
    FlushEmitted();
    watch_.Add();
    feed_.Done(tag, std::move(status));
    watch_.Skip();
  }

 private:
  ImageFeed& feed_;
  ApplyWatch& watch_;
};

// A feed of one sample.
class Single final : public ImageFeed {
 public:
  explicit Single(const EncodedImage& image) : image_(image) {}
  std::optional<EncodedImage> Next() override { return std::exchange(image_, std::nullopt); }
  void Done(uint32_t, Status status) override { status_ = std::move(status); }
  Status status() { return std::move(status_); }

 private:
  std::optional<EncodedImage> image_;
  Status status_;
};

}  // namespace

std::unique_ptr<Workspace, void (*)(Workspace*)> Plan::MakeWorkspace(MemoryBudget& budget) const {
  return {new Workspace(options_.limits, transforms_.size(), budget),
          [](Workspace* workspace) { delete workspace; }};
}

void Plan::ApplyAll(ImageFeed& samples, Workspace& workspace, StageTimes& times) const {
  ApplyWatch watch(workspace, times);
  TimedFeed feed(samples, watch);
  ImageContext &a = workspace.contexts[0], &b = workspace.contexts[1];
  for (bool more = true; more || a.image || b.image;) {
    more = false;
    for (ImageContext* context : {&a, &b}) more = Begin(feed, *context) || more;
    if (a.image && b.image) {
      ImageDecoder::AdvanceBoth(a.decoder, b.decoder);
    } else if (a.image || b.image) {
      (a.image ? a : b).decoder.Advance();
    }
    for (ImageContext* context : {&a, &b}) {
      if (context->image && !context->decoder.decoding()) End(feed, *context);
    }
  }
}

// Begins one sample if the context is free; returns false if there was none. (A sample without
// pixels, or one that cannot be decoded in pieces, is finished at once.)
bool Plan::Begin(ImageFeed& feed, ImageContext& context) const {
  if (context.image) return false;
  const std::optional<EncodedImage> next = feed.Next();
  if (!next) return false;
  Result<bool> pixels = Open(*next, context);
  if (pixels.ok() && *pixels) {
    context.image = next->tag;
    if (!context.decoder.decoding()) End(feed, context);
  } else {
    feed.Done(next->tag, pixels.ok() ? EmitRow(context) : std::move(pixels).error());
  }
  return true;
}

// Returns whether there are pixels to decode.
Result<bool> Plan::Open(const EncodedImage& image, ImageContext& context) const {
  ASSIGN_OR_RETURN(ImageInfo info, context.decoder.Open(image.bytes));
  const Orientation orientation =
      options_.exif_orientation ? info.orientation : Orientation::kNormal;
  context.row = image.row;
  context.work = image.work;
  context.size = image.size;
  ASSIGN_OR_RETURN(Rect region,
                   StartRow(image.key, info.size, orientation, MaxReduction(info), context));
  if (region.width == 0) return false;  // only padding
  context.decoder.Start(region, context.resampler, image.crop_index, context.reduction);
  return true;
}

void Plan::End(ImageFeed& feed, ImageContext& context) const {
  Status status = context.decoder.Finish();
  if (status.ok()) status = EmitRow(context);
  feed.Done(*std::exchange(context.image, std::nullopt), std::move(status));
}

Status Plan::Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace,
                   void* row, StageTimes& times, std::span<const uint8_t> crop_index, void* work,
                   int32_t* size) const {
  Single single({0, bytes, key, row, crop_index, work, size});
  ApplyAll(single, workspace, times);
  return single.status();
}

Status Plan::Apply(const ImageView& image, const DrawKey& key, Workspace& workspace, void* row,
                   StageTimes& times, void* work, int32_t* size) const {
  const ApplyWatch watch(workspace, times);
  TRY(CheckSides(image.size));
  ImageContext& context = workspace.contexts[0];
  context.row = row;
  context.work = work;
  context.size = size;
  ASSIGN_OR_RETURN(Rect region, StartRow(key, image.size, Orientation::kNormal, 1, context));
  Status status =
      region.width == 0 ? Status() : PushRegion(PartOf(image, region), region, context.resampler);
  if (status.ok()) status = EmitRow(context);
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

// Draws the sample and prepares the resampler. Returns the region to decode, of the reduced image,
// empty if there is nothing to decode. `most`: the largest reduction with which the image can be
// decoded.
Result<Rect> Plan::StartRow(const DrawKey& key, ImageSize stored, Orientation orientation,
                            Reduction most, ImageContext& context) const {
  DrawnSample& drawn = context.drawn;
  TRY(Draw(key, Viewed(stored, orientation), drawn));
  if (context.size != nullptr) {
    context.size[0] = drawn.size.height;
    context.size[1] = drawn.size.width;
  }
  if (options_.defer_to_device) {
    if (pads_finished_) EraseAround(drawn, output_);
    DeferToDevice(drawn, output_, boxes(), context.work);
  }
  PixelOutput output = OutputTo(context.row);
  if (!drawn.steps.empty()) {
    const Status started = context.augmenter.Start(drawn.geometry.window.size());
    if (!started) return started.error();
    output = {.row = context.augmenter.tile().pixels, .layout = Layout::kNchw};
  }
  const Reduction possible = ReductionOf(drawn.geometry, most);
  context.reduction = options_.decode == DecodeSize::kScaled ? possible : 1;
  if (possible > 1) ++(context.reduction > 1 ? context.scaled : context.scalable);
  return context.resampler.Start(
      ResamplingOf(drawn.geometry, stored, orientation, context.reduction), output);
}

// Completes the row once the geometry's pixels are written.
Status Plan::EmitRow(ImageContext& context) const {
  if (pad_to_) Surround(context);
  return context.drawn.steps.empty() && context.drawn.erasures.empty() ? Status()
                                                                       : Augment(context);
}

// Writes the pixels of the row outside its image.
void Plan::Surround(ImageContext& context) const {
  const uint64_t start = NowNanoseconds();
  PadRow(context.drawn.size, pad_to_->fill, PaddingFormat(context.row), output_,
         static_cast<uint8_t*>(context.row));
  const uint64_t spent = NowNanoseconds() - start;
  context.transform_ns[pad_to_index_] += spent;
  context.augment_ns += spent;
}

// Executes the steps after the geometry.
Status Plan::Augment(ImageContext& context) const {
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
