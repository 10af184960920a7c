// ScanScript: the scans of a progressive JPEG (ITU-T T.81, annex G), one after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transforms/decode/decoding.h"
#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

inline constexpr int kMaxLow = 13;  // libjpeg-turbo's limit on Scan::low

// A scan codes some bits of the coefficients `first` to `last` (zig-zag indices) of its components:
// those from bit `low` up or, if it refines earlier scans, bit `low` alone.
struct Scan {
  int components = 0;               // one, unless `first` is 0
  std::array<int, 3> component{};   // indices in the frame, ascending
  std::array<HuffmanSpec, 3> dc{};  // of each component, if it codes DC coefficients for the first
                                    // time; null otherwise
  HuffmanSpec ac = nullptr;         // if it codes AC coefficients
  int first = 0;
  int last = 0;
  bool refines = false;
  int low = 0;
  int restart_interval = 0;  // MCUs; 0 means none
};

// Accepts the scripts that libjpeg-turbo decodes without a warning, and only those in which every
// coefficient that it would estimate if bits were missing is complete in the end.
class ScanScript {
 public:
  // `bytes`: the whole file, which ParseHeader has accepted as the progressive `header`. Both must
  // stay valid. A script of more than `max_scans` is not accepted.
  ScanScript(std::span<const uint8_t> bytes, const FrameHeader& header, int max_scans);

  // Reads the markers at `offset` up to the next scan's data or the end of the image. Begin with
  // header.scan_marker, and continue at the marker that ends the scan's data.
  Fallback Next(size_t offset);

  // The scan that Next has read, and the offset of its data; null after the end of the image.
  const Scan* scan() const { return ended_ ? nullptr : &scan_; }
  size_t data() const { return data_; }

 private:
  using Segment = std::span<const uint8_t>;

  Fallback Read(uint8_t marker, Segment segment);
  Fallback ReadScan(Segment segment);
  Fallback ReadComponents(Segment segment);
  Fallback TakeBits(int high);
  Fallback End();

  const std::span<const uint8_t> bytes_;
  const FrameHeader& header_;
  int scans_left_;
  bool ended_ = false;
  Scan scan_;
  size_t data_ = 0;
  std::array<HuffmanSpec, 4> dc_, ac_;
  int restart_interval_;
  // The lowest bit of each coefficient that a scan has coded so far; -1 before the first.
  std::array<std::array<int8_t, 64>, 3> low_;
};

}  // namespace stoker::jpeg
