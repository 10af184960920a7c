#include "transforms/packed/format.h"

#include "core/numbers/divide_up.h"

namespace stoker::packed {

BlockRows::BlockRows(const jpeg::FrameHeader& header)
    : mcus(DivideUp(header.size.width, 8 * header.mcu_columns())) {
  for (int i = 0; i < header.components; ++i) {
    const jpeg::Component& c = header.component[static_cast<size_t>(i)];
    const int columns = header.components == 1 ? 1 : c.columns;
    const int rows = header.components == 1 ? 1 : c.rows;
    for (int r = 0; r < rows; ++r) {
      const BlockRow& added = row[static_cast<size_t>(count++)] = {i, r, columns, mcus * columns};
      runs += added.runs();
    }
  }
}

int McuRowsOf(const jpeg::FrameHeader& header) {
  return DivideUp(header.size.height, 8 * header.mcu_rows());
}

}  // namespace stoker::packed
