#include "transforms/packed/restorer.h"

#include <algorithm>
#include <span>

#include "core/result/try.h"
#include "transforms/jpeg/fast/progressive/scan_script.h"
#include "transforms/packed/unpack.h"

namespace stoker::packed {
namespace {

Error OtherSize() { return Damaged("another size when it is restored", 0); }

}  // namespace

Status JpegRestorer::Restore(const PackedFile& file, std::vector<uint8_t>& out) {
  const BlockRows rows(file.frame());
  TRY(StartScans(file, out));
  TRY(Reserve(rows));
  for (int row = 0; row < file.mcu_rows(); ++row) TRY(RestoreRow(file, row, rows));
  const std::span<const uint8_t> header = file.header();
  for (size_t i = 0; i < count_; ++i) {
    Scan& scan = scans_[i];
    scan.writer.Finish();
    if (i == 0) continue;
    const std::span<const uint8_t> markers =
        header.first(scan.header_end).subspan(scans_[i - 1].header_end);
    out.insert(out.end(), markers.begin(), markers.end());
    out.insert(out.end(), scan.bytes.begin(), scan.bytes.end());
  }
  out.insert(out.end(), file.tail().begin(), file.tail().end());
  if (out.size() != file.jpeg_bytes()) return OtherSize();
  return {};
}

JpegRestorer::Scan& JpegRestorer::AddScan(size_t header_end, std::vector<uint8_t>& out) {
  if (count_ == scans_.size()) scans_.emplace_back();
  Scan& scan = scans_[count_++];
  scan.bytes.clear();
  scan.out = count_ == 1 ? &out : &scan.bytes;
  scan.header_end = header_end;
  return scan;
}

// Writes the header of the first scan, and starts all.
Status JpegRestorer::StartScans(const PackedFile& file, std::vector<uint8_t>& out) {
  const jpeg::FrameHeader& frame = file.frame();
  const ScanWriter::Target target{frame, file.choices(), room_};
  count_ = 0;
  levels_ = 0;
  if (frame.process == jpeg::Process::kSequential) {
    AddScan(file.header().size(), out).writer.Start(target, out);
  } else {
    jpeg::ScanScript script(file.markers(), frame, kMaxScans);
    size_t at = frame.scan_marker;
    bool sound = script.Next(at) == Fallback::kNone;
    for (; sound && script.scan() != nullptr; sound = script.Next(at) == Fallback::kNone) {
      at = script.data();
      Scan& scan = AddScan(at, out);
      scan.writer.Start(target, *script.scan(), *scan.out);
      levels_ = std::max(levels_, script.scan()->low + 1);
    }
    if (!sound || count_ == 0 || at != file.header().size()) {
      const auto markers = static_cast<size_t>(file.markers().data() - file.bytes().data());
      return Damaged("its scans", markers + at);
    }
  }
  const std::span<const uint8_t> first = file.header().first(scans_[0].header_end);
  out.assign(first.begin(), first.end());
  bytes_ = file.markers().size();
  return {};
}

Status JpegRestorer::RestoreRow(const PackedFile& file, int mcu_row, const BlockRows& rows) {
  TRY(reader_.Start(file, mcu_row, rows.runs));
  McuWords mcus{.levels = levels_};
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    const int groups = rows.row[r].groups();
    for (int g = 0; g < groups; g += kRunGroups) {
      const uint8_t* const run = reader_.Next();
      if (run == nullptr) return reader_.WrongSizes();
      UnpackRun(run, 0, std::min(kRunGroups, groups - g), words_[r] + ptrdiff_t{g} * kGroupWords);
    }
    if (levels_ == 0) {
      FindNonZero(words_[r], groups, masks_[r]);
    } else {
      FindBits(words_[r], groups, levels_, masks_[r]);
    }
    mcus.words[r] = words_[r];
    mcus.masks[r] = masks_[r];
  }
  for (size_t i = 0; i < count_; ++i) {
    Scan& scan = scans_[i];
    const size_t before = scan.out->size();
    scan.writer.WriteRow(rows, mcus);
    bytes_ += scan.out->size() - before;
    // A forged file of few bytes may have scans of many.
    if (bytes_ > file.jpeg_bytes()) return OtherSize();
  }
  return {};
}

Status JpegRestorer::Reserve(const BlockRows& rows) {
  const auto group_masks = static_cast<size_t>(kGroupBlocks * MasksOf(levels_));
  size_t groups = 0;
  for (const BlockRow& row : rows.all()) groups += static_cast<size_t>(row.groups());
  TRY(memory_.Grow(groups * (kGroupWords * sizeof(int16_t) + group_masks * sizeof(uint64_t))));
  auto* next = reinterpret_cast<int16_t*>(memory_.data());
  auto* next_masks = reinterpret_cast<uint64_t*>(next + groups * kGroupWords);
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    words_[r] = next;
    next += ptrdiff_t{rows.row[r].groups()} * kGroupWords;
    masks_[r] = next_masks;
    next_masks += static_cast<size_t>(rows.row[r].groups()) * group_masks;
  }
  return {};
}

}  // namespace stoker::packed
