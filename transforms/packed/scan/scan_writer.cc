#include "transforms/packed/scan/scan_writer.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/numbers/divide_up.h"

namespace stoker::packed {
namespace {

constexpr unsigned kDcSizes = 255, kAcSizes = 15;  // the bits of symbols that are sizes
constexpr unsigned kMaxSize = 11;                  // of a number in an 8-bit JPEG

static_assert(kMostLevels > jpeg::kMaxLow);

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

void ScanWriter::Begin(const Target& target, std::vector<uint8_t>& out) {
  header_ = &target.header;
  choices_ = target.choices;
  scan_.reset();
  pass_ = {};
  mcu_ = 0;
  block_row_ = 0;
  room_ = &target.room;
  room_->resize(std::max(room_->size(), 2 * kMcuRoom));
  bits_ = {};
  out_ = &out;
}

void ScanWriter::Start(const Target& target, std::vector<uint8_t>& out) {
  Begin(target, out);
  restart_interval_ = header_->restart_interval;
  for (size_t i = 0; i < static_cast<size_t>(header_->components); ++i) {
    SetCodes(header_->dc[static_cast<size_t>(header_->component[i].dc)], kDcSizes, codes_[i].dc);
    SetCodes(header_->ac[static_cast<size_t>(header_->component[i].ac)], kAcSizes, codes_[i].ac);
  }
}

void ScanWriter::Start(const Target& target, const jpeg::Scan& scan, std::vector<uint8_t>& out) {
  Begin(target, out);
  restart_interval_ = scan.restart_interval;
  scan_ = scan;
  pass_.first = scan.first;
  pass_.last = scan.last;
  pass_.low = scan.low;
  pass_.refines = scan.refines;
  pass_.jpegli_runs = (choices_ & kJpegliRuns) != 0;
  for (size_t i = 0; i < static_cast<size_t>(scan.components); ++i) {
    ScanCodes& codes = codes_[static_cast<size_t>(scan.component[i])];
    if (scan.dc[i] != nullptr) SetCodes(scan.dc[i], kDcSizes, codes.dc);
    if (scan.ac != nullptr) SetCodes(scan.ac, kAcSizes, codes.ac);
  }
}

void ScanWriter::WriteRow(const BlockRows& rows, const McuWords& mcus) {
  if (!scan_) return WriteMcus(rows, mcus);
  BlockRows part = rows;
  McuWords part_mcus{.levels = mcus.levels};
  part.count = 0;
  const auto components = std::span(scan_->component).first(static_cast<size_t>(scan_->components));
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    if (std::ranges::find(components, rows.row[r].component) == components.end()) continue;
    const auto to = static_cast<size_t>(part.count++);
    part.row[to] = rows.row[r];
    part_mcus.words[to] = mcus.words[r];
    part_mcus.masks[to] = mcus.masks[r];
  }
  if (components.size() > 1) return WriteMcus(part, part_mcus);
  WriteBlocks(part, part_mcus);
}

// Writes the rows of blocks of one component, without the blocks that only complete an MCU.
void ScanWriter::WriteBlocks(const BlockRows& rows, const McuWords& mcus) {
  BlockRows one = rows;
  one.count = 1;
  one.mcus = DivideUp(header_->size.width * rows.row[0].columns, 8 * header_->mcu_columns());
  const int down = DivideUp(header_->size.height * rows.count, 8 * header_->mcu_rows());
  for (size_t r = 0; r < static_cast<size_t>(rows.count) && block_row_ < down; ++r, ++block_row_) {
    one.row[0] = rows.row[r];
    one.row[0].columns = 1;
    McuWords words{.levels = mcus.levels};
    words.words[0] = mcus.words[r];
    words.masks[0] = mcus.masks[r];
    WriteMcus(one, words);
  }
}

void ScanWriter::WriteMcus(const BlockRows& rows, const McuWords& mcus) {
  room_->resize(std::max(room_->size(), static_cast<size_t>(rows.mcus + 1) * kMcuRoom));
  bits_.MoveTo(room_->data());
  for (int mcu = 0; mcu < rows.mcus;) {
    int64_t count = rows.mcus - mcu;
    if (restart_interval_ != 0) {
      if (mcu_ != 0 && mcu_ % restart_interval_ == 0) Restart();
      count = std::min(count, restart_interval_ - mcu_ % restart_interval_);
    }
    const int end = mcu + static_cast<int>(count);
    if (scan_) {
      CodePass(rows, mcus, mcu, end, codes_, pass_, bits_);
    } else {
      CodeMcus(rows, mcus, mcu, end, codes_, pass_.predictor, bits_);
    }
    mcu = end;
    mcu_ += count;
  }
  Flush();
}

// Writes the restart marker before the next MCU.
void ScanWriter::Restart() {
  EndSegment();
  const int64_t number = mcu_ / restart_interval_ - 1;
  out_->push_back(0xFF);
  out_->push_back(static_cast<uint8_t>(0xD0 + number % 8));
  pass_.predictor = {};
}

// Moves the whole bytes to the scan, and stuffs a zero after each that is 0xFF.
void ScanWriter::Flush() {
  const uint8_t* const end = bits_.next();
  for (const uint8_t* from = room_->data(); from != end;) {
    const auto left = static_cast<size_t>(end - from);
    const auto* const stuffed = static_cast<const uint8_t*>(std::memchr(from, 0xFF, left));
    const uint8_t* const to = stuffed == nullptr ? end : stuffed + 1;
    out_->insert(out_->end(), from, to);
    if (stuffed != nullptr) out_->push_back(0);
    from = to;
  }
  bits_.MoveTo(room_->data());
}

void ScanWriter::EndSegment() {
  if (scan_) EndRun(codes_[static_cast<size_t>(scan_->component[0])], pass_, bits_);
  bits_.Fill((choices_ & kPadsWithZeros) != 0);
  Flush();
}

void ScanWriter::Finish() {
  bits_.MoveTo(room_->data());
  EndSegment();
}

}  // namespace stoker::packed
