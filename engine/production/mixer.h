// Mixer: mixes the rows of a finished batch with each other (MixUp, CutMix), in place, before it is
// delivered; labels become soft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/slot_pool.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "io/source/source.h"
#include "transforms/mix/batch_mix.h"
#include "transforms/mix/mix_rows.h"

namespace stoker {

// Immutable and thread-safe. Uses no memory except a few KB of stack.
class Mixer {
 public:
  // `columns`: images and labels as they would be without mixing; the labels become float32
  // (num_classes). Precondition: options.mix. InvalidArgument names the transform and the option:
  // an error of CheckMix; samples without labels, with labels that are not integers, or with more
  // classes than num_classes; rows that cannot be mixed, or have no height and width to cut.
  static Result<Mixer> Make(const LoaderOptions& options, bool defer_to_device,
                            std::vector<ColumnSpec>& columns);

  // The index of the labels' column.
  size_t label_column() const { return label_column_; }
  // Writes the labels of these samples of `source` to the rows from `row` on: 1 for a sample's
  // class, 0 for all others. InvalidArgument names a label that is not in [0, num_classes).
  Status WriteLabels(const SampleSource& source, std::span<const uint64_t> ids, Slot& slot,
                     uint32_t row) const;
  // Writes the label of one sample; `row_of_label` is a row of the label's field, of any alignment.
  Status WriteLabel(const uint8_t* row_of_label, uint64_t id, Slot& slot, uint32_t row) const;

  // Mixes all rows of the slot according to DrawMix for the key of its first row. No other thread
  // may use the slot meanwhile. If a device applies the deferred operations, the images are left as
  // they are and the mixing is written into each row's DeferredOps, in the slot's last column.
  void Mix(Slot& slot, const DrawKey& first_row) const;

 private:
  Mixer() = default;

  BatchMix mix_;
  size_t label_column_ = 0;
  Field label_field_;
  MixedRow image_, label_;
  bool on_device_ = false;  // images are mixed on the device
};

}  // namespace stoker
