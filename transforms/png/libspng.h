// LibSpng: uses libspng only to decompress rows and undo their filters. It is given only the chunks
// that pixels depend on, so that all its allocations depend on the header alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/result/result.h"
#include "transforms/png/chunks.h"

namespace stoker::png {

// Returns an upper bound of the bytes that libspng and zlib allocate while an image is decoded.
uint64_t LibraryBytes(const Header& header);

// Decodes one image. Not thread-safe.
class LibSpng {
 public:
  LibSpng();
  ~LibSpng();
  LibSpng(const LibSpng&) = delete;
  LibSpng& operator=(const LibSpng&) = delete;

  // `bytes`: the file that `header` and `layout` were read from; it must stay valid while rows are
  // read.
  Status Start(std::span<const uint8_t> bytes, const Header& header, const Layout& layout);

  // Reads the next row, from top to bottom; for an interlaced image, row by row of one pass after
  // another. `size`: at least the bytes of such a row. Precondition: there are rows left.
  Status Read(uint8_t* row, size_t size);

  struct State;  // known to libspng.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker::png
