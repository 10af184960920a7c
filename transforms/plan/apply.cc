// Plan::Apply: decodes, resamples and augments samples into rows.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/try.h"
#include "transforms/augment/augmenter.h"
#include "transforms/augment/emit_tile.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/decode/push_region.h"
#include "transforms/plan/erase.h"
#include "transforms/plan/leave_to_device.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/resampling.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// The decoder, resampler and augmenter of one sample in progress.
struct ImageLane {
  ImageLane(const DecodeLimits& limits, size_t transforms, MemoryBudget& budget)
      : decoder(limits, &budget), resampler(budget), augmenter(budget), transform_ns(transforms) {}

  ImageDecoder decoder;
  Resampler resampler;
  Augmenter augmenter;
  DrawnSample drawn;
  std::optional<uint32_t> image;  // the tag of the image being decoded
  void* row = nullptr;            // its destination
  void* work = nullptr;           // destination of its deferred operations
  std::vector<uint64_t> transform_ns;
  uint64_t augment_ns = 0;
};

class Workspace {
 public:
  Workspace(const DecodeLimits& limits, size_t transforms, MemoryBudget& budget)
      : limits(limits),
        memory(MemoryBudget::kNoLimit, budget),
        lanes{ImageLane(limits, transforms, memory), ImageLane(limits, transforms, memory)} {}

  const DecodeLimits limits;
  MemoryBudget memory;
  std::array<ImageLane, 2> lanes;
  DecodePaths paths;  // of freed lanes
};

uint64_t MemoryOf(const Workspace& workspace) { return workspace.memory.used(); }

// Replaces the lanes by new ones and keeps their counts.
void FreeMemoryOf(Workspace& workspace) {
  workspace.paths = PathsOf(workspace);
  for (ImageLane& lane : workspace.lanes) {
    std::vector<uint64_t> times = std::move(lane.transform_ns);
    lane = ImageLane(workspace.limits, times.size(), workspace.memory);
    lane.transform_ns = std::move(times);
  }
}

DecodePaths PathsOf(const Workspace& workspace) {
  DecodePaths paths = workspace.paths;
  for (const ImageLane& lane : workspace.lanes) paths += lane.decoder.paths();
  return paths;
}

std::vector<uint64_t> TransformTimesOf(const Workspace& workspace) {
  std::vector<uint64_t> times = workspace.lanes[0].transform_ns;
  for (size_t i = 0; i < times.size(); ++i) times[i] += workspace.lanes[1].transform_ns[i];
  return times;
}

namespace {

// Measures the stages of work with a workspace: time that is neither resampling nor augmenting is
// decoding.
class ApplyWatch {
 public:
  ApplyWatch(Workspace& workspace, StageTimes& times)
      : workspace_(workspace), times_(times), last_(NowNanoseconds()) {
    for (ImageLane& lane : workspace_.lanes) {
      lane.resampler.Reset();
      lane.augment_ns = 0;
      lane.image.reset();  // left over if an exception was thrown
    }
  }
  ~ApplyWatch() { Add(); }
  ApplyWatch(const ApplyWatch&) = delete;
  ApplyWatch& operator=(const ApplyWatch&) = delete;

