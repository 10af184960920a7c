// Mixer: the rows of a finished batch are mixed with each other, in place, before it is delivered
// (MixUp, CutMix); labels become soft.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/column_spec.h"
#include "core/random.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/options.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/mix/mix_rows.h"

namespace stoker {

// Immutable; any thread. Needs no memory but some KB of the stack.
class Mixer {
 public:
  // `columns`: images and labels as they would be without mixing. The labels become float32
  // (num_classes). Precondition: options.mix. InvalidArgument names the transform and the option:
  // what CheckMix finds; samples without labels, with labels that are no integers, or of more
  // classes than num_classes; rows that cannot be mixed, or have no height and width to cut.
  static Result<Mixer> Make(const LoaderOptions& options, bool finish_on_device,
                            std::vector<ColumnSpec>& columns);

  // The label of sample `id`, of row `row`: 1 for its class, 0 for all others. InvalidArgument
  // names a label that is not in [0, num_classes).
  Status WriteLabel(int64_t label, uint64_t id, Slot& slot, uint32_t row) const;
  // The same for a sample in memory.
  Status CopyLabel(const ArrayColumn& labels, uint64_t id, Slot& slot, uint32_t row) const;

  // All rows of the slot, as DrawMix says for the key of its first row. Nobody else may touch it.
  // Where a device finishes the images they are left to it: what is to be done goes into each row's
  // RowWork, in the slot's last column.
  void Mix(Slot& slot, const DrawKey& first_row) const;

 private:
  Mixer() = default;

  BatchMix mix_;
  MixedRow image_, label_;
  bool on_device_ = false;  // images are mixed
};

}  // namespace stoker
