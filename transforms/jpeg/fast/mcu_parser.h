// The MCUs of a scan, one behind the other: decoded, or skipped. Knows of restart markers.
//
// It says what is to be parsed next, and somebody else does it (Parse, or ParseBoth with that of
// another photograph):
//
//   parser.Skip(7);
//   while (McuRun* run = parser.Next()) Parse(*run);
//   if (parser.why() != Fallback::kNone) …
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

// Reused from image to image. One thread at a time. kBits and kRestart: what is there is no scan,
// or not that which was promised.
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

  // Has what Seek will ask for brought into the cache.
  void Prefetch(const ScanPlace& from, const ScanPlace& until) const;

  // What Next is to go through, once it has gone through what was wanted before. `column`: of the
  // first MCU, in its row of groups.
  void Skip(int64_t count) { Want(count, false, 0); }
  void Decode(int column, int count) { Want(count, true, column); }

  // The next of them to be parsed, up to a restart marker; to be called again when that run is at a
  // stop. Null when all are, and when something is wrong.
  McuRun* Next();
  Fallback why() const { return why_; }

  // After Seek: whether the parser has come to `until` just so.
  Fallback CheckArrival(const ScanPlace& until);

  // After Start: where the parser is. Not in O(1): what lies between the place asked for before and
  // this one is gone through.
  ScanPlace Locate();
  // Whether nothing but the end-of-image marker follows, and less than a byte before it.
  bool AtEndOfImage();
  // Whether nothing but zeros follows, two of them at least, which are none of the data: the marker
  // was lost, and no MCU. (A file whose data were cut off and filled with zeros parses well, too:
  // zeros are codes. But then MCUs are made of them.)
  bool EndsInPadding();

 private:
  size_t BlockCount() const { return static_cast<size_t>(entropy_.blocks); }
  void Want(int64_t count, bool store, int column);
  Fallback EndStop();
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

  int64_t wanted_ = 0;  // MCUs that no run has been started for
  bool store_ = false;  // they are to be decoded, …
  int column_ = 0;      // … the first one to here
  McuRun run_;
  int64_t in_run_ = 0;  // MCUs that it began with; 0: there is none
  Fallback why_ = Fallback::kNone;

  std::array<DcTable, 4> dc_;
  std::array<AcTable, 4> ac_;
  std::array<SkipTable, 4> skip_;
  ScanData data_;
  EntropyState entropy_;
};

}  // namespace stoker::jpeg
