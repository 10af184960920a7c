// Photographs of all kinds and sizes, from one pixel to `max_megapixels`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/source/source.h"

namespace stoker::testing {

struct Photograph {
  std::string path;
  double megapixels = 0;
  bool ordinary = false;  // a baseline JPEG of at most 2000 pixels a side
};

// Creates missing files in `folder`; photographs of more than a megapixel are flat.
std::vector<Photograph> MakePhotographs(const std::string& folder, double max_megapixels);

// A source of these files, with labels 0, 1, 2, 0, …
std::shared_ptr<const SampleSource> SourceOf(std::vector<Photograph> photographs);

}  // namespace stoker::testing
