#include "transforms/plan.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "transforms/draw.h"
#include "transforms/orientation.h"
#include "transforms/resampling.h"
#include "transforms/resize/resampler.h"

namespace stoker {

class Workspace {
 public:
  Workspace(const DecodeLimits& limits, MemoryBudget& budget)
      : decoder(limits, &budget), resampler(budget) {}

  JpegDecoder decoder;
  Resampler resampler;
};

const DecodePaths& PathsOf(const Workspace& workspace) { return workspace.decoder.paths(); }

namespace {

// The geometry so far. Mirrored images are kept as they were, and what is cut from them is cut from
// the other side.
class Drawing {
 public:
  explicit Drawing(ImageSize image) { geometry_.box = {0, 0, image.width, image.height}; }

  void Apply(const Resize& t, RandomStream&) {
    const ImageSize size =
        t.size > 0 ? ShorterSideTo(t.size, geometry_.box.size()) : ImageSize{t.width, t.height};
    Resample(size, t.antialias);
  }
  void Apply(const CenterCrop& t, RandomStream&) {
    Rect& current = resampled_ ? geometry_.window : geometry_.box;
    Cut(current, CenterBox({t.width, t.height}, current.size()));
  }
  void Apply(const RandomResizedCrop& t, RandomStream& random) {
    Cut(geometry_.box, DrawResizedBox(t, geometry_.box.size(), random));
    Resample({t.width, t.height}, t.antialias);
  }
  void Apply(const RandomHorizontalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) geometry_.flip = !geometry_.flip;
  }
  void Apply(const Normalize&, RandomStream&) {}

  Geometry Finish() {
    if (!resampled_) Resample(geometry_.box.size(), true);
    return geometry_;
  }

 private:
  void Cut(Rect& from, Rect part) const {
    if (geometry_.flip) part.x = from.width - part.x - part.width;
    from = {from.x + part.x, from.y + part.y, part.width, part.height};
  }
  void Resample(ImageSize size, bool antialias) {
    geometry_.resized = size;
    geometry_.window = {0, 0, size.width, size.height};
    geometry_.antialias = antialias;
    resampled_ = true;
  }

  Geometry geometry_;
  bool resampled_ = false;
};

// Measures one Apply: what is not the resampler's time is the decoder's.
class ApplyWatch {
 public:
  ApplyWatch(Resampler& resampler, StageTimes& times)
      : resampler_(resampler), times_(times), start_(NowNanoseconds()) {
    resampler_.Reset();
  }
  ~ApplyWatch() {
    times_.resize_ns += resampler_.busy_ns();
    times_.decode_ns += NowNanoseconds() - start_ - resampler_.busy_ns();
  }
  ApplyWatch(const ApplyWatch&) = delete;
  ApplyWatch& operator=(const ApplyWatch&) = delete;

 private:
  Resampler& resampler_;
  StageTimes& times_;
  const uint64_t start_;
};

Status CheckSides(ImageSize size) {
  if (size.width >= 1 && size.height >= 1 && std::max(size.width, size.height) <= kMostSidePixels) {
    return {};
  }
  return Error{Code::kInvalidArgument,
               "an image of " + std::to_string(size.height) + " × " + std::to_string(size.width) +
                   " pixels; each side must be between 1 and " + std::to_string(kMostSidePixels)};
}

// The decoder of what needs no decoding: copies the region's rows.
Status PushRows(const ImageView& image, const Rect& region, RowSink& sink) {
  if (Status begun = sink.Begin({image.layout, region}); !begun) return begun;
  const ptrdiff_t pixel = BytesPerPixel(image.layout);
  for (int done = 0; done < region.height;) {
    const MutableImageView room = sink.Reserve(region.height - done);
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(image.layout)); ++p) {
      for (int y = 0; y < room.size.height; ++y) {
        std::memcpy(room.plane[p] + y * room.stride[p],
                    image.plane[p] + (region.y + done + y) * image.stride[p] + region.x * pixel,
                    static_cast<size_t>(region.width * pixel));
      }
    }
    sink.Commit(room.size.height);
    done += room.size.height;
  }
  return {};
}

}  // namespace

std::vector<int64_t> Plan::row_shape() const {
  if (options_.layout == Layout::kNchw) return {3, output_.height, output_.width};
  return {output_.height, output_.width, 3};
}

size_t Plan::row_bytes() const {
  return static_cast<size_t>(output_.width) * static_cast<size_t>(output_.height) * 3 *
         SizeOf(options_.dtype);
}

Geometry Plan::Draw(const DrawKey& key, ImageSize image) const {
  Drawing drawing(image);
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RandomStream random(key, static_cast<uint32_t>(i));
    std::visit([&](const auto& transform) { drawing.Apply(transform, random); }, transforms_[i]);
  }
  return drawing.Finish();
}

std::unique_ptr<Workspace, void (*)(Workspace*)> Plan::MakeWorkspace(MemoryBudget& budget) const {
  return {new Workspace(options_.limits, budget), [](Workspace* workspace) { delete workspace; }};
}

Status Plan::Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace,
                   void* row, StageTimes& times, std::span<const uint8_t> crop_index) const {
  const ApplyWatch watch(workspace.resampler, times);
  Result<ImageInfo> info = workspace.decoder.Open(bytes);
  if (!info) return std::move(info).error();
  const Orientation orientation =
      options_.exif_orientation ? info->orientation : Orientation::kNormal;
  Result<Rect> region = Start(key, info->size, orientation, workspace, row);
  if (!region) return std::move(region).error();
  if (region->width == 0) return {};  // nothing but padding
  return workspace.decoder.Decode(*region, workspace.resampler, crop_index);
}

Status Plan::Apply(const ImageView& image, const DrawKey& key, Workspace& workspace, void* row,
                   StageTimes& times) const {
  const ApplyWatch watch(workspace.resampler, times);
  if (Status status = CheckSides(image.size); !status) return status;
  Result<Rect> region = Start(key, image.size, Orientation::kNormal, workspace, row);
  if (!region) return std::move(region).error();
  if (region->width == 0) return {};
  return PushRows(image, *region, workspace.resampler);
}

// Draws, and prepares the resampler; the region that it wants, empty when nothing is to be decoded.
Result<Rect> Plan::Start(const DrawKey& key, ImageSize stored, Orientation orientation,
                         Workspace& workspace, void* row) const {
  const Geometry geometry = Draw(key, Viewed(stored, orientation));
  return workspace.resampler.Start(
      ResamplingOf(geometry, stored, orientation),
      {row, options_.dtype, scale_.data(), bias_.data(), options_.layout});
}

std::string Plan::Describe() const {
  std::string text;
  for (const Transform& transform : transforms_) text += std::string(NameOf(transform)) + ", ";
  text += "fused: decode the box only, bilinear";
  for (const Transform& t : transforms_) {
    const auto* resize = std::get_if<Resize>(&t);
    const auto* crop = std::get_if<RandomResizedCrop>(&t);
    if (resize != nullptr || crop != nullptr) {
      text += (resize != nullptr ? resize->antialias : crop->antialias) ? ", antialiased"
                                                                        : ", not antialiased";
    }
  }
  text += std::string(", to ") + NameOf(options_.dtype);
  const char* before = " ";
  for (const int64_t side : row_shape()) {
    text += before + std::to_string(side);
    before = " × ";
  }
  return text;
}

}  // namespace stoker
