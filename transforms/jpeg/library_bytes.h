// Upper bounds of the memory that libjpeg-turbo allocates while it decodes an image. They are
// charged to the budget in advance, because libjpeg-turbo uses malloc.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::jpeg {

// The properties of an image that the bounds depend on.
struct Frame {
  struct Component {
    int columns = 1, rows = 1;                   // its samples, relative to the other components
    uint64_t block_columns = 0, block_rows = 0;  // of the whole image
  };

  int width = 0;                      // pixels
  int max_columns = 1, max_rows = 1;  // of any component
  int components = 0;
  std::array<Component, 4> component;
  bool several_scans = false;
};

// Returns the bytes of the whole image's coefficients if there are several scans; otherwise 0.
uint64_t CoefficientBytes(const Frame& frame);

// Returns the bytes of all memory, including coefficients.
uint64_t LibraryBytes(const Frame& frame);

}  // namespace stoker::jpeg
