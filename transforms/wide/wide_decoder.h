// WideDecoder: decodes images that are not 8-bit gray or RGB: those with alpha or other channels,
// or of 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/batch/channels.h"
#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/array/array_sink.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/decode/image_info.h"
#include "transforms/resize/resampler.h"
#include "transforms/resize/row_format.h"
#include "transforms/wide/float_resampler.h"

namespace stoker {

// The channels that an image is converted to, and the bits of each one, 8 or 16.
struct WideFormat {
  // kU16 takes 16, and so does a float type for an image that has them, unless the limits accept
  // the upper 8. kUnchanged has the image's own bits.
  WideFormat(const ImageInfo& info, Channels wanted, DType dtype, const DecodeLimits& limits);

  Channels channels;
  int count;  // channels
  int bits;
  bool alpha;      // of the image is kept
  bool is_wide;    // WideDecoder decodes the image; otherwise it is one of 8-bit gray or RGB
  bool is_stored;  // pixels are those that DecodeUnchanged gives
};

// Unimplemented if the image has another number of channels than StoredChannels asks for.
Status CheckCount(const WideFormat& format);

// Unimplemented if the decoder does not keep what is wanted of the open image: a transparent
// colour, 16 bits or other channels; or if colours are wanted of too many channels.
Status CheckKept(const ImageDecoder& decoder, const ImageInfo& info, const WideFormat& format);

// The colours and alpha of the file become the channels that are asked for: gray becomes three
// equal ones, colours their luma (LumaOf), and alpha is the largest value where there is none.
// Values of 8 bits become 16 as × 257, and those of 16 become 8 as their upper half.
//
// All memory is charged to the budget: it holds the region while it is decoded. Reused from image
// to image. Not thread-safe.
class WideDecoder {
 public:
  // A region's memory is kept from image to image up to this size.
  static constexpr size_t kKeptBytes = size_t{1} << 20;

  explicit WideDecoder(MemoryBudget& budget) : sink_(budget), memory_(budget), resampler_(budget) {}

  // Decodes the image that is open in `decoder`, and writes all of the output, in all types of
  // pixels but those that do not fit the bits (FloatResampler). Its `channels` and `gray` are not
  // used. Errors: those of the decoder. Precondition: CheckKept.
  Status Decode(ImageDecoder& decoder, const ImageInfo& info, const WideFormat& format,
                const Resampling& task, const PixelOutput& output,
                std::span<const uint8_t> crop_index = {});

  // Does the same for decoded pixels.
  Status Decode(const ImageView& image, const WideFormat& format, const Resampling& task,
                const PixelOutput& output);

 private:
  // The pixels that a decoder gives: gray or RGB, perhaps alpha, and then other channels.
  struct Stored {
    int channels = 3;
    int colours = 3;
    bool alpha = false;
    int bits = 8;
  };
  template <typename Load>
  Status DecodeTo(std::string_view what, const Stored& stored, const WideFormat& format,
                  const Resampling& task, const PixelOutput& output, const Load& load);
  static void Convert(const Stored& stored, const uint8_t* from, size_t pixels,
                      const WideFormat& format, uint8_t* to);

  ArraySink sink_;
  GrowingBuffer memory_;
  FloatResampler resampler_;
};

}  // namespace stoker
