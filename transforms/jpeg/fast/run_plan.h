// In which order the MCUs of a scan are gone through for a region: runs of some to skip and some to
// decode, and where there is a crop index, jumps.
#pragma once

#include <cstdint>
#include <optional>

#include "transforms/jpeg/fast/crop_geometry.h"
#include "transforms/jpeg/fast/crop_index.h"

namespace stoker::jpeg {

// Of these steps, in this order.
struct Run {
  bool seek = false;  // to MCU `first` of the image, before which the place is said to be `from`
  int64_t first = 0;
  ScanPlace from;
  ScanPlace until;          // a place further on: data behind it are not needed
  int64_t skip = 0;         // so many MCUs
  int decode = 0;           // so many, …
  int column = 0;           // … of which the first is this one of the region's row
  int64_t skip_behind = 0;  // so many again
  bool check = false;       // whether the parser has come to `until`
  bool ends_row = false;    // then a row of the region is complete
};

// Without an index: everything from the first MCU to the last that libjpeg-turbo parses for the
// region.
//
// With one, in each row of the region: from the last place at or before its left edge to the last
// one at or before its right edge (or to the next restart marker, and so on), and from there to
// that edge. Where a run comes to a place, the parser has to be there, bit and predictors: then the
// place that it began at was right, or both are wrong in the same way. A row that no such place
// divides is parsed beyond its edge, up to the next one: none is decoded from a place that nothing
// has confirmed. (Places in between would confirm nothing more.)
class RunPlan {
 public:
  // Both have to stay; `index` may be null.
  RunPlan(const CropGeometry& geometry, const CropIndex* index);

  bool indexed() const { return index_ != nullptr; }

  std::optional<Run> Next();  // none behind the last

 private:
  Run NextIndexed();
  std::optional<Run> NextParsed();

  const CropGeometry& geometry_;
  const CropIndex* const index_;
  int row_;
  bool in_row_ = false;   // with an index: in the middle of it
  int64_t place_ = 0;     // where the next run begins then
  ScanPlace from_;        // what that place is
  int64_t unparsed_ = 0;  // without an index: MCUs before the next one that is decoded
};

}  // namespace stoker::jpeg
