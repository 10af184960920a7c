#include "transforms/plan/resampling.h"

namespace stoker {

Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation) {
  Resampling task;
  task.image = stored;
  task.box = Stored(geometry.box, stored, orientation);
  task.resized = Viewed(geometry.resized, orientation);  // Viewed inverts itself for sizes
  task.window = Stored(geometry.window, task.resized, orientation);
  task.antialias = geometry.antialias;
  task.turn = TurnOf(orientation);
  task.turn.mirror_columns ^= geometry.mirror_columns;
  task.turn.mirror_rows ^= geometry.mirror_rows;
  return task;
}

}  // namespace stoker
