// Photographs of all kinds and sizes, from one pixel to as many as are asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/sources/source.h"

namespace stoker::testing {

struct Photograph {
  std::string path;
  double megapixels = 0;
  bool ordinary = false;  // a baseline JPEG of at most 2000 pixels a side
};

// Files in `folder`, made where they are not there yet; those of more than a megapixel are flat.
std::vector<Photograph> MakePhotographs(const std::string& folder, double most_megapixels);

// These files, with labels 0, 1, 2, 0, …
std::shared_ptr<const SampleSource> SourceOf(std::vector<Photograph> photographs);

}  // namespace stoker::testing
