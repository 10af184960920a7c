#include "transforms/png/libspng.h"

#include <spng.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "transforms/png/errors.h"

namespace stoker::png {

// The parts of the file that libspng reads, one after another.
struct LibSpng::State {
  State() : library(spng_ctx_new(0)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { spng_ctx_free(library); }

  bool Fill(uint8_t* to, size_t size);
  uint64_t offset() const { return parts[part].begin; }

  spng_ctx* library;
  std::span<const uint8_t> bytes;
  std::array<Range, 3> parts{};  // the rest of each: the header, the palette, the data
  size_t part = 0;
};

// Returns false if fewer than `size` bytes are left.
bool LibSpng::State::Fill(uint8_t* to, size_t size) {
  while (size > 0) {
    Range& from = parts[part];
    const size_t n = std::min(size, from.end - from.begin);
    std::memcpy(to, bytes.data() + from.begin, n);
    from.begin += n;
    to += n;
    size -= n;
    if (size == 0) return true;
    if (part + 1 == parts.size()) return false;
    ++part;
  }
  return true;
}

namespace {

// libspng's context, zlib's state and window, and the data buffer.
constexpr uint64_t kFixedBytes = 96 << 10;
constexpr uint64_t kRowPadding = 64;

int ReadSome(spng_ctx* /*library*/, void* user, void* to, size_t size) {
  return static_cast<LibSpng::State*>(user)->Fill(static_cast<uint8_t*>(to), size) ? 0
                                                                                   : SPNG_IO_EOF;
}

}  // namespace

// Counts two rows with their filter bytes; a third one for interlaced images.
uint64_t LibraryBytes(const Header& header) {
  const uint64_t row = header.RowBytes(header.size.width) + 1 + kRowPadding;
  return kFixedBytes + row * (header.interlaced ? 3 : 2);
}

LibSpng::LibSpng() : state_(std::make_unique<State>()) {}
LibSpng::~LibSpng() = default;

Status LibSpng::Start(std::span<const uint8_t> bytes, const Header& header, const Layout& layout) {
  State& s = *state_;
  if (s.library == nullptr) return LibraryError(SPNG_EMEM, 0);
  s.bytes = bytes;
  s.parts = {Range{0, kHeaderBytes}, layout.palette, layout.data};
  // Checksums have been verified (chunks.h). If those of the chunks are right, so is that of the
  // zlib data inside.
  int code = spng_set_crc_action(s.library, SPNG_CRC_USE, SPNG_CRC_USE);
  if (code == SPNG_OK) {
    code = spng_set_image_limits(s.library, static_cast<uint32_t>(header.size.width),
                                 static_cast<uint32_t>(header.size.height));
  }
  // Makes libspng keep no chunks. (A palette is kept in the context.)
  if (code == SPNG_OK) code = spng_set_chunk_limits(s.library, 0, 0);
  if (code == SPNG_OK) code = spng_set_png_stream(s.library, ReadSome, &s);
  if (code == SPNG_OK) {
    code = spng_decode_image(s.library, nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
  }
  if (code == SPNG_OK) return {};
  return LibraryError(code, s.offset());
}

Status LibSpng::Read(uint8_t* row, size_t size) {
  const int code = spng_decode_scanline(state_->library, row, size);
  if (code == SPNG_OK || code == SPNG_EOI) return {};
  return LibraryError(code, state_->offset());
}

}  // namespace stoker::png
