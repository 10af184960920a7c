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
  // Copies the bytes of the encoded image. If the memory budget has no room now it returns
  // ResourceExhausted, which Load must return; Load is called again later.
  virtual Status SetBytes(std::span<const uint8_t> encoded) = 0;

  // Sets the file that is the encoded image; this call reads it. Load must return its errors.
  virtual Status SetFile(const std::string& path) = 0;

  // Copies the row of a kLoaded field; must be called once for each. A row of the wrong size, or of
  // another field, makes the sample an error, even if Load succeeds.
  virtual void SetRow(size_t field, std::span<const uint8_t> row) = 0;

 protected:
  ~LoadedSample() = default;
};

}  // namespace stoker
