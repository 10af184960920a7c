#include "transforms/packed/scan/scan_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stoker::packed {
namespace {

constexpr unsigned kDcSizes = 255, kAcSizes = 15;  // the bits of symbols that are sizes
constexpr unsigned kMaxSize = 11;                  // of a number in an 8-bit JPEG

// `size_mask`: the bits of a symbol that are the size of its number. Symbols with larger sizes,
// which only a forged table has, get no code.
void SetCodes(jpeg::HuffmanSpec spec, unsigned size_mask, std::array<uint64_t, 256>& codes) {
  codes = {};
  const uint8_t* symbol = spec + 16;
  uint64_t code = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    for (int i = 0; i < spec[length - 1]; ++i, ++code, ++symbol) {
      const unsigned size = *symbol & size_mask;
      if (size > kMaxSize) continue;
      const uint64_t bits = code & ((1u << length) - 1);  // a forged table has too many codes
      codes[*symbol] = bits << (8 + size) | (length + size);
    }
  }
}

}  // namespace

void ScanWriter::Start(const jpeg::FrameHeader& header, bool pads_with_zeros,
                       std::vector<uint8_t>& out) {
  header_ = &header;
  pads_with_zeros_ = pads_with_zeros;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    SetCodes(header.dc[static_cast<size_t>(header.component[i].dc)], kDcSizes, codes_[i].dc);
    SetCodes(header.ac[static_cast<size_t>(header.component[i].ac)], kAcSizes, codes_[i].ac);
  }
  predictor_ = {};
  mcu_ = 0;
  out_ = &out;
  clean_.resize(std::max(clean_.size(), kMcuRoom));
  bits_ = {};
  bits_.MoveTo(clean_.data());
}

void ScanWriter::Reserve(const BlockRows& rows) {
  const size_t most = static_cast<size_t>(rows.mcus + 1) * kMcuRoom;
  if (clean_.size() < most) {
    clean_.resize(most);
    bits_.MoveTo(clean_.data());
  }
  size_t groups = 0;
  for (const BlockRow& row : rows.all()) groups += static_cast<size_t>(row.groups());
  non_zero_.resize(std::max(non_zero_.size(), groups * kGroupBlocks));
}

void ScanWriter::WriteRow(const BlockRows& rows, std::span<const int16_t* const> words) {
  Reserve(rows);
  McuWords mcus;
  uint64_t* non_zero = non_zero_.data();
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    const int groups = rows.row[r].groups();
    FindNonZero(words[r], groups, non_zero);
    mcus.words[r] = words[r];
    mcus.non_zero[r] = std::exchange(non_zero, non_zero + ptrdiff_t{groups} * kGroupBlocks);
  }
  const int64_t interval = header_->restart_interval;
  for (int mcu = 0; mcu < rows.mcus;) {
    int64_t count = rows.mcus - mcu;
    if (interval != 0) {
      if (mcu_ != 0 && mcu_ % interval == 0) EndSegment();
      count = std::min(count, interval - mcu_ % interval);
    }
    const int end = mcu + static_cast<int>(count);
    CodeMcus(rows, mcus, mcu, end, codes_, predictor_, bits_);
    mcu = end;
    mcu_ += count;
  }
  Flush();
}

// Writes the restart marker before the next MCU.
void ScanWriter::EndSegment() {
  bits_.Fill(pads_with_zeros_);
  Flush();
  const int64_t number = mcu_ / header_->restart_interval - 1;
  out_->push_back(0xFF);
  out_->push_back(static_cast<uint8_t>(0xD0 + number % 8));
  predictor_ = {};
}

// Moves the whole bytes to the scan, and stuffs a zero after each that is 0xFF.
void ScanWriter::Flush() {
  const uint8_t* const end = bits_.next();
  for (const uint8_t* from = clean_.data(); from != end;) {
    const auto left = static_cast<size_t>(end - from);
    const auto* const stuffed = static_cast<const uint8_t*>(std::memchr(from, 0xFF, left));
    const uint8_t* const to = stuffed == nullptr ? end : stuffed + 1;
    out_->insert(out_->end(), from, to);
    if (stuffed != nullptr) out_->push_back(0);
    from = to;
  }
  bits_.MoveTo(clean_.data());
}

void ScanWriter::Finish() {
  bits_.Fill(pads_with_zeros_);
  Flush();
}

}  // namespace stoker::packed