  // Adds the time since the last call.
  void Add() {
    const uint64_t now = NowNanoseconds(), passed = now - std::exchange(last_, now);
    uint64_t resampled = 0, augmented = 0;
    for (const ImageLane& lane : workspace_.lanes) {
      resampled += lane.resampler.busy_ns();
      augmented += lane.augment_ns;
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

Status CheckSides(ImageSize size) {
  if (size.width >= 1 && size.height >= 1 && std::max(size.width, size.height) <= kMostSidePixels) {
    return {};
  }
  return Error{Code::kInvalidArgument,
               "an image of " + std::to_string(size.height) + " × " + std::to_string(size.width) +
                   " pixels; each side must be between 1 and " + std::to_string(kMostSidePixels)};
}

// The view of a region of a decoded image.
ImageView PartOf(ImageView image, const Rect& region) {
  const ptrdiff_t column = ptrdiff_t{region.x} * BytesPerPixel(image.layout);
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(image.layout)); ++p) {
    image.plane[p] += region.y * image.stride[p] + column;
  }
  image.size = region.size();
  return image;
}

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
  ImageLane &a = workspace.lanes[0], &b = workspace.lanes[1];
  for (bool more = true; more || a.image || b.image;) {
    more = false;
    for (ImageLane* lane : {&a, &b}) more = Begin(feed, *lane) || more;
    if (a.image && b.image) {
      ImageDecoder::AdvanceBoth(a.decoder, b.decoder);
    } else if (a.image || b.image) {
      (a.image ? a : b).decoder.Advance();
    }
    for (ImageLane* lane : {&a, &b}) {
      if (lane->image && !lane->decoder.decoding()) End(feed, *lane);
    }
  }
}

// Begins one sample if the lane is free; returns false if there was none. (A sample without pixels,
// or one that cannot be decoded in pieces, is finished at once.)
bool Plan::Begin(ImageFeed& feed, ImageLane& lane) const {
  if (lane.image) return false;
  const std::optional<EncodedImage> next = feed.Next();
  if (!next) return false;
  Result<bool> pixels = Open(*next, lane);
  if (pixels.ok() && *pixels) {
    lane.image = next->tag;
    if (!lane.decoder.decoding()) End(feed, lane);
  } else {
    feed.Done(next->tag, pixels.ok() ? FinishRow(lane) : std::move(pixels).error());
  }
  return true;
}

// Returns whether there are pixels to decode.
Result<bool> Plan::Open(const EncodedImage& image, ImageLane& lane) const {
  ASSIGN_OR_RETURN(ImageInfo info, lane.decoder.Open(image.bytes));
  const Orientation orientation =
      options_.exif_orientation ? info.orientation : Orientation::kNormal;
  lane.row = image.row;
  lane.work = image.work;
  ASSIGN_OR_RETURN(Rect region, StartRow(image.key, info.size, orientation, lane));
  if (region.width == 0) return false;  // only padding
  lane.decoder.Start(region, lane.resampler, image.crop_index);
  return true;
}

void Plan::End(ImageFeed& feed, ImageLane& lane) const {
  Status status = lane.decoder.Finish();
  if (status.ok()) status = FinishRow(lane);
  feed.Done(*std::exchange(lane.image, std::nullopt), std::move(status));
}

Status Plan::Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace,
                   void* row, StageTimes& times, std::span<const uint8_t> crop_index,
                   void* work) const {
  Single single({0, bytes, key, row, crop_index, work});
  ApplyAll(single, workspace, times);
  return single.status();
}

Status Plan::Apply(const ImageView& image, const DrawKey& key, Workspace& workspace, void* row,
                   StageTimes& times, void* work) const {
  const ApplyWatch watch(workspace, times);
  TRY(CheckSides(image.size));
  ImageLane& lane = workspace.lanes[0];
  lane.row = row;
  lane.work = work;
  ASSIGN_OR_RETURN(Rect region, StartRow(key, image.size, Orientation::kNormal, lane));
  Status status =
      region.width == 0 ? Status() : PushRegion(PartOf(image, region), region, lane.resampler);
  if (status.ok()) status = FinishRow(lane);
  FlushEmitted();
  return status;
}

PixelOutput Plan::OutputTo(void* row) const {
  return {row, dtype(), scale_.data(), bias_.data(), layout(), options_.read_later};
}

// Draws the sample and prepares the resampler. Returns the region to decode, empty if there is
// nothing to decode.
Result<Rect> Plan::StartRow(const DrawKey& key, ImageSize stored, Orientation orientation,
                            ImageLane& lane) const {
  DrawnSample& drawn = lane.drawn;
  TRY(Draw(key, Viewed(stored, orientation), drawn));
  if (options_.finish_on_device) LeaveToDevice(drawn, boxes(), lane.work);
  PixelOutput output = OutputTo(lane.row);
  if (!drawn.steps.empty()) {
    const Status started = lane.augmenter.Start(drawn.geometry.window.size());
    if (!started) return started.error();
    output = {.row = lane.augmenter.tile().pixels, .layout = Layout::kNchw};
  }
  return lane.resampler.Start(ResamplingOf(drawn.geometry, stored, orientation), output);
}

// Executes the steps after the geometry.
Status Plan::FinishRow(ImageLane& lane) const {
  const DrawnSample& drawn = lane.drawn;
  if (drawn.steps.empty() && drawn.erasures.empty()) return {};
  const uint64_t start = NowNanoseconds();
  uint64_t last = start;
  const auto count = [&](uint32_t transform) {
    const uint64_t now = NowNanoseconds();
    lane.transform_ns[transform] += now - std::exchange(last, now);
  };
  const RowFormat format(OutputTo(lane.row), output_);
  auto* const row = static_cast<uint8_t*>(lane.row);
  for (const DrawnStep& step : drawn.steps) {
    TRY(lane.augmenter.Apply(step.step));
    count(step.transform);
  }
  if (!drawn.steps.empty()) EmitTile(lane.augmenter.tile(), format, row);
  if (!drawn.erasures.empty()) FlushEmitted();
  last = NowNanoseconds();
  for (const Erasure& erasure : drawn.erasures) {
    Erase(erasure, format, row);
    count(erasure.transform);
  }
  lane.augment_ns += NowNanoseconds() - start;
  return {};
}

}  // namespace stoker
