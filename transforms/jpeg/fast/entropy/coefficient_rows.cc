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
  TRY(Start(header));
  const size_t bytes = groups_ * kGroupStride * sizeof(int16_t);
  TRY(coefficients_.Grow(bytes));
  std::memset(coefficients_.data(), 0, bytes);
  Place(reinterpret_cast<int16_t*>(coefficients_.data()));
  auto block = parser.blocks().begin();  // row of blocks by row of blocks
  for (const BlockRow& row : std::span(block_rows_.data(), rows_)) {
    for (int column = 0; column < row.columns; ++column, ++block) {
      block->groups = row.groups;
      block->last = row.last;
    }
  }
  return {};
}

Status CoefficientRows::Start(const FrameHeader& header) {
  ListBlockRows(header);
  size_t most = 0;
  groups_ = 0;
  for (const BlockRow& row : std::span(block_rows_.data(), rows_)) {
    groups_ += static_cast<size_t>(row.count);
    most = std::max(most, static_cast<size_t>(row.count));
  }
  const Growth growths[] = {{last_, groups_ * kGroupBlocks}, {samples_, most * 8 * kGroupRow}};
  TRY(GrowAll(growths));
  std::memset(last_.data(), 0, growths[0].bytes);
  return {};
}

void CoefficientRows::Place(int16_t* groups) {
  uint8_t* last = last_.data();
  for (BlockRow& row : std::span(block_rows_.data(), rows_)) {
    row.groups = std::exchange(groups, groups + ptrdiff_t{row.count} * kGroupStride);
    row.last = std::exchange(last, last + ptrdiff_t{row.count} * kGroupBlocks);
  }
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
