#include "transforms/webp/decoder.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstring>
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

  Status Decode(const Rect& region, RowSink* sink, uint8_t* to);
  Result<uint64_t> LibraryBytes(bool alpha);
  Status Reserve(const Rect& region, size_t pixel_bytes, RowSink* sink);

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
  return DecodeTo(region, &sink, nullptr);
}

Status WebpDecoder::DecodeUnchanged(const Rect& region, uint8_t* to) {
  return DecodeTo(region, nullptr, to);
}

Status WebpDecoder::DecodeTo(const Rect& region, RowSink* sink, uint8_t* to) {
  State& s = *state_;
  if (!std::exchange(s.opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  Status status = s.Decode(region, sink, to);
  (void)s.librarys.Resize(0);
  if (s.pixels.capacity() > kKeptBytes) s.pixels.Free();
  return status;
}

// `alpha`: it is decoded. Fails if there is not even room to read the header of a lossless image,
// as which alpha of its own chunk is compressed.
Result<uint64_t> WebpDecoder::State::LibraryBytes(bool alpha) {
  const ImageSize size = container.size;
  const bool of_alpha = alpha && container.alpha_begin != container.begin && !container.lossless;
  uint64_t lossy = container.lossless ? 0 : webp::LossyBytes(size);
  if (of_alpha) lossy += static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
  constexpr size_t kChunkHeader = 8, kSignatureAndSize = 5;
  const size_t alpha_at = container.alpha_begin + kChunkHeader;
  const bool compressed = of_alpha && (bytes[alpha_at] & 3) != 0;
  if (!container.lossless && !compressed) return lossy;
  const uint64_t least = lossy + webp::LosslessBytes(size);
  if (!librarys.Resize(least)) return NoRoomToDecode("a WebP", size, least);
  const size_t data =
      compressed ? alpha_at + 1 : container.begin + kChunkHeader + kSignatureAndSize;
  return lossy + webp::LosslessBytes(size, webp::ReadLosslessHeader(bytes.subspan(data), size));
}

// Reserves all memory, including the sink's if there is one, before libwebp begins.
Status WebpDecoder::State::Reserve(const Rect& region, size_t pixel_bytes, RowSink* sink) {
  const Growth growths[] = {{pixels, pixel_bytes}};
  if (sink != nullptr) {
    Status begun = sink->Begin({PixelLayout::kInterleaved, region});
    const uint64_t least =
        container.lossless ? webp::LosslessBytes(container.size) : webp::LossyBytes(container.size);
    if (!begun.ok()) return AndMore(std::move(begun), least + MissingBytes(growths));
  }
  const Result<uint64_t> librarys_bytes = LibraryBytes(sink == nullptr && container.alpha);
  if (!librarys_bytes.ok()) return AndMore(librarys_bytes.error(), MissingBytes(growths));
  const uint64_t needed = *librarys_bytes + MissingBytes(growths);
  if (librarys.Resize(*librarys_bytes) && GrowAll(growths).ok()) return {};
  return NoRoomToDecode("a WebP", container.size, needed);
}

// Decodes into the sink or, if that is null, to `to`.
Status WebpDecoder::State::Decode(const Rect& region, RowSink* sink, uint8_t* to) {
  if (!Inside(region, container.size)) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  const Span x = WithMargin(region.x, region.x + region.width, container.size.width);
  const Span y = WithMargin(region.y, region.y + region.height, container.size.height);
  const int width = x.end - x.begin, height = y.end - y.begin;
  const bool alpha = to != nullptr && container.alpha;
  const bool whole = to != nullptr && region.size() == ImageSize{width, height};
  const size_t pixel = alpha ? 4 : 3, stride = pixel * static_cast<size_t>(width);
  const size_t pixel_bytes = stride * static_cast<size_t>(height);
  TRY(Reserve(region, whole ? 0 : pixel_bytes, sink));
  uint8_t* const decoded = whole ? to : pixels.data();

  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    return Error{Code::kUnimplemented, "libwebp and its headers have different versions"};
  }
  config.options.use_cropping = 1;
  config.options.crop_left = x.begin;
  config.options.crop_top = y.begin;
  config.options.crop_width = width;
  config.options.crop_height = height;
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = decoded;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = pixel_bytes;
  // Otherwise alpha, in a chunk before the image's, would be decoded and discarded.
  const size_t begin = alpha ? container.alpha_begin : container.begin;
  const VP8StatusCode code = WebPDecode(bytes.data() + begin, bytes.size() - begin, &config);
  WebPFreeDecBuffer(&config.output);
  if (code != VP8_STATUS_OK) return LibraryError(code, container.begin);

  if (whole) return {};
  const uint8_t* first = decoded + static_cast<size_t>(region.y - y.begin) * stride +
                         pixel * static_cast<size_t>(region.x - x.begin);
  if (sink == nullptr) {
    const size_t wanted = pixel * static_cast<size_t>(region.width);
    for (int row = 0; row < region.height; ++row, first += stride, to += wanted) {
      std::memcpy(to, first, wanted);
    }
    return {};
  }
  PushRows({PixelLayout::kInterleaved, region.size(), {first}, {static_cast<ptrdiff_t>(stride)}},
           *sink);
  return {};
}

}  // namespace stoker
