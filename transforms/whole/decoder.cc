#include "transforms/whole/decoder.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/decode/push_region.h"
#include "transforms/whole/format.h"

namespace stoker {
namespace {

// Buffers up to this size are kept from image to image.
constexpr size_t kKeptBytes = size_t{1} << 20;

// Keeps the colour of `count` pixels, and the upper 8 of 16 bits, in the same memory.
void KeepColour(const whole::Header& header, size_t count, uint8_t* pixels) {
  const auto sample = static_cast<size_t>(header.bits / 8);
  const size_t colours = header.channels < 3 ? 1 : 3, pixel = header.pixel_bytes();
  if (pixel == colours) return;
  const size_t high = sample == 2 && std::endian::native == std::endian::little ? 1 : 0;
  const uint8_t* from = pixels + high;
  for (size_t i = 0; i < count; ++i, from += pixel) {
    for (size_t c = 0; c < colours; ++c) *pixels++ = from[c * sample];
  }
}

}  // namespace

struct WholeDecoder::State {
  State(const DecodeLimits& l, MemoryBudget* given)
      : limits(l), budget(given != nullptr ? *given : unlimited) {}

  Status Decode(const Rect& region, RowSink* sink, uint8_t* to);
  Status Reserve(const Rect& region, RowSink* sink);

  DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<int64_t>::max()};
  MemoryBudget& budget;
  Reservation library{budget};
  GrowingBuffer pixels{budget};  // the region's rows, in the image's whole width

  // State of the open image.
  bool opened = false;
  std::span<const uint8_t> bytes;
  ImageFormat format = ImageFormat::kUnknown;
  whole::Header header;
};

WholeDecoder::WholeDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : state_(std::make_unique<State>(limits, budget)) {}
WholeDecoder::~WholeDecoder() = default;
WholeDecoder::WholeDecoder(WholeDecoder&&) noexcept = default;
WholeDecoder& WholeDecoder::operator=(WholeDecoder&&) noexcept = default;

bool WholeDecoder::Decodes(ImageFormat format) { return whole::FormatOf(format) != nullptr; }

Result<ImageInfo> WholeDecoder::Open(std::span<const uint8_t> bytes, ImageFormat format) {
  State& s = *state_;
  s.opened = false;
  ASSIGN_OR_RETURN(const whole::Header header, whole::FormatOf(format)->read_header(bytes));
  TRY(CheckSize(header.size, s.limits, 0, static_cast<int>(header.pixel_bytes())));
  s.bytes = bytes;
  s.format = format;
  s.header = header;
  s.opened = true;
  return ImageInfo{.size = header.size,
                   .orientation = header.orientation,
                   .components = header.channels < 3 ? 1 : 3,
                   .several_frames = header.several_frames,
                   .format = format,
                   .alpha = header.channels % 2 == 0,
                   .bits = header.bits,
                   .extra = header.extra,
                   .transparent = header.transparent};
}

// Reserves all memory, including the sink's if there is one, before the library begins.
Status WholeDecoder::State::Reserve(const Rect& region, RowSink* sink) {
  const Growth growths[] = {{pixels, static_cast<size_t>(header.size.width) * header.pixel_bytes() *
                                         static_cast<size_t>(region.height)}};
  const uint64_t needed = header.library_bytes + MissingBytes(growths);
  if (sink != nullptr) {
    const auto layout = header.channels < 3 ? PixelLayout::kGray : PixelLayout::kInterleaved;
    Status begun = sink->Begin({layout, region});
    if (!begun.ok()) return AndMore(std::move(begun), needed);
  }
  if (library.Resize(header.library_bytes) && GrowAll(growths).ok()) return {};
  return NoRoomToDecode(whole::WithArticle(format), header.size, needed);
}

// Decodes into the sink or, if that is null, to `to`.
Status WholeDecoder::State::Decode(const Rect& region, RowSink* sink, uint8_t* to) {
  if (sink != nullptr) TRY(CheckChannels(format, header.channels + header.extra));
  TRY(Reserve(region, sink));
  const size_t pixel = header.pixel_bytes();
  const size_t stride = static_cast<size_t>(header.size.width) * pixel;
  const whole::Rows rows{region.y, region.y + region.height, pixels.data(), stride};
  TRY(whole::FormatOf(format)->decode(bytes, header, rows));
  if (sink == nullptr) {
    const size_t wanted = static_cast<size_t>(region.width) * pixel;
    for (int y = rows.begin; y < rows.end; ++y, to += wanted) {
      std::memcpy(to, rows.Row(y) + static_cast<size_t>(region.x) * pixel, wanted);
    }
    return {};
  }
  const ImageSize size{header.size.width, region.height};
  KeepColour(header, static_cast<size_t>(size.width) * static_cast<size_t>(size.height),
             pixels.data());
  const auto layout = header.channels < 3 ? PixelLayout::kGray : PixelLayout::kInterleaved;
  const ImageView view{
      layout, size, {pixels.data()}, {ptrdiff_t{BytesPerPixel(layout)} * size.width}};
  PushRows(PartOf(view, {region.x, 0, region.width, region.height}), *sink);
  return {};
}

Status WholeDecoder::Decode(const Rect& region, RowSink& sink) {
  return DecodeTo(region, &sink, nullptr);
}

Status WholeDecoder::DecodeUnchanged(const Rect& region, uint8_t* to) {
  return DecodeTo(region, nullptr, to);
}

Status WholeDecoder::DecodeTo(const Rect& region, RowSink* sink, uint8_t* to) {
  State& s = *state_;
  if (!std::exchange(s.opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  if (!Inside(region, s.header.size)) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  Status status = s.Decode(region, sink, to);
  (void)s.library.Resize(0);
  if (s.pixels.capacity() > kKeptBytes) s.pixels.Free();
  return status;
}

}  // namespace stoker
