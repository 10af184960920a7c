// Plan: a list of transforms compiled once, applied to each sample.
//
// Draw is separate from Apply: Draw is a pure function from a sample's key and its image's size to
// a Geometry; Apply decodes only the box that the geometry names and writes the finished batch row.
//
// A plan may have several views: lists of transforms, each applied to the sample with draws of its
// own. Apply decodes the sample once for all of them and writes a row for each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/channels.h"
#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "core/time/stage_times.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/orientation.h"
#include "transforms/decode/reduction.h"
#include "transforms/plan/drawn.h"
#include "transforms/plan/encoded_image.h"
#include "transforms/plan/objects.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct ImageContext;
struct ViewContext;
struct PixelOutput;
struct WideFormat;
struct RowFormat;

// One of the samples that a row is made of.
struct RowPart {
  uint32_t part = 0;    // DrawKey::part
  uint64_t sample = 0;  // its id in the source
};

// All of them, at least one.
struct RowSamples {
  std::array<RowPart, kMostParts> parts{};
  uint32_t count = 1;

  std::span<const RowPart> all() const { return std::span(parts).first(count); }
};

// One of the encoded images of a sample. All of them get the same draw.
struct Piece {
  enum class Kind : uint8_t {
    kImage,
    // One channel of a PNG whose values (indices of a palette, or gray that is not scaled) are
    // kept: transforms move pixels, nearest, and leave values alone. The row is u8 (height, width),
    // without conversion. Other images are Unimplemented.
    kMask,
    kMask16,  // a mask with values of up to 16 bits: the row is u16
  };
  Kind kind = Kind::kImage;
  uint16_t fill =
      0;  // of a mask: the value of pixels outside the image, for any fill of transforms

  bool is_mask() const { return kind != Kind::kImage; }

  friend bool operator==(const Piece&, const Piece&) = default;
};

struct PlanOptions {
  // kU8: 0…255; kU16: 0…65535, of 8 bits × 257; kF16, kBF16, kF32: value / 255 or value / 65535, or
  // normalized if there is a Normalize.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  Channels channels = Channels::kRgb;
  bool exif_orientation = true;  // rotate images as their EXIF tag says
  DecodeSize decode = DecodeSize::kFull;
  // Batch rows are read long after they are written: large ones are written past the caches.
  bool read_later = false;
  // A device applies the deferred operations (core/batch/deferred_ops.h): batch rows are u8 and
  // NHWC, neither normalized nor erased, and may still have to be mirrored; each one's operations
  // are written next to it.
  bool defer_to_device = false;
  // A device also decodes: batch rows of JPEGs that are packed, or have a crop index, are not
  // written, and their crops are made instead (transforms/device/crop_maker.h). Requires
  // defer_to_device.
  bool decode_on_device = false;
  DecodeLimits limits{};
  bool geometry = false;          // OutputRows::geometry and original_size are set
  std::vector<Piece> pieces{{}};  // of a sample, the first one an image
  // The fields of its objects: at most one has boxes. Transforms move boxes and keypoints as they
  // move the image's pixels, in the order of the list and as torchvision does: a crop, padding or
  // an affine transform clamps boxes to the image that it makes, and hides keypoints outside of it.
  std::vector<ObjectField> objects{};
  uint32_t max_objects = 0;   // the most that a sample has, for extra_bytes()
  bool draws_shapes = false;  // ObjectRows have masks
};

// Whether plans of these options compute with 8 bits of RGB or gray.
constexpr bool TakesSteps(const PlanOptions& options) {
  return options.dtype != DType::kU16 &&
         (options.channels == Channels::kRgb || options.channels == Channels::kGray);
}

// The memory that a worker reuses from sample to sample, for two interleaved samples. Not
// thread-safe.
class Workspace;

// Returns how the images processed with a workspace have been decoded, since it was created.
DecodePaths PathsOf(const Workspace& workspace);

// MemoryOf returns the bytes of the budget that the workspace holds. FreeMemoryOf releases them;
// the memory grows again with the next image.
uint64_t MemoryOf(const Workspace& workspace);
void FreeMemoryOf(Workspace& workspace);

