#include "transforms/png/decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "transforms/decode/push_region.h"
#include "transforms/png/chunks.h"
#include "transforms/png/errors.h"
#include "transforms/png/packed/packed_png.h"
#include "transforms/png/pixels.h"
#include "transforms/png/rows.h"

namespace stoker {
namespace {

// One of the seven passes of an interlaced image: every `dx`th pixel of every `dy`th row (Adam7;
// clause 8.2 of the standard).
struct Pass {
  int x, y, dx, dy;

  int Columns(int width) const { return width <= x ? 0 : (width - x + dx - 1) / dx; }
  int Rows(int height) const { return height <= y ? 0 : (height - y + dy - 1) / dy; }
};
constexpr std::array<Pass, 7> kPasses = {{{0, 0, 8, 8},
                                          {4, 0, 8, 8},
                                          {0, 4, 4, 8},
                                          {2, 0, 4, 4},
                                          {0, 2, 2, 4},
                                          {1, 0, 2, 2},
                                          {0, 1, 1, 2}}};

// The region's share of a pass: its columns and rows [begin, end).
struct Share {
  int left, right, top, bottom;
  bool empty() const { return left >= right || top >= bottom; }
};
Share ShareOf(const Pass& pass, const Rect& r) {
  return {pass.Columns(r.x), pass.Columns(r.x + r.width), pass.Rows(r.y),
          pass.Rows(r.y + r.height)};
}

Status CheckMask(const png::Header& header, PixelMeaning meaning) {
  constexpr uint64_t kBitsAt = 24, kColorAt = 25;
  if (header.channels() != 1) {
    return NoMask("has " + std::to_string(header.channels()) + " channels", kColorAt);
  }
  if (header.bit_depth > 8 && meaning == PixelMeaning::kMask) {
    return NoMask("has " + std::to_string(header.bit_depth) + " bits", kBitsAt);
  }
  return {};
}

png::Conversion ConversionTo(PixelMeaning meaning, bool replaces) {
  if (replaces) return png::Conversion::kOnWhite;
  if (meaning == PixelMeaning::kMask16) return png::Conversion::kTo16Indices;
  return IsMask(meaning) ? png::Conversion::kToIndices : png::Conversion::kTo8Bits;
}

// Buffers up to this size are kept from image to image.
constexpr size_t kKeptBytes = size_t{1} << 20;

}  // namespace

struct PngDecoder::State {
  State(const DecodeLimits& l, MemoryBudget* given)
      : limits(l), budget(given != nullptr ? *given : unlimited) {}

  Result<png::Header> ReadHeader(std::span<const uint8_t> file);
  Status TakeOpened(const Rect& region);
  Status Decode(const Rect& region, const png::Pixels& convert, RowSink* sink, uint8_t* to);
  Status Reserve(const Rect& region, size_t pixel, RowSink* sink);
  Status ReadAll(const Rect& region, const png::Pixels& convert, RowSink* sink, uint8_t* to);
  Result<const uint8_t*> NextRow(const Rect& region) {
    return packed ? bands.Next() : rows.Next(region.x + region.width);
  }
  Status ReadRows(const Rect& region, const png::Pixels& convert, RowSink& sink);
  Status ReadRows(const Rect& region, const png::Pixels& convert, uint8_t* to);
  std::array<int, kPasses.size()> RowsOfPasses(const Rect& region) const;
  uint64_t BytesUntil(const Rect& region) const;
  Status GatherPasses(const Rect& region, const png::Pixels& convert, uint8_t* to);
  Status GatherPass(const Pass& pass, int count, const Rect& region, const png::Pixels& convert,
                    uint8_t* to);
  std::span<const uint8_t> Palette() const;
  std::span<const uint8_t> Transparency() const;

  DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<int64_t>::max()};
  MemoryBudget& budget;
  png::RowReader rows{budget};
  packed_png::BandReader bands{budget};
  GrowingBuffer part{budget};    // a pass's pixels of a row of the region
  GrowingBuffer pixels{budget};  // the region of an interlaced image

  // State of the open image.
  bool opened = false;
  std::span<const uint8_t> bytes;  // of a packed PNG its chunks
  std::optional<packed_png::PackedPng> packed;
  png::Conversion conversion = png::Conversion::kTo8Bits;
  png::Header header;
  png::Layout layout;
};

PngDecoder::PngDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : state_(std::make_unique<State>(limits, budget)) {}
PngDecoder::~PngDecoder() = default;
PngDecoder::PngDecoder(PngDecoder&&) noexcept = default;
PngDecoder& PngDecoder::operator=(PngDecoder&&) noexcept = default;

