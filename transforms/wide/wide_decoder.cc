#include "transforms/wide/wide_decoder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "transforms/decode/gray_rows.h"

namespace stoker {

namespace {

int BitsOf(const ImageInfo& info, Channels channels, DType dtype, const DecodeLimits& limits) {
  if (channels == Channels::kUnchanged) return info.bits;
  if (dtype == DType::kU8 || dtype == DType::kU16) return dtype == DType::kU8 ? 8 : 16;
  return limits.accept_16_bits ? 8 : info.bits;
}

int StoredCount(const ImageInfo& info) {
  return (info.components == 1 ? 1 : 3) + (info.alpha ? 1 : 0) + info.extra;
}

uint32_t LoadValue(const uint8_t* at, int bits) {
  if (bits == 8) return *at;
  uint16_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

void StoreValue(uint32_t value, uint8_t* at) {
  const auto wide = static_cast<uint16_t>(value);
  std::memcpy(at, &wide, sizeof(wide));
}

}  // namespace

WideFormat::WideFormat(const ImageInfo& info, Channels wanted, DType dtype,
                       const DecodeLimits& limits)
    : channels(wanted),
      count(AreStored(wanted) ? StoredCount(info) : CountOf(wanted)),
      bits(BitsOf(info, wanted, dtype, limits)),
      alpha(wanted == Channels::kRgba || (AreStored(wanted) && info.alpha)),
      is_wide(bits == 16 || alpha || (AreStored(wanted) && info.extra > 0)),
      is_stored(bits == info.bits && count == StoredCount(info) && alpha == info.alpha &&
                (AreStored(wanted) || info.extra == 0)) {}

Status CheckCount(const WideFormat& format) {
  const int wanted = CountOf(format.channels);
  if (!AreStored(format.channels) || wanted == 0 || format.count == wanted) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = "an image of " + std::to_string(format.count) +
                        Plural(format.count, " channel", " channels") + ", where each must have " +
                        std::to_string(wanted),
               .advice =
                   "Ask for \"rgb\", \"gray\" or \"rgba\", to which images are converted, or "
                   "convert this one"};
}

Status CheckKept(const ImageDecoder& decoder, const ImageInfo& info, const WideFormat& format) {
  const bool all = decoder.keeps_all(), colours = !AreStored(format.channels);
  if (colours) TRY(CheckChannels(info.format, StoredCount(info)));
  const char* lost = nullptr;
  if (!all && info.bits == 16 && format.bits == 16) lost = "lower half of the values";
  if (!all && info.extra > 0 && !colours) lost = "rest of the channels";
  if (info.transparent && format.alpha) lost = "transparent colour";
  if (lost == nullptr) return {};
  return Error{
      .code = Code::kUnimplemented,
      .cause = std::string("the ") + lost + " of a " + NameOf(info.format) + " is not decoded",
      .advice = "Ask for \"rgb\" or \"gray\", or convert the image"};
}

// Reads each pixel before it writes it: the two may overlap if no pixel is written onto one that
// has yet to be read.
void WideDecoder::Convert(const Stored& stored, const uint8_t* from, size_t pixels,
                          const WideFormat& format, uint8_t* to) {
  const int sample = stored.bits / 8, narrow = stored.bits > format.bits ? 8 : 0;
  const uint32_t factor = stored.bits < format.bits ? 257 : 1;
  const uint32_t most = format.bits == 16 ? 65535 : 255;
  if (AreStored(format.channels)) {
    const size_t values = pixels * static_cast<size_t>(stored.channels);
    for (size_t i = 0; i < values; ++i, from += sample, to += 2) {
      StoreValue((LoadValue(from, stored.bits) >> narrow) * factor, to);
    }
    return;
  }
  for (size_t i = 0; i < pixels; ++i, from += stored.channels * sample) {
    std::array<uint32_t, 4> values{};
    for (int c = 0; c < stored.colours; ++c) {
      values[static_cast<size_t>(c)] = LoadValue(from + c * sample, stored.bits) >> narrow;
    }
    values[3] = stored.alpha
                    ? (LoadValue(from + stored.colours * sample, stored.bits) >> narrow) * factor
                    : most;
    if (stored.colours == 1) {
      values[1] = values[2] = values[0];
    } else if (format.count == 1) {
      values[0] = LumaOf(values[0], values[1], values[2]);
    }
    for (int c = 0; c < format.count; ++c, to += 2) {
      StoreValue(c == 3 ? values[3] : values[static_cast<size_t>(c)] * factor, to);
    }
  }
}

// `load` writes the stored pixels of a region, in rows without gaps.
template <typename Load>
Status WideDecoder::DecodeTo(std::string_view what, const Stored& stored, const WideFormat& format,
                             const Resampling& task, const PixelOutput& output, const Load& load) {
  assert(!AreStored(format.channels) || stored.channels == format.count);
  ASSIGN_OR_RETURN(const Rect region, resampler_.Start(task, format.count));
  WidePixels pixels{
      .size = region.size(), .channels = format.count, .most = format.bits == 16 ? 65535 : 255};
  if (stored.alpha && format.alpha) {
    pixels.alpha = AreStored(format.channels) ? stored.colours : 3;
  }
  if (region.width == 0) {
    resampler_.Write(pixels, output);
    return {};
  }
  const size_t count = static_cast<size_t>(region.width) * static_cast<size_t>(region.height);
  const size_t before = count * static_cast<size_t>(stored.channels * stored.bits / 8);
  const size_t after = count * static_cast<size_t>(format.count) * sizeof(uint16_t);
  // Stored pixels lie at the end, so that wider ones can take their place from the beginning on.
  const size_t at = after > before ? after - before : 0, bytes = at + before;
  if (!memory_.Grow(bytes).ok()) return NoRoomToDecode(std::string(what), task.image, bytes);
  Status loaded = load(region, memory_.data() + at);
  if (loaded.ok()) {
    Convert(stored, memory_.data() + at, count, format, memory_.data());
    pixels.values = reinterpret_cast<const uint16_t*>(memory_.data());
    resampler_.Write(pixels, output);
  }
  if (memory_.capacity() > kKeptBytes) memory_.Free();
  return AndMore(std::move(loaded), bytes);
}

Status WideDecoder::Decode(ImageDecoder& decoder, const ImageInfo& info, const WideFormat& format,
                           const Resampling& task, const PixelOutput& output,
                           std::span<const uint8_t> crop_index) {
  const bool all = decoder.keeps_all();
  const int colours = info.components == 1 || (!all && format.count == 1) ? 1 : 3;
  Stored stored{.channels = colours, .colours = colours};
  if (all) {
    stored.alpha = info.alpha;
    stored.bits = info.bits;
    stored.channels += (info.alpha ? 1 : 0) + info.extra;
  }
  const auto load = [&](const Rect& region, uint8_t* to) -> Status {
    if (all) return decoder.DecodeUnchanged(region, to);
    sink_.Start(region, colours == 1, to);
    return decoder.Decode(region, sink_, crop_index);
  };
  return DecodeTo(std::string("a ") + NameOf(info.format), stored, format, task, output, load);
}

Status WideDecoder::Decode(const ImageView& image, const WideFormat& format, const Resampling& task,
                           const PixelOutput& output) {
  const int colours = image.layout == PixelLayout::kGray ? 1 : 3;
  const bool planar = image.layout == PixelLayout::kPlanar;
  const auto load = [&](const Rect& region, uint8_t* to) -> Status {
    for (int y = region.y; y < region.y + region.height; ++y) {
      for (int x = region.x; x < region.x + region.width; ++x) {
        for (int c = 0; c < colours; ++c) {
          const auto plane = static_cast<size_t>(planar ? c : 0);
          const uint8_t* const row = image.plane[plane] + y * image.stride[plane];
          *to++ = planar ? row[x] : row[ptrdiff_t{x} * colours + c];
        }
      }
    }
    return {};
  };
  return DecodeTo("an image", {.channels = colours, .colours = colours}, format, task, output,
                  load);
}

}  // namespace stoker
