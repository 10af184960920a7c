// What libjpeg-turbo allocates while it decodes an image, at most: charged to the budget
// beforehand, since it takes its memory from malloc.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::jpeg {

// What of a header it depends on.
struct Frame {
  struct Component {
    int columns = 1, rows = 1;                   // its samples, relative to the other components
    uint64_t block_columns = 0, block_rows = 0;  // of the whole image
  };

  int width = 0;                        // pixels
  int most_columns = 1, most_rows = 1;  // of any component
  int components = 0;
  std::array<Component, 4> component;
  bool several_scans = false;
};

// The whole image's coefficients, which it holds where there are several scans; else 0.
uint64_t CoefficientBytes(const Frame& frame);

// All of it, coefficients included.
uint64_t LibraryBytes(const Frame& frame);

}  // namespace stoker::jpeg
