// Compose: applies transforms to one image at a time, without a loader: for serving.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch/channels.h"
#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "engine/arrays/decode_image.h"
#include "transforms/array/array_request.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/reduction.h"
#include "transforms/spec/transform.h"

namespace stoker {

struct ComposeOptions {
  // The LoaderOptions of the same names. Without transforms, arrays are whole images, like those of
  // DecodeImage, and `decode` has no effect.
  std::vector<Transform> transforms{};
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  Channels channels = Channels::kRgb;
  bool exif_orientation = true;
  DecodeSize decode = DecodeSize::kFull;
  DecodeLimits limits{};
  // Limit on the working memory of all calls together, in bytes, including a copy of each file but
  // not the arrays. 0 means a quarter of the available memory, at most 4 GiB, divided by the ranks.
  uint64_t memory_budget = 0;
};

struct ComposedImage {
  // With `into`, the array is in the caller's memory and aligned as that is; it may be used as long
  // as that memory exists, which its owners do not keep alive.
  DecodedArray array;
  // With PadTo: the size of the image, at the top left of the array; the rest is padding.
  std::optional<ImageSize> size{};
};

// Turns an image into the same bytes as a Loader with the same options. Random transforms draw what
// the loader draws for the key: `seed` is LoaderOptions::seed, `epoch` is below 2^32, `position` is
// the sample's place in the order of the epoch, and `view`, below kMaxViews, is k for the
// transforms of LoaderOptions::views[k], otherwise 0.
//
// Thread-safe: calls do not wait for each other. Must outlive its calls; arrays may outlive it.
// Starts no thread. Keeps for later calls at most 32 MiB of working memory for each call that ran
// at the same time and, outside the budget, 64 MiB of arrays that were freed. A call that finds no
// room in memory_budget frees the working memory that is kept. Works in a forked child.
class Compose {
 public:
  // InvalidArgument names the transform, as for Loader::Open, or the option (limits must be at
  // least 1).
  static Result<std::unique_ptr<Compose>> Create(ComposeOptions options);
  ~Compose();
  Compose(const Compose&) = delete;
  Compose& operator=(const Compose&) = delete;

  // Decodes an image and transforms it. Errors of the image's bytes are those of
  // DecodeImage. InvalidArgument: an image that is too small for a RandomCrop, or too large for a
  // PadTo; `into` although arrays differ in size; a key out of its range. ResourceExhausted: an
  // image beyond the limits, or too large for memory_budget; the system has no memory for the array
  // or for the call's work.
  //
  // `into`: memory for the array, shape()->bytes() bytes of any alignment, such as a row of a
  // batch; null means new memory. Concurrent calls must not write the same bytes. After an error
  // its content is unspecified.
  Result<ComposedImage> Apply(std::span<const uint8_t> bytes, const DrawKey& key = {},
                              void* into = nullptr) const;

  // Does the same for the image in a file. Errors name it, including those of reading it.
  Result<ComposedImage> ApplyToFile(const std::string& path, const DrawKey& key = {},
                                    void* into = nullptr) const;

  // Transforms a decoded image, 1 to kMaxSidePixels on each side: gray, interleaved or planar RGB.
  // The limits and exif_orientation do not apply to it, and `into` must not overlap it.
  // InvalidArgument names a side.
  Result<ComposedImage> Apply(const ImageView& image, const DrawKey& key = {},
                              void* into = nullptr) const;

  // The shape of all arrays; nullopt without transforms, and with PadTo::multiple, because each
  // image then has its own shape.
  const std::optional<ArrayShape>& shape() const;
  uint64_t memory_budget() const;  // bytes

 private:
  class State;
  explicit Compose(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace stoker
