#include "transforms/webp/decoder.h"

#include <webp/decode.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/decode/push_region.h"
#include "transforms/webp/container.h"
#include "transforms/webp/library_bytes.h"

namespace stoker {
namespace {

// The columns or rows to decode so that [begin, end) match a full decode: pixels at the border of
// the decoded part are upsampled with one chroma sample instead of two. libwebp begins at even
// columns and rows.
struct Span {
  int begin, end;
};
Span WithMargin(int begin, int end, int all) {
  return {std::max(begin - 1, 0) & ~1, std::min(end + 1, all)};
}

Error LibraryError(VP8StatusCode code, uint64_t offset) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return Error{Code::kResourceExhausted, "no memory left to decode a WebP", {}, offset};
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return webp::Damaged("its compressed data end before its last row", offset);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Error{Code::kUnimplemented,
                   "libwebp cannot decode this kind of WebP",
                   {},
                   offset,
                   "Convert it to another format"};
    default:
      return webp::Damaged("invalid compressed data", offset);
  }
}

// Buffers up to this size are kept from image to image.
constexpr size_t kKeptBytes = size_t{1} << 20;

}  // namespace

struct WebpDecoder::State {
  State(const DecodeLimits& l, MemoryBudget* given)
      : limits(l), budget(given != nullptr ? *given : unlimited) {}

  Status Decode(const Rect& region, RowSink& sink);
  Result<uint64_t> LibraryBytes();
  Status Reserve(const Rect& region, size_t pixel_bytes, RowSink& sink);

  DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<int64_t>::max()};
  MemoryBudget& budget;
  Reservation librarys{budget};
  GrowingBuffer pixels{budget};

  // State of the open image.
  bool opened = false;
  std::span<const uint8_t> bytes;
  webp::Container container;
};

WebpDecoder::WebpDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : state_(std::make_unique<State>(limits, budget)) {}
WebpDecoder::~WebpDecoder() = default;
WebpDecoder::WebpDecoder(WebpDecoder&&) noexcept = default;
WebpDecoder& WebpDecoder::operator=(WebpDecoder&&) noexcept = default;

Result<ImageInfo> WebpDecoder::Open(std::span<const uint8_t> bytes) {
  State& s = *state_;
  s.opened = false;
  s.bytes = bytes;
  ASSIGN_OR_RETURN(webp::Container container, webp::ReadContainer(bytes));
  TRY(CheckSize(container.size, s.limits, container.begin));
  s.container = container;
  s.opened = true;
  const int shared = container.lossless ? 1 : 2;
  return ImageInfo{.size = container.size,
                   .orientation = container.orientation,
                   .several_frames = container.several_frames,
                   .chroma_columns = shared,
                   .chroma_rows = shared,
                   .format = ImageFormat::kWebp,
                   .alpha = container.alpha};
}

Status WebpDecoder::Decode(const Rect& region, RowSink& sink) {
  State& s = *state_;
  if (!std::exchange(s.opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  Status status = s.Decode(region, sink);
  (void)s.librarys.Resize(0);
  if (s.pixels.capacity() > kKeptBytes) s.pixels.Free();
  return status;
}

// Fails if there is not even room to read the header.
Result<uint64_t> WebpDecoder::State::LibraryBytes() {
  if (!container.lossless) return webp::LossyBytes(container.size);
  const uint64_t least = webp::LosslessBytes(container.size);
  if (!librarys.Resize(least)) return NoRoomToDecode("a WebP", container.size, least);
  constexpr size_t kChunkHeader = 8;  // a limit on what reading the header takes
  const size_t data = container.begin + kChunkHeader;
  return webp::LosslessBytes(container.size,
                             webp::ReadLosslessHeader(bytes.subspan(data), container.size));
}

// Reserves all memory, including the sink's, before libwebp begins.
Status WebpDecoder::State::Reserve(const Rect& region, size_t pixel_bytes, RowSink& sink) {
  const Growth growths[] = {{pixels, pixel_bytes}};
  if (Status begun = sink.Begin({PixelLayout::kInterleaved, region}); !begun.ok()) {
    const uint64_t least =
        container.lossless ? webp::LosslessBytes(container.size) : webp::LossyBytes(container.size);
    return AndMore(std::move(begun), least + MissingBytes(growths));
  }
  const Result<uint64_t> librarys_bytes = LibraryBytes();
  if (!librarys_bytes.ok()) return AndMore(librarys_bytes.error(), MissingBytes(growths));
  const uint64_t needed = *librarys_bytes + MissingBytes(growths);
  if (librarys.Resize(*librarys_bytes) && GrowAll(growths).ok()) return {};
  return NoRoomToDecode("a WebP", container.size, needed);
}

Status WebpDecoder::State::Decode(const Rect& region, RowSink& sink) {
  if (!Inside(region, container.size)) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  const Span x = WithMargin(region.x, region.x + region.width, container.size.width);
  const Span y = WithMargin(region.y, region.y + region.height, container.size.height);
  const int width = x.end - x.begin, height = y.end - y.begin;
  const size_t stride = size_t{3} * static_cast<size_t>(width);
  const size_t pixel_bytes = stride * static_cast<size_t>(height);
  TRY(Reserve(region, pixel_bytes, sink));

  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    return Error{Code::kUnimplemented, "libwebp and its headers have different versions"};
  }
  config.options.use_cropping = 1;
  config.options.crop_left = x.begin;
  config.options.crop_top = y.begin;
  config.options.crop_width = width;
  config.options.crop_height = height;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels.data();
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = pixel_bytes;
  // Decodes only the image's chunk: alpha, in a chunk before it, would be decoded and discarded.
  const VP8StatusCode code =
      WebPDecode(bytes.data() + container.begin, bytes.size() - container.begin, &config);
  WebPFreeDecBuffer(&config.output);
  if (code != VP8_STATUS_OK) return LibraryError(code, container.begin);

  const uint8_t* first = pixels.data() + static_cast<size_t>(region.y - y.begin) * stride +
                         size_t{3} * static_cast<size_t>(region.x - x.begin);
  return PushRegion(
      {PixelLayout::kInterleaved, region.size(), {first}, {static_cast<ptrdiff_t>(stride)}}, region,
      sink);
}

}  // namespace stoker
