#include "transforms/plan/resampling.h"

#include <utility>

namespace stoker {

Resampling ResamplingOf(const Geometry& geometry, ImageSize stored, Orientation orientation,
                        Reduction reduction) {
  Resampling task;
  task.image = Reduced(stored, reduction);
  task.box = Reduced(Stored(geometry.box, stored, orientation), stored, reduction);
  task.resized = Viewed(geometry.resized, orientation);  // Viewed inverts itself for sizes
  task.window = Stored(geometry.window, task.resized, orientation);
  task.antialias = geometry.antialias;
  task.interpolation = geometry.interpolation;
  task.resampler = geometry.resampler;
  task.turn = TurnOf(orientation);
  task.reversed_columns = task.turn.mirror_columns != geometry.mirrored_columns;
  task.reversed_rows = task.turn.mirror_rows != geometry.mirrored_rows;
  if (task.turn.transpose) std::swap(task.reversed_columns, task.reversed_rows);
  task.turn.mirror_columns ^= geometry.mirror_columns;
  task.turn.mirror_rows ^= geometry.mirror_rows;
  return task;
}

Reduction ReductionOf(const Geometry& geometry, Reduction most) {
  if (!Widens(geometry.interpolation, geometry.antialias)) return 1;
  if (geometry.resampler != ResampledAs::kPillow) return 1;
  const ImageSize to = geometry.resized;
  Reduction reduction = 1;
  while (reduction < most && geometry.box.width >= 2 * reduction * to.width &&
         geometry.box.height >= 2 * reduction * to.height) {
    reduction *= 2;
  }
  return reduction;
}

}  // namespace stoker
