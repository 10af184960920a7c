// The crop index of one photograph: entry points into its entropy-coded data, before every fourth
// MCU, so that decoding a region can start near it.
//
// CropIndexMaker creates it once; the photograph is not changed. Its checksum detects accidental
// changes, and RunPlan nearly all others. Format: a Prefix (crop_index.cc), then the positions of
// all entry points, then their predictors of Y, of Cb and of Cr, in little-endian order, with the
// bits per number that the Prefix gives, packed from the lowest bit. Positions are absolute rather
// than differences, so that one wrong number cannot shift the others undetected. From the next byte
// follow checksums of the photograph, 32 bits (the lower half of Hash64) of each 4 KiB of the file
// and of the rest at its end.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

// An entry point: the state of the parser between two MCUs, which is the position of the next bit
// and the DC predictors. A restart marker, and the bits that fill the byte before it, follow the
// position.
struct EntryPoint {
  // The position from the first byte after the header, in the file as stored, including the zeros
  // stuffed after 0xFF, and markers: byte × 8 + bit.
  int64_t bit = 0;
  std::array<int32_t, 3> dc{};

  int64_t byte() const { return bit / 8; }
  // The end of the bytes with bits before the entry point, and of a zero stuffed after them; it may
  // lie beyond the end of the file.
  int64_t end_byte() const { return byte() + 2; }
  friend bool operator==(const EntryPoint&, const EntryPoint&) = default;
};

// Describes where the entry points are: before the first MCU of each row or, with restart markers,
// of each segment; before every interval-th MCU after it; and after the last MCU of the image.
struct IndexShape {
  static constexpr int kInterval = 4;
  static constexpr int kMaxInterval = 255;

  IndexShape() = default;
  IndexShape(const FrameHeader& header, int interval);

  // The MCU that follows an entry point.
  int64_t McuAt(int64_t entry_point) const {
    return std::min(entry_point / per_stride * stride + entry_point % per_stride * interval, mcus);
  }
  // The last entry point at or before an MCU.
  int64_t EntryPointBefore(int64_t mcu) const {
    return mcu / stride * per_stride + mcu % stride / interval;
  }
  // The first entry point after `entry_point` that begins a row or a segment.
  int64_t SegmentEnd(int64_t entry_point) const {
    return std::min((entry_point / per_stride + 1) * per_stride, entry_points() - 1);
  }
  int64_t entry_points() const { return EntryPointBefore(mcus - 1) + 2; }
  // Whether a restart marker follows the entry point, after the bits that fill the byte before it.
  bool MarkerFollows(int64_t entry_point) const {
    return restarts && entry_point != 0 && entry_point % per_stride == 0 &&
           entry_point + 1 < entry_points();
  }

  int64_t mcus = 0;    // of the image
  int64_t stride = 1;  // MCUs of a row, or between restart markers
  int64_t per_stride = 1;
  int64_t interval = 1;
  bool restarts = false;  // there are restart markers
};

// Packs `entry_points` as the index of `file`. Returns nothing if a number does not fit (which no
// valid file below 4 GB has) or the file is larger.
std::vector<uint8_t> PackCropIndex(std::span<const uint8_t> file, const FrameHeader& header,
                                   const IndexShape& shape,
                                   std::span<const EntryPoint> entry_points);

// A reader of a packed index. It owns nothing: the packed bytes must stay valid.
class CropIndex {
 public:
  enum class Match {
    kUsable,
    kStale,    // the index of another file, or of this one before it was changed
    kDamaged,  // its bytes have changed since it was written, or it is of another format
  };

  // `packed` may be any bytes. `header` is the result of ParseHeader for `file`. Only a part of the
  // file is compared: its size, its tables, and pieces of its data.
  Match Open(std::span<const uint8_t> packed, std::span<const uint8_t> file,
             const FrameHeader& header);

  const IndexShape& shape() const { return shape_; }

  // The photograph has a checksum for each piece of this many bytes, and for the rest at its end.
  static constexpr size_t kPieceBytes = 4096;

  // Whether the header of `file` is the one that was indexed: compares the checksums of all pieces
  // that it touches. `file` may have any size. Returns false if Open has not returned kUsable.
  bool HeaderIntact(std::span<const uint8_t> file) const;

  // The same of the data from the byte of `from` to the end byte of `until`, or of the file; they
  // may be any entry points. The piece in which the header ends counts as the header's. False if
  // the entry points are not in order, or not inside the file.
  bool Intact(std::span<const uint8_t> file, const EntryPoint& from, const EntryPoint& until) const;

  // Precondition: Open returned kUsable, and 0 ≤ number < shape().entry_points(). The result may be
  // wrong.
  EntryPoint At(int64_t number) const;

  // A reader of consecutive entry points, which is cheaper than At for each. Precondition: as for
  // At; the index must stay open.
  class Reader;
  Reader From(int64_t number) const;

 private:
  struct Field {        // an array of numbers of equal width, one for each entry point
    int64_t begin = 0;  // bits from the first byte
    int bits = 0;
  };
  bool IsOpenFor(std::span<const uint8_t> file) const;
  bool PiecesAreIntact(std::span<const uint8_t> file, size_t first, size_t end) const;

  std::span<const uint8_t> packed_;
  std::span<const uint8_t> checksums_;
  size_t file_bytes_ = 0;
  size_t scan_offset_ = 0;
  IndexShape shape_;
  Field bit_;
  std::array<Field, 3> dc_;
  std::array<int32_t, 3> min_dc_{};
};

class CropIndex::Reader {
 public:
  Reader(const CropIndex& index, int64_t number)
      : packed_(index.packed_), bit_(index.bit_), dc_(index.dc_), min_dc_(index.min_dc_) {
    bit_.begin += number * bit_.bits;
    for (Field& dc : dc_) dc.begin += number * dc.bits;
  }

  // Replaces `entry_point` by the next one. (Returning it would copy it right after it was written
  // in parts, on which processors stall.) Precondition: there is another one.
  void Next(EntryPoint& entry_point) {
    entry_point.bit = Take(bit_);
    for (size_t c = 0; c < 3; ++c) {
      entry_point.dc[c] = min_dc_[c] + static_cast<int32_t>(Take(dc_[c]));
    }
  }

 private:
  int64_t Take(Field& field) const {
    const auto at = static_cast<size_t>(field.begin / 8);
    uint64_t word = 0;
    if (at + sizeof(word) <= packed_.size()) {
      std::memcpy(&word, packed_.data() + at, sizeof(word));
    } else {
      std::memcpy(&word, packed_.data() + at, packed_.size() - at);
    }
    const uint64_t value = word >> field.begin % 8 & ((uint64_t{1} << field.bits) - 1);
    field.begin += field.bits;
    return static_cast<int64_t>(value);
  }

  std::span<const uint8_t> packed_;
  Field bit_;
  std::array<Field, 3> dc_;
  std::array<int32_t, 3> min_dc_;
};

inline CropIndex::Reader CropIndex::From(int64_t number) const { return {*this, number}; }
inline EntryPoint CropIndex::At(int64_t number) const {
  EntryPoint entry_point;
  From(number).Next(entry_point);
  return entry_point;
}

}  // namespace stoker::jpeg
