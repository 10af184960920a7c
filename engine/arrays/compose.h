// Compose: applies transforms to one image at a time, without a loader: for serving.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
  // As the LoaderOptions of these names. Without transforms, arrays are whole images, as those of
  // DecodeImage, and `decode` changes nothing.
  std::vector<Transform> transforms{};
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
  bool exif_orientation = true;
  DecodeSize decode = DecodeSize::kFull;
  DecodeLimits limits{};
  // Bytes of working memory of all calls together, with a copy of each file, without the arrays.
  // 0: for each Compose a quarter of the available memory, at most 4 GiB, shared by the ranks.
  uint64_t memory_budget = 0;
};

struct ComposedImage {
  // Or, in memory of the caller (`into`), an array as aligned as that memory, which its owners do
  // not keep: it may be used as long as the caller's memory exists.
  DecodedArray array;
  // With PadTo: the size of the image, at the top left of the array; the rest is padding.
  std::optional<ImageSize> size{};
};

// Makes the same bytes from an image as a Loader with the same options. Random transforms draw what
// the loader draws for the key: `seed` is LoaderOptions::seed, `epoch` is below 2^32, `position` is
// the sample's place in the order of the epoch, and `view`, below kMaxViews, is 0 or, with the
// transforms of LoaderOptions::views[k], k.
//
// Thread-safe: calls do not wait for each other. Must outlive its calls; arrays may outlive it.
// Starts no thread. Keeps for later calls at most 32 MiB of working memory for each call that ran
// at the same time and, outside the budget, 64 MiB of arrays that were freed. A call that finds no
// room in memory_budget frees what is kept of it. Works in a forked child.
class Compose {
 public:
  // InvalidArgument names the transform, as for Loader::Open, or the option: limits are at least 1.
  static Result<std::unique_ptr<Compose>> Create(ComposeOptions options);
  ~Compose();
  Compose(const Compose&) = delete;
  Compose& operator=(const Compose&) = delete;

  // Decodes a JPEG, PNG or WebP and transforms it. Errors of the image's bytes are those of
  // DecodeImage. InvalidArgument: an image that is too small for a RandomCrop, or too large for a
  // PadTo; `into` without transforms; a key out of its range. ResourceExhausted: an image beyond
  // the limits, or too large for memory_budget; the system has no memory for the array or for the
  // call's work.
  //
  // `into`: memory for the array, shape()->bytes() bytes of any alignment, such as a row of a
  // batch; null means new memory. No two calls may write the same bytes at a time. After an error
  // its content is unspecified.
  Result<ComposedImage> Apply(std::span<const uint8_t> bytes, const DrawKey& key = {},
                              void* into = nullptr) const;

  // Does the same for the image in a file. Errors name it; also those of reading it.
  Result<ComposedImage> ApplyToFile(const std::string& path, const DrawKey& key = {},
                                    void* into = nullptr) const;

  // Transforms a decoded image, 1 to kMaxSidePixels on each side: gray, interleaved or planar RGB.
  // The limits and exif_orientation do not apply to it, and `into` must not overlap it.
  // InvalidArgument names a side.
  Result<ComposedImage> Apply(const ImageView& image, const DrawKey& key = {},
                              void* into = nullptr) const;

  // The shape of all arrays; without transforms none, because each image has a shape of its own.
  const std::optional<ArrayShape>& shape() const;
  uint64_t memory_budget() const;  // bytes

 private:
  class State;
  explicit Compose(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace stoker
