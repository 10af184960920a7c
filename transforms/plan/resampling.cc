#include "transforms/plan/resampling.h"

#include <utility>

namespace stoker {

Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation) {
  Resampling task;
  task.image = stored;
  task.box = Stored(geometry.box, stored, orientation);
  task.resized = Viewed(geometry.resized, orientation);  // Viewed inverts itself for sizes
  task.window = Stored(geometry.window, task.resized, orientation);
  task.antialias = geometry.antialias;
  task.interpolation = geometry.interpolation;
  task.turn = TurnOf(orientation);
  task.reversed_columns = task.turn.mirror_columns != geometry.mirrored_columns;
  task.reversed_rows = task.turn.mirror_rows != geometry.mirrored_rows;
  if (task.turn.transpose) std::swap(task.reversed_columns, task.reversed_rows);
  task.turn.mirror_columns ^= geometry.mirror_columns;
  task.turn.mirror_rows ^= geometry.mirror_rows;
  return task;
}

}  // namespace stoker
