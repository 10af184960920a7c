#include "transforms/reference.h"

#include <utility>
#include <vector>

#include "engine/core/buffer.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/resampling.h"
#include "transforms/resize/plain.h"

namespace stoker {

namespace {

// Keeps the whole image.
class KeepRows final : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override {
    view_.layout = region.layout;
    view_.size = region.covered.size();
    const size_t stride =
        static_cast<size_t>(region.covered.width * BytesPerPixel(region.layout)) + kBufferPadding;
    const size_t plane = stride * static_cast<size_t>(region.covered.height);
    const size_t planes = static_cast<size_t>(PlanesOf(region.layout));
    pixels_.assign(plane * planes, 0);
    for (size_t p = 0; p < planes; ++p) {
      view_.plane[p] = pixels_.data() + p * plane;
      view_.stride[p] = static_cast<ptrdiff_t>(stride);
    }
    done_ = 0;
    return {};
  }

  MutableImageView Reserve(int rows) override {
    MutableImageView view = view_;
    view.size.height = rows;
    for (size_t p = 0; p < view.plane.size(); ++p) {
      if (view.plane[p] != nullptr) view.plane[p] += done_ * view.stride[p];
    }
    return view;
  }

  void Commit(int rows) override { done_ += rows; }

  ImageView view() const {
    return {
        view_.layout, view_.size, {view_.plane[0], view_.plane[1], view_.plane[2]}, view_.stride};
  }

 private:
  MutableImageView view_;
  std::vector<uint8_t> pixels_;
  int done_ = 0;
};

void Resample(const Plan& plan, const ImageView& image, Orientation orientation, const DrawKey& key,
              void* row) {
  const Geometry geometry = plan.Draw(key, Viewed(image.size, orientation));
  ResamplePlain(
      image, ResamplingOf(geometry, image.size, orientation),
      {row, plan.dtype(), plan.scale().data(), plan.bias().data(), plan.options().layout});
}

}  // namespace

Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row) {
  JpegDecoder decoder(plan.options().limits);
  Result<ImageInfo> info = decoder.Open(bytes);
  if (!info) return std::move(info).error();
  KeepRows image;
  if (Status status = decoder.Decode({0, 0, info->size.width, info->size.height}, image); !status) {
    return status;
  }
  const Orientation orientation =
      plan.options().exif_orientation ? info->orientation : Orientation::kNormal;
  Resample(plan, image.view(), orientation, key, row);
  return {};
}

void ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row) {
  Resample(plan, image, Orientation::kNormal, key, row);
}

}  // namespace stoker