Result<ImageInfo> PngDecoder::Open(std::span<const uint8_t> bytes, PixelMeaning meaning) {
  State& s = *state_;
  s.opened = false;
  ASSIGN_OR_RETURN(const png::Header header, s.ReadHeader(bytes));
  const bool mask = IsMask(meaning);
  if (mask) TRY(CheckMask(header, meaning));
  TRY(CheckSize(header.size, s.limits, png::kHeaderBytes));
  if (s.packed) {
    s.layout = s.packed->layout();
  } else {
    ASSIGN_OR_RETURN(s.layout, png::ReadLayout(s.bytes, header));
  }
  s.header = header;
  const bool transparent = s.layout.transparent && header.channels() % 2 == 1;
  const bool replaces = transparent && header.bit_depth <= 8 && meaning == PixelMeaning::kOnWhite;
  if (replaces && s.Transparency().empty()) {
    const uint64_t chunks_at = s.packed ? s.packed->OffsetOf(s.bytes.data()) : 0;
    return png::Damaged("its chunk tRNS " + std::string(s.layout.transparency_damage),
                        chunks_at + s.layout.transparency.begin);
  }
  s.conversion = ConversionTo(meaning, replaces);
  s.opened = true;
  return ImageInfo{
      .size = header.size,
      .orientation = s.layout.orientation,
      .components = header.gray() || mask ? 1 : 3,
      .several_frames = s.layout.several_frames,
      .progressive = header.interlaced,
      .format = s.packed ? ImageFormat::kPackedPng : ImageFormat::kPng,
      .alpha = header.color == png::Color::kGrayAlpha || header.color == png::Color::kRgba,
      .bits = header.bit_depth == 16 ? 16 : 8,
      .transparent = transparent && s.conversion != png::Conversion::kOnWhite};
}

Result<png::Header> PngDecoder::State::ReadHeader(std::span<const uint8_t> file) {
  packed.reset();
  bytes = file;
  if (file.empty() || file[0] != packed_png::kMagic[0]) return png::ReadHeader(file);
  ASSIGN_OR_RETURN(packed, packed_png::PackedPng::Open(file));
  bytes = packed->chunks();
  return packed->header();
}

std::span<const uint8_t> PngDecoder::State::Palette() const {
  const png::Range& chunk = layout.palette;
  constexpr size_t kBefore = 8, kBehind = 4;
  if (chunk.end == 0) return {};
  return bytes.subspan(chunk.begin + kBefore, chunk.end - chunk.begin - kBefore - kBehind);
}

std::span<const uint8_t> PngDecoder::State::Transparency() const {
  return bytes.subspan(layout.transparency.begin,
                       layout.transparency.end - layout.transparency.begin);
}

// Reserves all memory, including the sink's if there is one, before the first row.
Status PngDecoder::State::Reserve(const Rect& region, size_t pixel, RowSink* sink) {
  const size_t width = header.interlaced ? static_cast<size_t>(region.width) * pixel : 0;
  const Growth growths[] = {
      packed ? bands.Room(header) : rows.Room(header),
      {part, width},
      {pixels, sink != nullptr ? width * static_cast<size_t>(region.height) : 0}};
  const uint64_t needed = MissingBytes(growths);
  if (sink != nullptr) {
    const png::Pixels convert(header, Palette(), conversion, Transparency());
    Status begun = sink->Begin({convert.layout(), region});
    if (!begun.ok()) return AndMore(std::move(begun), needed);
  }
  if (GrowAll(growths).ok()) return {};
  return NoRoomToDecode("a PNG", header.size, needed);
}

