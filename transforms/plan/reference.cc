#include "transforms/plan/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/augment/augmenter.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/resampling.h"
#include "transforms/plan/row/erase.h"
#include "transforms/resize/emit.h"
#include "transforms/resize/plain.h"

namespace stoker {

namespace {

// A sink that keeps the whole image.
class KeepRows final : public RowSink {
 public:
  explicit KeepRows(bool gray) : gray_(gray) {}

  PixelLayout wants() const override { return gray_ ? PixelLayout::kGray : PixelLayout::kPlanar; }

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
  const bool gray_;
  MutableImageView view_;
  std::vector<uint8_t> pixels_;
  int done_ = 0;
};

// Writes the pixels of the row outside its image.
void PadPlain(ImageSize image, const Plan& plan, uint8_t* row) {
  const ImageSize whole = plan.RowSize(image);
  const RowFormat format = plan.PaddingFormat(row, whole);
  for (int y = 0; y < whole.height; ++y) {
    for (int x = y < image.height ? image.width : 0; x < whole.width; ++x) {
      StorePixel(format, plan.padding().data(), row + y * format.down + x * format.along);
    }
  }
}

// Returns the first of three planes of nearest pixels; `fill` where the image has none.
std::vector<uint8_t> NearestPlain(const ImageView& image, Resampling resampling, ImageSize size,
                                  uint8_t fill) {
  const size_t pixels = static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  resampling.interpolation = Interpolation::kNearest;
  const auto resample = [&](const ImageView& view) {
    std::vector<uint8_t> planes(3 * pixels);
    ResamplePlain(view, resampling, {.row = planes.data(), .layout = Layout::kNchw});
    planes.resize(pixels);
    return planes;
  };
  const std::vector<uint8_t> ones(static_cast<size_t>(image.size.width), 1);
  const std::vector<uint8_t> inside =
      resample({PixelLayout::kGray, image.size, {ones.data()}, {0}});
  std::vector<uint8_t> nearest = resample(image);
  for (size_t i = 0; i < pixels; ++i) {
    if (inside[i] == 0) nearest[i] = fill;
  }
  return nearest;
}

// Returns the pixels of the row that an image makes.
Rect PartOf(const Plan& plan, const DrawnSample& drawn) {
  const ImageSize row = plan.output_size();
  return drawn.placed ? drawn.placed->part : Rect{0, 0, row.width, row.height};
}

// Returns those of `width` pixels of row y that an image makes.
AxisSpan ColumnsIn(const DrawnSample& drawn, int y, int width) {
  return drawn.placed ? ColumnsOf(*drawn.placed, y) : AxisSpan{0, width};
}

// Writes the pixels around the image of a part of a row, in three planes.
void FillPlain(const Rect& image, const Fill& fill, ImageSize size, std::vector<uint8_t>& pixels) {
  size_t at = 0;
  for (const uint8_t value : fill) {
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x, ++at) {
        const bool inside =
            x >= image.x && x < image.x + image.width && y >= image.y && y < image.y + image.height;
        if (!inside) pixels[at] = value;
      }
    }
  }
}

// Makes one byte of each pixel of a mask's row: only what moves pixels, on three equal planes.
void MakeMaskPlane(const Plan& plan, const ImageView& image, const Resampling& resampling,
                   const DrawnSample& drawn, uint8_t fill, size_t pixel, uint8_t* row) {
  ImageSize size = drawn.geometry.window.size();
  const std::vector<uint8_t> plane = NearestPlain(image, resampling, size, fill);
  std::vector<uint8_t> pixels;
  for (int c = 0; c < 3; ++c) pixels.insert(pixels.end(), plane.begin(), plane.end());
  if (drawn.placed) FillPlain(drawn.placed->image, {fill, fill, fill}, size, pixels);
  for (const DrawnStep& drawn_step : drawn.steps) {
    Step step = drawn_step.step;
    if (auto* const affine = std::get_if<Affine>(&step)) {
      affine->interpolation = Interpolation::kNearest;
      affine->fill = {fill, fill, fill};
      affine->fade = false;
    } else if (auto* const reframe = std::get_if<Reframe>(&step)) {
      reframe->fill = {fill, fill, fill};
    } else if (!std::holds_alternative<Mirror>(step)) {
      continue;
    }
    ApplyStepPlain(step, size, pixels);
  }
  const ImageSize whole = plan.RowSize(size);
  const Rect part = drawn.placed ? drawn.placed->part : Rect{0, 0, whole.width, whole.height};
  for (int y = 0; y < part.height; ++y) {
    const auto [begin, end] = ColumnsIn(drawn, y, part.width);
    uint8_t* to = row + static_cast<size_t>((part.y + y) * whole.width + part.x + begin) * pixel;
    for (int x = begin; x < end; ++x, to += pixel) {
      const bool inside = x < size.width && y < size.height;
      *to = inside ? pixels[static_cast<size_t>(y * size.width + x)] : fill;
    }
  }
}

// Makes the row of a mask, of 16 bits byte by byte.
void MakeMaskRow(const Plan& plan, const ImageView& image, const Resampling& resampling,
                 const DrawnSample& drawn, uint8_t* row) {
  const uint16_t fill = plan.mask()->fill;
  const auto pixel = static_cast<size_t>(BytesPerPixel(image.layout));
  for (size_t byte = 0; byte < pixel; ++byte) {
    std::vector<uint8_t> plane;
    for (int y = 0; y < image.size.height; ++y) {
      for (int x = 0; x < image.size.width; ++x) {
        plane.push_back(image.plane[0][y * image.stride[0] + x * static_cast<ptrdiff_t>(pixel) +
                                       static_cast<ptrdiff_t>(byte)]);
      }
    }
    const ImageView part{PixelLayout::kGray, image.size, {plane.data()}, {image.size.width}};
    MakeMaskPlane(plan, part, resampling, drawn, static_cast<uint8_t>(fill >> 8 * byte), pixel,
                  row + byte);
  }
}

