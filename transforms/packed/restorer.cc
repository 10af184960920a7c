#include "transforms/packed/restorer.h"

#include <algorithm>

#include "core/result/try.h"
#include "transforms/packed/unpack.h"

namespace stoker::packed {

Status JpegRestorer::Restore(const PackedFile& file, std::vector<uint8_t>& out) {
  const BlockRows rows(file.frame());
  TRY(Reserve(rows));
  out.assign(file.header().begin(), file.header().end());
  writer_.Start(file.frame(), file.pads_with_zeros(), out);
  for (int row = 0; row < file.mcu_rows(); ++row) TRY(RestoreRow(file, row, rows));
  writer_.Finish();
  out.insert(out.end(), file.tail().begin(), file.tail().end());
  if (out.size() != file.jpeg_bytes()) return Damaged("another size when it is restored", 0);
  return {};
}

Status JpegRestorer::RestoreRow(const PackedFile& file, int mcu_row, const BlockRows& rows) {
  TRY(reader_.Start(file, mcu_row, rows.runs));
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    const int groups = rows.row[r].groups();
    for (int g = 0; g < groups; g += kRunGroups) {
      const uint8_t* const run = reader_.Next();
      if (run == nullptr) return reader_.WrongSizes();
      UnpackRun(run, 0, std::min(kRunGroups, groups - g), words_[r] + ptrdiff_t{g} * kGroupWords);
    }
  }
  const std::array<const int16_t*, 4> words = {words_[0], words_[1], words_[2], words_[3]};
  writer_.WriteRow(rows, words);
  return {};
}

Status JpegRestorer::Reserve(const BlockRows& rows) {
  size_t groups = 0;
  for (const BlockRow& row : rows.all()) groups += static_cast<size_t>(row.groups());
  TRY(memory_.Grow(groups * kGroupWords * sizeof(int16_t)));
  auto* next = reinterpret_cast<int16_t*>(memory_.data());
  for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
    words_[r] = next;
    next += ptrdiff_t{rows.row[r].groups()} * kGroupWords;
  }
  return {};
}

}  // namespace stoker::packed
