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