// Returns the nanoseconds that each transform of the plan, view after view, has taken since the
// workspace was created, for transforms that were not fused.
std::vector<uint64_t> TransformTimesOf(const Workspace& workspace);

// The pass in which a transform is executed.
enum class ExecutionSite : uint8_t {
  kFused,  // while decoding and resizing, without a pass of its own
  kTile,   // on the resized image in a worker's memory, for samples that need it
  kRow,    // on the finished batch row
};

// Immutable and thread-safe.
class Plan {
 public:
  // InvalidArgument names the transform (by index and name) and the option: a size that is not
  // positive, a scale or ratio out of order, a second resampling, output that is not of one size,
  // Normalize with kU8 or not at the end, padding that repeats pixels while objects have boxes or
  // keypoints, which it does not repeat, …
  static Result<Plan> Compile(std::vector<Transform> transforms, const PlanOptions& options = {});

  // Returns a plan with a view for each list (at least one). Functions that describe a row describe
  // that of the first view. InvalidArgument also names the view; several views cannot have a PadTo,
  // masks or objects, or defer operations to a device.
  static Result<Plan> CompileViews(std::vector<std::vector<Transform>> views,
                                   const PlanOptions& options = {});
  size_t views() const { return views_.empty() ? 1 : views_.size(); }
  // The plan of one view alone. It makes the same draws with a key that names the view.
  const Plan& view(size_t index) const { return views_.empty() ? *this : views_[index]; }

  // The plan of one piece, of any sample of a row. Functions that describe a row describe that of a
  // piece's plan. All of them make the same draws, and each one can use the workspaces of this one.
  const Plan& piece(size_t index) const;
  // The mask, if this is the plan of one.
  const std::optional<Piece>& mask() const { return mask_; }

  ImageSize output_size() const { return output_; }
  // Whether images may be smaller than their rows (PadTo).
  bool pads() const { return pad_to_.has_value(); }
  // Whether rows have the size of their batch's largest image (PadTo::multiple). output_size() is
  // then the most; Apply writes an image without padding, as a row of its own size, and FinishBatch
  // (row/pad_batch.h) makes rows of one size.
  bool pads_batches() const { return pad_to_ && pad_to_->multiple != 0; }
  // The last bytes of a row's memory, in which Apply then writes the image as uint8, which
  // FinishBatch converts; 0 if Apply writes the final values.
  size_t staged_bytes() const;
  // The type and shape of the batch rows that Apply writes.
  DType dtype() const { return options_.defer_to_device ? DType::kU8 : options_.dtype; }
  Layout layout() const { return options_.defer_to_device ? Layout::kNhwc : options_.layout; }
  int channels() const { return CountOf(options_.channels); }
  bool is_gray() const { return channels() == 1; }
  // Whether transforms may change pixels, or values of the row; otherwise they only move pixels.
  bool takes_steps() const { return TakesSteps(options_); }
  // {height, width, channels}, or {channels, height, width}; of a mask {height, width}.
  std::vector<int64_t> row_shape() const { return row_shape(output_); }
  std::vector<int64_t> row_shape(ImageSize size) const;
  size_t row_bytes() const;  // of a whole batch row's memory: of row_shape(), and staged_bytes()
  // The output of the deferred operations: options() has its type and layout, scale() and bias()
  // the conversion.
  std::vector<int64_t> finished_shape() const;
  uint32_t boxes() const;     // boxes that follow a batch row's DeferredOps: one for each
                              // RandomErasing, and two for a PadTo after Normalize
  size_t work_bytes() const;  // per batch row; 0 if nothing is deferred to a device

