// The crop index of one photograph: the entry points in its entropy-coded data, before every eighth
// MCU, so that decoding a region can start beside it.
//
// CropIndexMaker makes it once; the photograph is not changed. Its checksum finds accidental
// changes, and RunPlan nearly all others. Format: a Prefix (crop_index.cc), then the positions of
// all entry points, then their predictors of Y, of Cb and of Cr, little-endian, each a number of
// the Prefix's bits, packed from the lowest bit. Positions are absolute rather than differences, so
// that one wrong number does not shift the others undetectably.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

// How one MCU leaves the parser to the next: the place of the next bit, and the DC predictors. A
// restart marker, and the bits that fill the byte before it, come behind the place.
struct ScanPlace {
  // From the first byte behind the header on, in the file as it is: with the zeros stuffed behind
  // 0xFF, and with markers. byte × 8 + bit.
  int64_t bit = 0;
  std::array<int32_t, 3> dc{};

  int64_t byte() const { return bit / 8; }
  friend bool operator==(const ScanPlace&, const ScanPlace&) = default;
};

// Before which MCUs there are places: the first of each row, or where there are restart markers the
// first behind each; every interval-th from there on; and the one that would follow the last of the
// image.
struct IndexShape {
  static constexpr int kInterval = 8;
  static constexpr int kMostInterval = 255;

  IndexShape() = default;
  IndexShape(const FrameHeader& header, int interval);

  // The MCU that comes behind a place.
  int64_t McuAt(int64_t place) const {
    return std::min(place / per_stride * stride + place % per_stride * interval, mcus);
  }
  // The last place before an MCU.
  int64_t PlaceBefore(int64_t mcu) const {
    return mcu / stride * per_stride + mcu % stride / interval;
  }
  // The first place behind `place` with a row's or a segment's first MCU.
  int64_t SegmentEnd(int64_t place) const {
    return std::min((place / per_stride + 1) * per_stride, places() - 1);
  }
  int64_t places() const { return PlaceBefore(mcus - 1) + 2; }

  int64_t mcus = 0;    // of the image
  int64_t stride = 1;  // MCUs of a row, or between restart markers
  int64_t per_stride = 1;
  int64_t interval = 1;
};

// `places` packed, as the index of `file`. Empty where a number does not fit (no file of less than
// 4 GB that decodes has such) or the file is larger.
std::vector<uint8_t> PackCropIndex(std::span<const uint8_t> file, const FrameHeader& header,
                                   const IndexShape& shape, std::span<const ScanPlace> places);

// An index as it is read. Owns nothing: the packed bytes have to stay.
class CropIndex {
 public:
  enum class Match {
    kUsable,
    kStale,    // it is that of another file, or of this one before it was changed
    kDamaged,  // its bytes are not those that were written
  };

  // `packed` may be anything. `header` is what ParseHeader said of `file`. Only a part of the file
  // is compared: its size, its tables, and pieces of its data.
  Match Open(std::span<const uint8_t> packed, std::span<const uint8_t> file,
             const FrameHeader& header);

  const IndexShape& shape() const { return shape_; }

  // Precondition: it is usable, and 0 ≤ number < shape().places(). What it says may be wrong.
  ScanPlace At(int64_t number) const;

 private:
  struct Field {        // an array of numbers, one for each place, of equally many bits
    int64_t begin = 0;  // bits from the first byte
    int bits = 0;
  };
  int64_t Read(const Field& field, int64_t number) const;

  std::span<const uint8_t> packed_;
  IndexShape shape_;
  Field bit_;
  std::array<Field, 3> dc_;
  std::array<int32_t, 3> least_dc_{};
};

}  // namespace stoker::jpeg
