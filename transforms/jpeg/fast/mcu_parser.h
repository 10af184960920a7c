// The MCUs of a scan, one behind the other: decoded, or skipped. Knows of restart markers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "transforms/jpeg/fast/crop_index.h"
#include "transforms/jpeg/fast/entropy.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/huffman.h"
#include "transforms/jpeg/fast/scan_data.h"

namespace stoker::jpeg {

// Reused from image to image. One thread at a time. All calls but Open may return kBits or
// kRestart: what is there is then no scan, or not that which was promised.
class McuParser {
 public:
  // Builds the tables, and lists the blocks of an MCU: those of a component together, row by row.
  // `bytes`: the whole file, with kBufferPadding readable bytes behind; ParseHeader has accepted it
  // as `header`. Both have to stay.
  Fallback Open(std::span<const uint8_t> bytes, const FrameHeader& header);

  // The blocks of an MCU. Where they are decoded to is for the caller to say.
  std::span<McuBlock> blocks() { return std::span(entropy_.block).first(BlockCount()); }

  // To the first MCU.
  Fallback Start();

  // To MCU `number` of the image; the place before it is said to be `from`. Nothing behind `until`,
  // which is a later place with no restart marker in between, is looked at.
  Fallback Seek(int64_t number, const ScanPlace& from, const ScanPlace& until);

  Fallback Skip(int64_t count);
  // `column`: of the first MCU, in its row of groups.
  Fallback Decode(int column, int count);

  // After Seek: whether the parser has come to `until` just so.
  Fallback CheckArrival(const ScanPlace& until);

  // After Start: where the parser is. Not in O(1): what lies between the place asked for before and
  // this one is gone through.
  ScanPlace Locate();
  // Whether nothing but the end-of-image marker follows, and less than a byte before it.
  bool AtEndOfImage();

 private:
  size_t BlockCount() const { return static_cast<size_t>(entropy_.blocks); }
  Fallback Parse(int64_t count, bool store, int column);
  Fallback ParseSegment(int count, bool store, int column);
  Fallback PassMarker();
  bool EndsSegment() const;  // nothing but bits that fill a byte is left of it
  // Behind the last MCU there is no marker.
  int64_t SegmentOf(int64_t mcu) const {
    return restart_interval_ == 0 ? 0 : std::min(mcu, mcus_ - 1) / restart_interval_;
  }

  std::span<const uint8_t> scan_;  // from the first byte of data to the end of the file
  int restart_interval_ = 0;       // MCUs; 0: none
  int64_t mcus_ = 0;               // of the image
  int64_t next_ = 0;               // the MCU that comes next
  int64_t segment_ = 0;            // of next_; segments are those between restart markers

  // The byte of the scan that Locate has come to; its segment, and its place in that, stuffed zeros
  // not counted.
  size_t located_ = 0;
  int64_t located_segment_ = 0, located_clean_ = 0;

  std::array<DcTable, 4> dc_;
  std::array<AcTable, 4> ac_;
  std::array<SkipTable, 4> skip_;
  ScanData data_;
  EntropyState entropy_;
};

}  // namespace stoker::jpeg