  // The most samples that a row is made of: Mosaic::n, 2 with a CopyPaste of objects of another
  // image, otherwise 1. Of a Mosaic of four without a CopyPaste, each one writes its own part of
  // the row, in any order, but for objects, which follow those of the samples before it.
  uint32_t parts() const {
    if (mosaic_) return static_cast<uint32_t>(mosaic_->n);
    return pastes_others() ? 2 : 1;
  }
  // A row has at most this many times the objects of a sample.
  uint32_t times_objects() const { return copies_ * parts(); }
  // Returns the samples of a row: first the one that it is for, then those that are drawn of the
  // source's `samples`, of a Mosaic of four without a CopyPaste only those with a pixel in the row.
  // A pure function. `attempt` draws others, for a row one of whose samples could not be used.
  RowSamples SamplesOf(const DrawKey& key, uint64_t sample, uint64_t samples,
                       uint32_t attempt) const;

  // `image`: size as viewed, both sides at least 1. Replaces `drawn`, but for row_sizes, to which
  // it adds this one: draw parts of a Mosaic of nine into one `drawn`, in order. InvalidArgument if
  // it is too small for a RandomCrop. The objects of `context`, as read for the image, are moved as
  // its pixels are, and `drawn` may refer to its memory; null is the same as no objects.
  Status Draw(const DrawKey& key, ImageSize image, DrawnSample& drawn,
              ViewContext* context = nullptr) const;

  // Returns rows of the stored image, [begin, end), that are enough to apply the plan with this
  // key, as DrawKey of EncodedImage; with those that upsampling of a JPEG's chroma may blend in.
  // nullopt: all may be needed (as of a mask), they depend on the sample's boxes, or the image is
  // an error. `stored`: its sides are at least 1.
  std::optional<AxisSpan> RowsOf(const DrawKey& key, ImageSize stored,
                                 Orientation orientation) const;

  // Memory is charged to `budget`, which must outlive the workspace.
  std::unique_ptr<Workspace, void (*)(Workspace*)> MakeWorkspace(MemoryBudget& budget) const;

  // Decodes one sample and writes its batch rows (PlanRun, plan_run.h, does so for many). Adds to
  // `times`. Precondition of the overload with one row: there is one view. It writes the row even
  // if the plan decodes on a device; so does the one for decoded images.
  Status Apply(const EncodedImage& image, Workspace& workspace, StageTimes& times) const;
  Status Apply(std::span<const uint8_t> bytes, const DrawKey& key, Workspace& workspace, void* row,
               StageTimes& times, std::span<const uint8_t> crop_index = {}, void* work = nullptr,
               int32_t* size = nullptr) const;

  // Does the same for a decoded image, 1 to kMaxSidePixels on each side, gray, interleaved or
  // planar RGB: makes the same draws and writes the same bytes as for a lossless file of the image
  // (without an EXIF orientation). Reads no byte outside the image's pixel rows. InvalidArgument
  // names a side. Precondition: this is not the plan of a mask.
  Status Apply(const ImageView& image, const DrawKey& key, Workspace& workspace,
               const OutputRows& to, StageTimes& times) const;

  // One line that says what was fused. Explain (explain.h) has the details.
  std::string Describe() const;

  const PlanOptions& options() const { return options_; }
  const std::vector<Transform>& transforms() const { return transforms_; }
  const std::vector<ExecutionSite>& sites() const { return sites_; }  // of transforms()
  // Bytes of a workspace for tiles, and for tiles and further views, in addition to what every
  // workspace needs.
  uint64_t tile_bytes() const;
  uint64_t extra_bytes() const;
  // The size of the row that is written for an image of this size.
  ImageSize RowSize(ImageSize image) const { return pads_batches() ? image : output_; }
  // The destination of an image, and of a row that is finished.
  PixelOutput OutputTo(void* row, ImageSize row_size) const;
  PixelOutput FinishedTo(void* row, ImageSize row_size) const;
  // The format of the pixels of a row outside its image, if the plan pads; their values are those
  // of padding().
  RowFormat PaddingFormat(void* row, ImageSize row_size) const;
  const Fill& padding() const { return pad_to_->fill; }
  uint32_t multiple() const { return static_cast<uint32_t>(pad_to_->multiple); }
  // The output of each channel is value × scale + bias; {1/255, 0} without Normalize. Not for kU8.
  // There are three or more.
  const std::vector<float>& scale() const { return scale_; }
  const std::vector<float>& bias() const { return bias_; }

