#include "transforms/jpeg/fast/entropy/coefficient_rows.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "transforms/jpeg/fast/entropy/entropy.h"

namespace stoker::jpeg {

void CoefficientRows::ListBlockRows(const FrameHeader& header) {
  const int mcus = DivideUp(header.size.width, 8 * header.mcu_columns());
  const bool gray = header.components == 1;
  rows_ = 0;
  for (size_t c = 0; c < static_cast<size_t>(header.components); ++c) {
    const Component& component = header.component[c];
    SetQuantiser(header.quantisation[static_cast<size_t>(component.quantisation)], quantiser_[c]);
    const int columns = gray ? 1 : component.columns;
    for (int row = 0; row < (gray ? 1 : component.rows); ++row) {
      block_rows_[rows_++] = {c, columns, DivideUp(mcus * columns, kGroupBlocks)};
    }
  }
}

Status CoefficientRows::Start(const FrameHeader& header, McuParser& parser) {
  ListBlockRows(header);
  const std::span<BlockRow> rows(block_rows_.data(), rows_);
  size_t groups = 0, most = 0;
  for (const BlockRow& row : rows) {
    groups += static_cast<size_t>(row.count);
    most = std::max(most, static_cast<size_t>(row.count));
  }
  const Growth growths[] = {{coefficients_, groups * kGroupStride * sizeof(int16_t)},
                            {last_, groups * kGroupBlocks},
                            {samples_, most * 8 * kGroupRow}};
  TRY(GrowAll(growths));
  std::memset(coefficients_.data(), 0, growths[0].bytes);
  std::memset(last_.data(), 0, growths[1].bytes);
  auto* next = reinterpret_cast<int16_t*>(coefficients_.data());
  uint8_t* next_last = last_.data();
  auto block = parser.blocks().begin();  // row of blocks by row of blocks
  for (BlockRow& row : rows) {
    row.groups = std::exchange(next, next + ptrdiff_t{row.count} * kGroupStride);
    row.last = std::exchange(next_last, next_last + ptrdiff_t{row.count} * kGroupBlocks);
    for (int column = 0; column < row.columns; ++column, ++block) {
      block->groups = row.groups;
      block->last = row.last;
    }
  }
  return {};
}

bool CoefficientRows::Transform() {
  bool in_range = true;
  for (const BlockRow& row : std::span(block_rows_.data(), rows_)) {
    in_range &= InverseDct(quantiser_[row.component], row.count, row.groups, row.last,
                           samples_.data(), ptrdiff_t{kGroupRow} * row.count);
  }
  return in_range;
}

}  // namespace stoker::jpeg
