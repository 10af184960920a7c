#include "transforms/decode/orientation.h"

namespace stoker {

Turn TurnOf(Orientation orientation) {
  switch (orientation) {
    case Orientation::kNormal:
      return {false, false, false};
    case Orientation::kMirrorColumns:
      return {false, true, false};
    case Orientation::kRotate180:
      return {false, true, true};
    case Orientation::kMirrorRows:
      return {false, false, true};
    case Orientation::kTranspose:
      return {true, false, false};
    case Orientation::kRotate90:
      return {true, true, false};
    case Orientation::kTransverse:
      return {true, true, true};
    case Orientation::kRotate270:
      return {true, false, true};
  }
  return {};
}

Orientation Mirrored(Orientation orientation, bool columns, bool rows) {
  const Turn from = TurnOf(orientation);
  for (int tag = 1; tag < 8; ++tag) {
    const Turn turn = TurnOf(static_cast<Orientation>(tag));
    if (turn.transpose == from.transpose &&
        turn.mirror_columns == (from.mirror_columns != columns) &&
        turn.mirror_rows == (from.mirror_rows != rows)) {
      return static_cast<Orientation>(tag);
    }
  }
  return Orientation::kRotate270;  // the last one
}

ImageSize Viewed(ImageSize stored, Orientation orientation) {
  if (TurnOf(orientation).transpose) return {stored.height, stored.width};
  return stored;
}

Rect Stored(const Rect& viewed, ImageSize stored, Orientation orientation) {
  const Turn turn = TurnOf(orientation);
  const ImageSize size = Viewed(stored, orientation);
  Rect rect = viewed;  // undone in reverse order: rows, columns, transposition
  if (turn.mirror_rows) rect.y = size.height - rect.y - rect.height;
  if (turn.mirror_columns) rect.x = size.width - rect.x - rect.width;
  if (turn.transpose) rect = {rect.y, rect.x, rect.height, rect.width};
  return rect;
}

}  // namespace stoker
