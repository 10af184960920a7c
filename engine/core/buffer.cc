#include "engine/core/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stoker {

Status GrowingBuffer::Grow(size_t bytes, size_t keep) {
  if (bytes <= capacity()) return {};
  constexpr size_t kPage = 4096;
  constexpr size_t kMost = size_t{1} << 47;  // what a process can address
  if (bytes > kMost) bytes = kMost;          // refused below: no budget has that
  const size_t mapped = (bytes + kBufferPadding + kPage - 1) / kPage * kPage;
  if (keep == 0) Free();  // else old and new memory exist together for a moment, and both count
  const uint64_t before = reserved_.bytes();
  if (!reserved_.Resize(before + mapped)) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the memory budget has no room for " + std::to_string(bytes) +
                          " more bytes of working memory",
                 .advice = "Raise memory_budget, or lower depth or batch_size"};
  }
  Result<Mapping> grown = Mapping::Map(mapped);
  if (!grown.ok()) {
    (void)reserved_.Resize(before);
    return std::move(grown).error();
  }
  if (keep != 0) std::memcpy(grown->data(), memory_.data(), std::min(keep, capacity()));
  memory_ = *std::move(grown);
  (void)reserved_.Resize(mapped);
  return {};
}

void GrowingBuffer::Free() {
  memory_ = Mapping();
  (void)reserved_.Resize(0);
}

}  // namespace stoker