Status PngDecoder::State::TakeOpened(const Rect& region) {
  if (!std::exchange(opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  if (!Inside(region, header.size)) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  return {};
}

Status PngDecoder::Decode(const Rect& region, RowSink& sink) {
  TRY(state_->TakeOpened(region));
  const png::Pixels convert(state_->header, state_->Palette(), state_->conversion,
                            state_->Transparency());
  return state_->Decode(region, convert, &sink, nullptr);
}

Status PngDecoder::DecodeUnchanged(const Rect& region, uint8_t* to) {
  TRY(state_->TakeOpened(region));
  const png::Pixels convert(state_->header, state_->Palette(), png::Conversion::kNone);
  return state_->Decode(region, convert, nullptr, to);
}

// Decodes into the sink or, if that is null, to `to`, which has exactly the room for the pixels and
// so cannot be a sink's memory. For a sink, an interlaced image is first gathered in the decoder's
// own memory.
Status PngDecoder::State::Decode(const Rect& region, const png::Pixels& convert, RowSink* sink,
                                 uint8_t* to) {
  Status status = Reserve(region, convert.pixel_bytes(), sink);
  if (status.ok()) status = ReadAll(region, convert, sink, to);
  if (pixels.capacity() > kKeptBytes) pixels.Free();
  return status;
}

Status PngDecoder::State::ReadAll(const Rect& region, const png::Pixels& convert, RowSink* sink,
                                  uint8_t* to) {
  if (packed) {
    bands.Start(*packed, region);
  } else {
    rows.Start(bytes, header, layout, BytesUntil(region));
    for (int y = 0; !header.interlaced && y < region.y; ++y) TRY(NextRow(region));
  }
  if (sink == nullptr) {
    return header.interlaced ? GatherPasses(region, convert, to) : ReadRows(region, convert, to);
  }
  if (!header.interlaced) return ReadRows(region, convert, *sink);
  TRY(GatherPasses(region, convert, pixels.data()));
  const auto stride =
      static_cast<ptrdiff_t>(static_cast<size_t>(region.width) * convert.pixel_bytes());
  return PushRegion({convert.layout(), region.size(), {pixels.data()}, {stride}}, region, *sink);
}

Status PngDecoder::State::ReadRows(const Rect& region, const png::Pixels& convert, RowSink& sink) {
  for (int done = 0; done < region.height;) {
    const MutableImageView room = sink.Reserve(region.height - done);
    for (int y = 0; y < room.size.height; ++y) {
      ASSIGN_OR_RETURN(const uint8_t* const row, NextRow(region));
      convert.Convert(row, region.x, region.width, room.plane[0] + y * room.stride[0]);
    }
    sink.Commit(room.size.height);
    done += room.size.height;
  }
  return {};
}

Status PngDecoder::State::ReadRows(const Rect& region, const png::Pixels& convert, uint8_t* to) {
  const size_t stride = static_cast<size_t>(region.width) * convert.pixel_bytes();
  for (int y = 0; y < region.height; ++y, to += stride) {
    ASSIGN_OR_RETURN(const uint8_t* const row, NextRow(region));
    convert.Convert(row, region.x, region.width, to);
  }
  return {};
}

// Returns how many rows of each pass are read: none after those with pixels of the region.
std::array<int, kPasses.size()> PngDecoder::State::RowsOfPasses(const Rect& region) const {
  std::array<int, kPasses.size()> counts{};
  bool after = true;
  for (size_t p = kPasses.size(); p-- > 0;) {
    const Share share = ShareOf(kPasses[p], region);
    if (after && share.empty()) continue;
    const bool some = kPasses[p].Columns(header.size.width) > 0;
    counts[p] = after ? share.bottom : some ? kPasses[p].Rows(header.size.height) : 0;
    after = false;
  }
  return counts;
}

// Returns the bytes of the rows that are read, with their filter bytes, up to the region's last
// pixel.
uint64_t PngDecoder::State::BytesUntil(const Rect& region) const {
  const auto sum = [this](int count, int columns, int right) {
    const uint64_t row = header.RowBytes(columns);
    return std::pair(static_cast<uint64_t>(count) * (row + 1), row - header.RowBytes(right));
  };
  const int right = region.x + region.width;
  if (!header.interlaced) {
    const auto [all, after] = sum(region.y + region.height, header.size.width, right);
    return all - after;
  }
  uint64_t total = 0, not_wanted = 0;
  const std::array<int, kPasses.size()> counts = RowsOfPasses(region);
  for (size_t p = 0; p < kPasses.size(); ++p) {
    if (counts[p] == 0) continue;
    const Pass& pass = kPasses[p];
    const auto [all, after] = sum(counts[p], pass.Columns(header.size.width), pass.Columns(right));
    total += all;
    not_wanted = after;
  }
  return total - not_wanted;
}

// Rows are complete only after the last pass, so the region's pixels are gathered first.
Status PngDecoder::State::GatherPasses(const Rect& region, const png::Pixels& convert,
                                       uint8_t* to) {
  const std::array<int, kPasses.size()> counts = RowsOfPasses(region);
  for (size_t p = 0; p < kPasses.size(); ++p) {
    if (counts[p] > 0) TRY(GatherPass(kPasses[p], counts[p], region, convert, to));
  }
  return {};
}

// Reads the first `count` rows of a pass.
Status PngDecoder::State::GatherPass(const Pass& pass, int count, const Rect& region,
                                     const png::Pixels& convert, uint8_t* to) {
  const size_t pixel = convert.pixel_bytes(), stride = static_cast<size_t>(region.width) * pixel;
  const Share share = ShareOf(pass, region);
  rows.StartPass(pass.Columns(header.size.width));
  for (int y = 0; y < count; ++y) {
    ASSIGN_OR_RETURN(const uint8_t* const row, rows.Next(share.right));
    if (share.empty() || y < share.top || y >= share.bottom) continue;
    convert.Convert(row, share.left, share.right - share.left, part.data());
    const uint8_t* from = part.data();
    uint8_t* at = to + static_cast<size_t>(pass.y + y * pass.dy - region.y) * stride +
                  static_cast<size_t>(pass.x + share.left * pass.dx - region.x) * pixel;
    for (int x = share.left; x < share.right; ++x, from += pixel) {
      for (size_t b = 0; b < pixel; ++b) at[b] = from[b];
      at += static_cast<size_t>(pass.dx) * pixel;
    }
  }
  return {};
}

}  // namespace stoker
