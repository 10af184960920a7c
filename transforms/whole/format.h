// The formats that are decoded whole, row by row and without a crop index: by a library of the
// machine, loaded when the first image of the format comes, or by a small parser here (BMP, ICO,
// PNM). Each format is a file with a Format; WholeDecoder has what they share.
//
// A new format: its file with a Format, a line in format.cc, and in CMakeLists.txt the library's
// headers, without which `NAME_absent.cc` takes its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/orientation.h"

namespace stoker::whole {

struct Header {
  ImageSize size;            // as stored, both sides at least 1
  int channels = 3;          // 1: gray, 2: gray and alpha, 3: RGB, 4: RGBA
  int extra = 0;             // channels after these, which only DecodeUnchanged keeps
  int bits = 8;              // of a channel: 8, or 16 in the machine's byte order
  bool transparent = false;  // ImageInfo::transparent
  Orientation orientation = Orientation::kNormal;
  uint64_t library_bytes = 0;   // an upper bound of the memory that Format::decode allocates
  bool several_frames = false;  // or pages, of which the first one is decoded

  size_t pixel_bytes() const { return static_cast<size_t>((channels + extra) * bits / 8); }
};

// The rows [begin, end) of the image, without gaps.
struct Rows {
  int begin, end;
  uint8_t* pixels;
  size_t stride;  // bytes of a row

  bool Has(int y) const { return y >= begin && y < end; }
  uint8_t* Row(int y) const { return pixels + static_cast<size_t>(y - begin) * stride; }
};

// Both functions are thread-safe, use no files and no global error handlers, and take any bytes.
// Errors: DataLoss for damaged and truncated files, Unimplemented for variants that are not
// decoded, or if the library is not there; all have an offset, which is 0 where a library does not
// tell.
struct Format {
  // Allocates no more than a few MiB and a few times the file, for any size in the header.
  Result<Header> (*read_header)(std::span<const uint8_t> bytes);
  // Writes all bytes of `rows`, or fails. `header`: what read_header returned for these bytes, if
  // its size is within the limits.
  Status (*decode)(std::span<const uint8_t> bytes, const Header& header, const Rows& rows);
};

// Null for other formats, and for those whose library had no headers when stoker was built.
const Format* FormatOf(ImageFormat format);

// One for each file of this folder.
extern const Format kAvif, kBmp, kGif, kHeic, kIco, kJp2, kPnm, kTiff;
inline constexpr Format kAbsent{};

// Returns the bytes from the PNG on that is the largest image of an ICO, which kIco does not
// decode; empty if that is a bitmap.
std::span<const uint8_t> PngIn(std::span<const uint8_t> ico);

Error Damaged(ImageFormat format, const std::string& cause, uint64_t offset = 0);
Error Truncated(ImageFormat format, uint64_t offset = 0);
// Damaged if a caller changed the bytes between read_header, whose header the rows are made for,
// and decode, which reads it again.
Status CheckSame(ImageFormat format, const Header& first, const Header& again);
// "a BMP", "an AVIF".
std::string WithArticle(ImageFormat format);
// "a BMP with `what` is not decoded".
Error Unsupported(ImageFormat format, const std::string& what, uint64_t offset = 0);

// Number `x` of the samples of 1, 2, 4 or 8 bits in a row; the first one is in the highest bits.
inline uint8_t SampleAt(const uint8_t* row, int x, int bits) {
  const int first = x * bits;
  return static_cast<uint8_t>(row[first / 8] >> (8 - bits - first % 8) & ((1 << bits) - 1));
}

}  // namespace stoker::whole
