#include "io/sources/source.h"

#include "io/sources/arrays.h"

namespace stoker {

std::span<const ArrayColumn> SampleSource::arrays() const { return {}; }

bool SampleSource::has_labels() const {
  if (!arrays().empty()) return arrays().size() == 2;
  return size() != 0 && At(0).label != kNoLabel;
}

}  // namespace stoker