 private:
  class Drawing;
  friend class PlanRun;
  Plan() = default;
  Result<bool> Open(const EncodedImage& image, ImageContext& context) const;
  struct StoredImage {
    ImageSize size;
    Orientation orientation = Orientation::kNormal;
    Reduction most = 1;  // with which it can be decoded
  };
  Result<Rect> StartRows(const EncodedImage& image, const StoredImage& stored,
                         ImageContext& context) const;
  Status DrawRow(const DrawKey& key, ImageSize viewed, ViewContext& context) const;
  Status DrawWithObjects(const DrawKey& key, ImageSize viewed, ViewContext& context) const;
  Status KeepOnCanvas(const DrawKey& key, ImageSize viewed, ViewContext& context) const;
  Status DrawCanvas(ViewContext& context, bool has_objects) const;
  bool LacksImages(const ViewContext& context) const;
  static uint32_t FailedPart(ViewContext& context);
  Status FinishCanvas(ViewContext& context) const;
  Result<Rect> StartRow(const StoredImage& stored, Reduction reduction, ViewContext& context) const;
  bool StartCrop(const EncodedImage& image, const StoredImage& stored, ImageContext& context) const;
  std::optional<OnWorker> GiveCrop(const EncodedImage& image, const StoredImage& stored,
                                   ImageContext& context) const;
  Status EmitRows(ImageContext& context) const;
  StoredImage Stored(const ImageInfo& info, ImageContext& context) const;
  Result<bool> ApplyWide(const EncodedImage& image, const ImageInfo& info,
                         const StoredImage& stored, const WideFormat& format,
                         ImageContext& context) const;
  Status CheckWide(const ImageInfo& info) const;
  Result<bool> OpenMask(const EncodedImage& image, ImageContext& context) const;
  uint8_t* MaskTo(const ViewContext& context) const;
  Status EmitMask(ViewContext& context) const;
  Status EmitRow(ViewContext& context) const;
  Status EmitPart(ViewContext& context) const;
  Status EmitOnCanvas(ViewContext& context) const;
  Status Augment(ViewContext& context) const;
  void Surround(ViewContext& context) const;
  Plan OfMask(const Piece& mask) const;
  bool has_masks() const;
  bool pastes_others() const { return has_canvas_ && !mosaic_; }
  // Whether the images of a row are drawn and decoded one after another.
  bool in_order() const { return has_canvas_ || (mosaic_ && mosaic_->n > 4); }
  uint64_t view_tile_bytes() const;
  uint64_t CanvasBytes() const;
  uint64_t interleaved() const { return in_order() ? 1 : 2; }  // samples of a workspace
  std::string DescribeView() const;

  PlanOptions options_;
  std::vector<Transform> transforms_;
  std::vector<ExecutionSite> sites_;
  size_t normalize_index_ = 0;  // after this index, values of erasures are not normalized
  Normalize normalize_;
  std::optional<Mosaic> mosaic_;  // the first transform
  bool has_canvas_ = false;       // a CopyPaste follows it, or pastes another's objects
  size_t canvas_at_ = 0;  // the index of that CopyPaste; 0 if nine images are turned without one
  std::vector<ObjectField> canvas_objects_;  // options_.objects, in pixels
  std::optional<PadTo> pad_to_;
  size_t pad_to_index_ = 0;
  bool pads_finished_ = false;  // after Normalize
  ImageSize output_;
  ImageSize tile_;  // the largest, if any transform is executed on a tile
  std::vector<float> scale_;
  std::vector<float> bias_;
  std::vector<Plan> views_;   // of each view alone, if there are several
  std::vector<Plan> pieces_;  // of the pieces after the first one, if any is not an image
  std::optional<Piece> mask_;
  bool draws_by_boxes_ = false;  // crops or steps depend on the boxes of a sample
  uint32_t copies_ = 1;          // of each object, at most: 2 if a CopyPaste mirrors them
};

}  // namespace stoker
