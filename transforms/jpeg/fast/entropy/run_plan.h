// RunPlan: the order in which the MCUs of a scan are processed for a region: runs of MCUs to skip
// and to decode and, with a crop index, jumps.
#pragma once

#include <cstdint>
#include <optional>

#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/index/crop_index.h"

namespace stoker::jpeg {

// Up to four steps, in this order.
struct Run {
  bool seek = false;  // jump to MCU `first` of the image, whose entry point is claimed to be `from`
  int64_t first = 0;
  EntryPoint from;
  EntryPoint until;         // a later entry point: data after it are not needed
  int64_t skip = 0;         // number of MCUs to skip
  int decode = 0;           // number of MCUs to decode, …
  int column = 0;           // … the first one into this column of the region's row
  int64_t skip_behind = 0;  // number of MCUs to skip after them
  bool check = false;       // check that the parser arrives at `until`
  bool ends_row = false;    // a row of the region is complete after it
};

// Without an index: all MCUs from the first to the last that libjpeg-turbo parses for the region.
//
// With an index, in each row of the region: from the last entry point at or before its left edge to
// the last one at or before its right edge (or to the next restart marker, and so on), and from
// there to that edge. When a run reaches an entry point, the parser must agree with it in position
// and predictors: then the entry point where the run began was right, or both are wrong in the same
// way. A row without a second entry point is parsed beyond its edge, up to the next one, so that no
// MCU is decoded from an unconfirmed entry point. (Entry points in between would confirm nothing
// more.)
class RunPlan {
 public:
  // Both must stay valid; `index` may be null.
  RunPlan(const CropGeometry& geometry, const CropIndex* index);

  bool indexed() const { return index_ != nullptr; }

  std::optional<Run> Next();  // nullopt after the last

 private:
  Run NextIndexed();
  std::optional<Run> NextParsed();

  const CropGeometry& geometry_;
  const CropIndex* const index_;
  int row_;
  bool in_row_ = false;      // with an index: in the middle of a row
  int64_t entry_point_ = 0;  // number of the entry point where the next run begins then
  EntryPoint from_;          // that entry point
  int64_t unparsed_ = 0;     // without an index: MCUs before the next decoded one
};

}  // namespace stoker::jpeg
