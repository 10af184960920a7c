#include "transforms/jpeg/fast/coefficient_rows.h"

#include <algorithm>

#include "core/divide_up.h"

namespace stoker::jpeg {

void CoefficientRows::Start(const FrameHeader& header, McuParser& parser) {
  const int mcus = DivideUp(header.size.width, 8 * header.mcu_columns());
  block_rows_.clear();
  size_t groups = 0, most = 0;
  for (size_t c = 0; c < static_cast<size_t>(header.components); ++c) {
    const Component& component = header.component[c];
    SetQuantiser(header.quantisation[static_cast<size_t>(component.quantisation)], quantiser_[c]);
    const bool gray = header.components == 1;
    const int of_row = DivideUp(mcus * (gray ? 1 : component.columns), kGroupBlocks);
    for (int row = 0; row < (gray ? 1 : component.rows); ++row) {
      block_rows_.push_back({c, of_row, groups});
      groups += static_cast<size_t>(of_row);
    }
    most = std::max(most, static_cast<size_t>(of_row));
  }
  groups_.assign(groups, {});
  last_.assign(groups * kGroupBlocks, 0);
  samples_.resize(8 * kGroupRow * most);
  auto block = parser.blocks().begin();  // row of blocks by row of blocks
  for (const BlockRow& row : block_rows_) {
    for (int columns = block->columns; columns > 0; --columns, ++block) {
      block->groups = groups_[row.first_group].coefficients.data();
      block->last = &last_[row.first_group * kGroupBlocks];
    }
  }
}

bool CoefficientRows::Transform() {
  bool in_range = true;
  for (const BlockRow& row : block_rows_) {
    in_range &= InverseDct(
        quantiser_[row.component], row.groups, groups_[row.first_group].coefficients.data(),
        &last_[row.first_group * kGroupBlocks], samples_.data(), ptrdiff_t{kGroupRow} * row.groups);
  }
  return in_range;
}

}  // namespace stoker::jpeg