// Makes the geometry that of all pixels that an image makes; false if there are none.
bool ShowWholePart(DrawnSample& drawn) {
  if (!drawn.placed) return true;
  if (drawn.steps.empty()) ShowPart(*drawn.placed, drawn.geometry);
  return !IsEmpty(drawn.placed->part);
}

Status MakeRow(const Plan& plan, const ImageView& image, const Resampling& resampling,
               const DrawnSample& drawn, void* row) {
  const ImageSize row_size = plan.RowSize(drawn.size);
  const PixelOutput output = plan.OutputTo(row, row_size);
  const RowFormat format(output, row_size);
  if (drawn.steps.empty() && !drawn.placed) {
    ResamplePlain(image, resampling, output);
  } else {
    ImageSize size = drawn.geometry.window.size();
    std::vector<uint8_t> pixels(3 * static_cast<size_t>(size.width) *
                                static_cast<size_t>(size.height));
    ResamplePlain(image, resampling, {.row = pixels.data(), .layout = Layout::kNchw});
    if (drawn.placed) FillPlain(drawn.placed->image, drawn.placed->fill, size, pixels);
    for (const DrawnStep& step : drawn.steps) ApplyStepPlain(step.step, size, pixels);
    const ptrdiff_t plane = ptrdiff_t{size.width} * size.height;
    const Rect part = PartOf(plan, drawn);
    for (int y = 0; y < size.height; ++y) {
      const auto [begin, end] = ColumnsIn(drawn, y, size.width);
      EmitRowsPlain(
          {&pixels[static_cast<size_t>(y * size.width + begin)], 0, plane, 3, 1, end - begin},
          format,
          static_cast<uint8_t*>(output.row) + (part.y + y) * format.down +
              (part.x + begin) * format.along);
    }
  }
  if (plan.pads()) PadPlain(drawn.size, plan, static_cast<uint8_t*>(row));
  for (const Erasure& erasure : drawn.erasures) Erase(erasure, format, static_cast<uint8_t*>(row));
  return {};
}

}  // namespace

Status ApplyReference(const Plan& plan, std::span<const uint8_t> bytes, const DrawKey& key,
                      void* row) {
  ImageDecoder decoder(plan.options().limits);
  const bool mask = plan.mask().has_value();
  const bool deep = mask && plan.mask()->kind == Piece::Kind::kMask16;
  const PixelMeaning of_mask = deep ? PixelMeaning::kMask16 : PixelMeaning::kMask;
  ASSIGN_OR_RETURN(ImageInfo info, decoder.Open(bytes, mask ? of_mask : PixelMeaning::kColour));
  if (!mask) TRY(CheckBits(info, plan.options().limits));
  const Orientation orientation =
      plan.options().exif_orientation ? info.orientation : Orientation::kNormal;
  DrawnSample drawn;
  TRY(plan.Draw(key, Viewed(info.size, orientation), drawn));
  if (!ShowWholePart(drawn)) return {};
  const Reduction reduction = plan.options().decode == DecodeSize::kScaled
                                  ? ReductionOf(drawn.geometry, MaxReduction(info))
                                  : 1;
  const ImageSize size = Reduced(info.size, reduction);
  KeepRows image(plan.is_gray());
  TRY(decoder.Decode({0, 0, size.width, size.height}, image, {}, reduction));
  const Resampling resampling = ResamplingOf(drawn.geometry, info.size, orientation, reduction);
  if (!mask) return MakeRow(plan, image.view(), resampling, drawn, row);
  MakeMaskRow(plan, image.view(), resampling, drawn, static_cast<uint8_t*>(row));
  return {};
}

Status ApplyReference(const Plan& plan, const ImageView& image, const DrawKey& key, void* row) {
  DrawnSample drawn;
  TRY(plan.Draw(key, image.size, drawn));
  if (!ShowWholePart(drawn)) return {};
  return MakeRow(plan, image, ResamplingOf(drawn.geometry, image.size, Orientation::kNormal), drawn,
                 row);
}

Rect PlacePlain(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                std::span<const ImageSize> of_row) {
  const auto scaled = [&](ImageSize image) -> ImageSize {
    const int longer = std::max(image.width, image.height);
    const double size = mosaic.size * drawn.scale;
    return {std::max(1, static_cast<int>(RoundHalfEven(image.width * size / longer))),
            std::max(1, static_cast<int>(RoundHalfEven(image.height * size / longer)))};
  };
  const auto [w, h] = scaled(of_row[part]);
  if (!drawn.several) {
    return {static_cast<int>(std::floor(drawn.x - w / 2.0)),
            static_cast<int>(std::floor(drawn.y - h / 2.0)), w, h};
  }
  const auto x = static_cast<int>(drawn.x), y = static_cast<int>(drawn.y);
  if (mosaic.n == 4) {
    return {part % 2 == 0 ? x - w : x, part / 2 == 0 ? y - h : y, w, h};
  }
  const ImageSize first = scaled(of_row[0]), before = scaled(of_row[std::max(part, 1u) - 1]);
  const int right = x + first.width, bottom = y + first.height;
  const std::array<std::array<int, 2>, 9> corners{{{x, y},
                                                   {x, y - h},
                                                   {x + before.width, y - h},
                                                   {right, y},
                                                   {right, y + before.height},
                                                   {right - w, bottom},
                                                   {right - before.width - w, bottom},
                                                   {x - w, bottom - h},
                                                   {x - w, bottom - before.height - h}}};
  return {corners[part][0], corners[part][1], w, h};
}

}  // namespace stoker
