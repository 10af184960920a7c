// libspng, from the compressed data to rows with their filters undone, and nothing else of it: it
// is shown the chunks that pixels come from and no others, so that all it allocates depends on the
// header alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result.h"
#include "transforms/png/chunks.h"

namespace stoker::png {

// Bytes that libspng and zlib allocate at most while an image is decoded.
uint64_t LibraryBytes(const Header& header);

// One image. One thread at a time.
class LibSpng {
 public:
  LibSpng();
  ~LibSpng();
  LibSpng(const LibSpng&) = delete;
  LibSpng& operator=(const LibSpng&) = delete;

  // `bytes`, the file that `header` and `layout` have been read from, stays until the end.
  Status Start(std::span<const uint8_t> bytes, const Header& header, const Layout& layout);

  // The next row: from top to bottom; of an interlaced image row after row of pass after pass.
  // `size`: at least the bytes of such a row. No more than there are rows.
  Status Read(uint8_t* row, size_t size);

  struct State;  // known to libspng.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker::png
