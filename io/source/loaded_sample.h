// LoadedSample: the output of SampleSource::Load, which writes a sample's image and rows into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/result/result.h"

namespace stoker {

// Used by one thread, during one call of Load.
class LoadedSample {
 public:
  // Sets the bytes of the encoded image, which are copied. ResourceExhausted, which Load must
  // return: the memory budget has no room now; Load is then called again later.
  virtual Status SetBytes(std::span<const uint8_t> encoded) = 0;

  // Sets the file that is the encoded image; this call reads it. Load must return its errors.
  virtual Status SetFile(const std::string& path) = 0;

  // Sets the row of a kLoaded field, which is copied; once for each field. A row of another size,
  // or of another field, makes the sample an error, regardless of what Load returns.
  virtual void SetRow(size_t field, std::span<const uint8_t> row) = 0;

 protected:
  ~LoadedSample() = default;
};

}  // namespace stoker
