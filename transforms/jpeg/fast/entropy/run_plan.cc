#include "transforms/jpeg/fast/entropy/run_plan.h"

#include <algorithm>
#include <utility>

namespace stoker::jpeg {

RunPlan::RunPlan(const CropGeometry& geometry, const CropIndex* index)
    : geometry_(geometry),
      index_(index),
      row_(geometry.top),
      unparsed_(int64_t{geometry.top} * geometry.mcus_across + geometry.left) {}

std::optional<Run> RunPlan::Next() {
  if (index_ == nullptr) return NextParsed();
  if (row_ == geometry_.bottom) return std::nullopt;
  return NextIndexed();
}

std::optional<Run> RunPlan::NextParsed() {
  const CropGeometry& g = geometry_;
  if (row_ > g.bottom) return std::nullopt;
  Run run;
  run.skip = std::exchange(unparsed_, g.mcus_across - g.mcus());
  if (row_++ == g.bottom) {
    run.skip += int64_t{g.parsed_rows - g.bottom} * g.mcus_across - g.left;
    return run;
  }
  run.decode = g.mcus();
  run.ends_row = true;
  return run;
}

Run RunPlan::NextIndexed() {
  const CropGeometry& g = geometry_;
  const IndexShape& shape = index_->shape();
  const int64_t row = int64_t{row_} * g.mcus_across, left = row + g.left, right = row + g.right;
  const int64_t last_entry_point = shape.EntryPointBefore(right);
  const bool begins_row = !in_row_;
  if (begins_row) entry_point_ = shape.EntryPointBefore(left);
  const bool check = begins_row || entry_point_ < last_entry_point;
  const int64_t begin = entry_point_;
  entry_point_ = std::clamp(last_entry_point, begin + 1, shape.SegmentEnd(begin));
  Run run;
  run.seek = true;
  run.first = shape.McuAt(begin);
  run.from = begins_row ? index_->At(begin) : from_;
  run.until = from_ = index_->At(entry_point_);
  const int64_t end = shape.McuAt(entry_point_);
  const int64_t first = std::max(run.first, left), last = std::min(end, right);
  run.skip = first - run.first;
  run.column = static_cast<int>(first - left);
  run.decode = static_cast<int>(last - first);
  run.skip_behind = check ? end - last : 0;
  run.check = check;
  run.ends_row = last == right;
  in_row_ = !run.ends_row;
  row_ += run.ends_row ? 1 : 0;
  return run;
}

}  // namespace stoker::jpeg
