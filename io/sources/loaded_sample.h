// LoadedSample: SampleSource::Load writes a sample into it, its image and its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/result.h"

namespace stoker {

// Used by one thread, during one call of Load.
class LoadedSample {
 public:
  // The bytes of the encoded image, which are copied. ResourceExhausted, to be returned from Load:
  // the memory budget has no room now; Load is then called again later.
  virtual Status SetBytes(std::span<const uint8_t> encoded) = 0;

  // The file that is the encoded image; it is read by this call. Its errors are to be returned.
  virtual Status SetFile(const std::string& path) = 0;

  // The row of a kLoaded field, which is copied: once for each. A row of another size, or of
  // another field, makes the sample an error, whatever Load returns.
  virtual void SetRow(size_t field, std::span<const uint8_t> row) = 0;

 protected:
  ~LoadedSample() = default;
};

}  // namespace stoker
