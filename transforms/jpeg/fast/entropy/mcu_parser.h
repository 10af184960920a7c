// McuParser: decodes or skips the MCUs of a scan in order, and handles restart markers.
//
// It returns what to parse next and the caller parses it (with Parse, or with ParseBoth together
// with another photograph):
//
//   parser.Skip(7);
//   while (McuRun* run = parser.Next()) Parse(*run);
//   if (parser.why() != Fallback::kNone) …
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/huffman.h"
#include "transforms/jpeg/fast/entropy/scan_data.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_index.h"

namespace stoker::jpeg {

// Returns the end, in `scan` (the data after the header), of the bytes with bits before
// `entry_point`, including a zero stuffed after them. It may lie beyond the end of `scan`.
size_t EndOf(const EntryPoint& entry_point, std::span<const uint8_t> scan);

// Reused from image to image. Not thread-safe. kBits and kRestart mean that the data are not a
// valid scan, or not the promised one.
class McuParser {
 public:
  // Builds the tables, and lists the blocks of an MCU, grouped by component, row by row. `bytes`:
  // the whole file, followed by kBufferPadding readable bytes, which ParseHeader has accepted as
  // `header`. Both must stay valid.
  Fallback Open(std::span<const uint8_t> bytes, const FrameHeader& header);

  // The blocks of an MCU. The caller sets their destinations.
  std::span<McuBlock> blocks() { return std::span(entropy_.block).first(BlockCount()); }

  // Goes to the first MCU.
  Fallback Start();

  // Goes to MCU `number` of the image, whose entry point is claimed to be `from`. Reads no data
  // after `until`, a later entry point with no restart marker in between.
  Fallback Seek(int64_t number, const EntryPoint& from, const EntryPoint& until);

  // Prefetches the data that Seek will need.
  void Prefetch(const EntryPoint& from, const EntryPoint& until) const;

  // Queues MCUs for Next, after those requested before. `column`: the first MCU's, in its row of
  // groups.
  void Skip(int64_t count) { Want(count, false, 0); }
  void Decode(int column, int count) { Want(count, true, column); }

  // Returns the next MCUs to parse, up to a restart marker; to be called again when that run is at
  // a stop. Returns null when all are parsed, and on errors.
  McuRun* Next();
  Fallback why() const { return why_; }

  // After Seek: checks that the parser has arrived exactly at `until`.
  Fallback CheckArrival(const EntryPoint& until);

  // After Start: the position of the parser. Not O(1): it goes through the data since the previous
  // call.
  EntryPoint Locate();
  // Whether a marker or nothing follows, after less than a byte.
  bool EndsSegment() const { return data_.EndsSegment(entropy_); }
  // Whether the end-of-image marker follows, after less than a byte.
  bool AtEndOfImage();
  // Whether only zeros follow, at least two, which are not part of the data: then only the marker
  // was lost, no MCU. (A file that was cut off and filled with zeros also parses, because zeros are
  // codes, but then MCUs are decoded from them.)
  bool EndsInPadding();

 private:
  size_t BlockCount() const { return static_cast<size_t>(entropy_.blocks); }
  void Want(int64_t count, bool store, int column);
  Fallback EndStop();
  Fallback PassMarker();
  // There is no marker after the last MCU.
  int64_t SegmentOf(int64_t mcu) const {
    return restart_interval_ == 0 ? 0 : std::min(mcu, mcus_ - 1) / restart_interval_;
  }

  std::span<const uint8_t> scan_;  // from the first byte of data to the end of the file
  int restart_interval_ = 0;       // MCUs; 0 means none
  int64_t mcus_ = 0;               // of the image
  int64_t next_ = 0;               // the next MCU
  int64_t segment_ = 0;            // segment of next_; restart markers separate segments

  // The byte of the scan that Locate has reached, its segment, and its position in the segment
  // without stuffed zeros.
  size_t located_ = 0;
  int64_t located_segment_ = 0, located_clean_ = 0;

  int64_t wanted_ = 0;  // MCUs requested but not yet part of a run
  bool store_ = false;  // decode them, …
  int column_ = 0;      // … the first one to this column
  McuRun run_;
  int64_t in_run_ = 0;  // MCUs at the start of the run; 0 means there is no run
  Fallback why_ = Fallback::kNone;

  std::array<DcTable, 4> dc_;
  std::array<AcTable, 4> ac_;
  std::array<SkipTable, 4> skip_;
  ScanData data_;
  EntropyState entropy_;
};

}  // namespace stoker::jpeg
