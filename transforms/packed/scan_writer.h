// ScanWriter: codes coefficients as the entropy-coded data of a baseline JPEG, as libjpeg and most
// encoders do: every run of zeros in the fewest codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/packed/format.h"

namespace stoker::packed {

// Writes bits, from the highest of each byte on; up to 8 bytes behind them may be written.
class BitSink {
 public:
  // Of at most 56.
  void Put(uint64_t bits, unsigned count) {
    count_ += count;
    bits_ |= bits << (63 - count_) << 1;
    const uint64_t swapped = __builtin_bswap64(bits_);
    std::memcpy(next_, &swapped, sizeof(swapped));
    next_ += count_ / 8;
    bits_ <<= count_ / 8 * 8;
    count_ %= 8;
  }
  // Fills the last byte with zeros or ones.
  void Fill(bool with_zeros) {
    const unsigned missing = (8 - count_) % 8;
    Put(with_zeros ? 0 : (1u << missing) - 1, missing);
  }

  // The end of the whole bytes.
  uint8_t* next() const { return next_; }
  void MoveTo(uint8_t* next) { next_ = next; }

 private:
  uint8_t* next_ = nullptr;
  uint64_t bits_ = 0;  // the highest count_ are still to be written
  unsigned count_ = 0;
};

// Reused from file to file. Not thread-safe.
class ScanWriter {
 public:
  // Begins a scan with the Huffman tables and the restart interval of `header`, which must stay
  // valid. Its bytes are appended to `out`.
  void Start(const jpeg::FrameHeader& header, bool pads_with_zeros, std::vector<uint8_t>& out);

  // Writes a row of MCUs. `words`: of each row of blocks, its groups as UnpackRun writes them.
  // A symbol without a code is left out.
  void WriteRow(const BlockRows& rows, std::span<const int16_t* const> words);

  // Fills the last byte.
  void Finish();

 private:
  // Of a symbol: its code with zeros for the number behind it, and below them, in 8 bits, how many
  // bits both have.
  using Codes = std::array<uint64_t, 256>;
  // `size_mask`: the bits of a symbol that are the size of its number.
  static Codes CodesOf(jpeg::HuffmanSpec spec, unsigned size_mask);

  void WriteMcus(const BlockRows& rows, std::span<const int16_t* const> words, int from, int to);
  void WriteBlock(size_t component, const int16_t* words, BitSink& bits);
  void EndSegment();
  void Flush();

  const jpeg::FrameHeader* header_ = nullptr;
  bool pads_with_zeros_ = false;
  std::array<Codes, 3> dc_, ac_;  // by component
  std::array<int, 3> predictor_{};
  int64_t mcu_ = 0;  // the next one

  std::vector<uint8_t> clean_;  // bytes behind which zeros are still to be stuffed
  BitSink bits_;                // to clean_
  std::vector<uint8_t>* out_ = nullptr;
};

}  // namespace stoker::packed
