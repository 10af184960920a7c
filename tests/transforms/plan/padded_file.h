// A file's bytes with the padding that Plan::Apply may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"

namespace stoker::testing {

struct PaddedFile {
  explicit PaddedFile(std::vector<uint8_t> content)
      : bytes(std::move(content)), size(bytes.size()) {
    bytes.resize(size + kBufferPadding, 0xff);
  }
  std::span<const uint8_t> span() const { return {bytes.data(), size}; }
  std::vector<uint8_t> bytes;
  size_t size;
};

}  // namespace stoker::testing
