// RowColumns: the columns of a batch's rows. It tells a plan where to write, and writes the other
// columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "core/time/stage_times.h"
#include "engine/map/map_caller.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "engine/production/mixer.h"
#include "engine/production/samples/samples_in_flight.h"
#include "transforms/plan/objects.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Immutable and thread-safe.
class RowColumns {
 public:
  // The buffers that OutputRows points into; reused from sample to sample.
  struct Buffers {
    std::vector<void*> other_rows;
    std::vector<std::span<const uint8_t>> objects;  // of the sample, by field of objects
    std::vector<void*> kept;                        // their rows in the batch
    std::vector<ShapeMask> masks;                   // by drawn field
    std::vector<uint16_t> values;                   // of the objects, for each of the masks
    ObjectRows object_rows;
  };

  // `plan`: null if rows are copied unchanged. `map`: the program's function, or null. `columns`:
  // the columns of a batch. All references must outlive it.
  RowColumns(const LoaderOptions& options, const Sampler& sampler, const std::optional<Plan>& plan,
             const std::optional<Mixer>& mixer, const MapCaller* map,
             std::vector<ColumnSpec> columns);

  // Returns where the plan writes the row of the first piece of a sample, and its objects. The
  // result refers to `buffers`, and to the source's memory. DataLoss: the source does not give the
  // objects that it should. InvalidArgument: an object has a class that a mask does not hold.
  // Precondition: there is a plan.
  Result<OutputRows> RowsOf(Slot& slot, uint32_t row, uint64_t sample, Buffers& buffers) const;

  // Does the same for a further sample of the row, whose objects follow those that are written.
  Result<OutputRows> RowsOfPart(Slot& slot, uint32_t row, uint64_t sample, Buffers& buffers) const;

  // Returns where it writes the row of a further piece of a sample: to its place in the column of
  // its field; and the sample's objects, which are not written again. Preconditions: there is that
  // piece, and the last call with these buffers was for this sample.
  OutputRows RowsOfPiece(Slot& slot, uint32_t row, uint32_t piece, Buffers& buffers) const;

  // Writes the columns that the plan does not write, then calls the program's function, if there is
  // one for rows. `loaded`: the rows of the kLoaded fields of the claim's only row; empty if it
  // failed. Precondition: the rows' ids are known, and the plan has written its columns.
  Status Write(const RowClaim& claim, std::span<const uint8_t> loaded, StageTimes& times) const;

  // Makes the rows of the images as large as the largest of them; without rows, their shape is that
  // of the largest of all. Preconditions: the plan pads batches, and all rows are written.
  void Pad(Slot& slot) const;

 private:
  // The place of a piece's image in the row of its sample.
  struct PlaceInRow {
    size_t column = 0;
    size_t offset = 0;  // bytes
  };
  static std::vector<PlaceInRow> PlacesOf(const SampleSource& source,
                                          const std::optional<Plan>& plan);
  Result<const ObjectRows*> ObjectsOf(uint64_t sample, Buffers& buffers) const;
  Result<const ObjectRows*> ObjectRowsOf(Slot& slot, uint32_t row, uint64_t sample,
                                         Buffers& buffers) const;
  Status AddMasks(Slot& slot, uint32_t row, uint64_t sample, Buffers& buffers) const;
  Status AddValues(const Field& field, Buffers& buffers) const;
  Status WriteFields(const RowClaim& claim, std::span<const uint8_t> loaded) const;
  Status WriteObjects(const RowClaim& claim) const;
  Status MapRows(const RowClaim& claim, StageTimes& times) const;
  CropRegion* CropsOf(Slot& slot, uint32_t row) const;
  bool MixesAcrossParts(const Slot& slot, int64_t row) const;

  const SampleSource& source_;
  const Sampler& sampler_;
  const uint64_t seed_;
  const std::optional<Plan>& plan_;
  const std::optional<Mixer>& mixer_;
  const MapCaller* const map_;                   // of rows; may be null
  const std::vector<ColumnSpec> columns_;        // of a batch
  const std::vector<size_t> field_columns_;      // by field: ColumnOfField
  const std::vector<size_t> object_fields_;      // the fields of objects
  const std::vector<size_t> drawn_fields_;       // the drawn fields
  const size_t planned_;                         // PlannedFields
  const std::vector<PlaceInRow> places_;         // by piece
  const std::vector<size_t> added_;              // the columns of the program's function
  const bool adds_labels_;                       // AddsLabels
  const std::optional<size_t> size_column_;      // SizeColumn
  const std::optional<size_t> geometry_column_;  // GeometryColumn
};

}  // namespace stoker
