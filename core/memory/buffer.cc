#include "core/memory/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stoker {

uint64_t GrowingBuffer::MappedBytes(size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kMax = size_t{1} << 47;  // a process' address space; no budget is larger
  return (std::min(bytes, kMax) + kBufferPadding + kPage - 1) / kPage * kPage;
}

Status GrowingBuffer::Grow(size_t bytes, size_t keep) {
  if (bytes <= capacity()) return {};
  const uint64_t mapped = MappedBytes(bytes);
  if (keep == 0) Free();  // so that old and new memory do not count at the same time
  const uint64_t before = reserved_.bytes();
  if (!reserved_.Resize(before + mapped)) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the memory budget has no room for " + std::to_string(mapped) +
                          " more bytes of working memory",
                 .changes = {{OptionChange::How::kRaise, "memory_budget"}},
                 .wanted_bytes = mapped};
  }
  Result<Mapping> grown = Mapping::Map(mapped);
  if (!grown.ok()) {
    (void)reserved_.Resize(before);
    Error error = std::move(grown).error();
    error.wanted_bytes = mapped;
    error.detail = Error::Detail::kNoMemory;
    error.advice = "Free memory of this machine, or raise the limits of this process";
    return error;
  }
  if (keep != 0) std::memcpy(grown->data(), memory_.data(), std::min(keep, capacity()));
  memory_ = *std::move(grown);
  (void)reserved_.Resize(mapped);
  return {};
}

Status GrowAll(std::span<const Growth> growths) {
  for (size_t i = 0; i < growths.size(); ++i) {
    Status grown = growths[i].buffer.Grow(growths[i].bytes);
    if (grown.ok()) continue;
    Error error = std::move(grown).error();
    error.wanted_bytes = MissingBytes(growths.subspan(i));
    return error;
  }
  return {};
}

uint64_t MissingBytes(std::span<const Growth> growths) {
  uint64_t missing = 0;
  for (const Growth& growth : growths) {
    if (growth.bytes <= growth.buffer.capacity()) continue;
    missing += GrowingBuffer::MappedBytes(growth.bytes);
  }
  return missing;
}

void GrowingBuffer::Free() {
  memory_ = Mapping();
  (void)reserved_.Resize(0);
}

GrowingBuffer GrowingBuffer::HandOver() {
  GrowingBuffer other;
  other.reserved_ = reserved_.Another();
  std::swap(reserved_, other.reserved_);
  std::swap(memory_, other.memory_);
  return other;
}

void GrowingBuffer::Forget() {
  memory_.Release();
  (void)reserved_.Resize(0);
}

}  // namespace stoker
