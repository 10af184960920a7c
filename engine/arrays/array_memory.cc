#include "engine/arrays/array_memory.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/mapping.h"

namespace stoker {

namespace {

constexpr size_t kArrayAlignment = 64;
// Smaller arrays come from malloc; this is the size from which malloc would use mappings itself.
constexpr size_t kLeastMappedBytes = size_t{128} << 10;
constexpr size_t kLeastHugeBytes = size_t{4} << 20;

// Adds room for a slightly larger array, so that the memory is likely to fit the next one, too.
size_t WithRoom(size_t bytes) { return bytes + bytes / 8; }

}  // namespace

// The mappings of freed arrays.
class ArrayMemory::Kept {
 public:
  // Take and Put never wait: in a forked child the lock stays taken if another thread of the parent
  // had it.

  // Returns the smallest mapping that fits and is not much larger than `bytes`.
  std::optional<Mapping> Take(size_t bytes) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return std::nullopt;
    auto best = mappings_.end();
    for (auto it = mappings_.begin(); it != mappings_.end(); ++it) {
      const bool fits = it->size() >= bytes && it->size() / 2 <= bytes;
      if (fits && (best == mappings_.end() || it->size() < best->size())) best = it;
    }
    if (best == mappings_.end()) return std::nullopt;
    Mapping taken = std::move(*best);
    mappings_.erase(best);
    bytes_ -= taken.size();
    return taken;
  }

  void Put(Mapping mapping) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || mapping.size() > kKeptBytes) return;
    size_t drop = 0;  // the oldest come first
    for (bytes_ += mapping.size(); bytes_ > kKeptBytes; ++drop) bytes_ -= mappings_[drop].size();
    mappings_.erase(mappings_.begin(), mappings_.begin() + static_cast<ptrdiff_t>(drop));
    mappings_.push_back(std::move(mapping));
  }

 private:
  std::mutex mutex_;
  std::vector<Mapping> mappings_;
  size_t bytes_ = 0;
};

ArrayMemory::ArrayMemory() : kept_(std::make_shared<Kept>()) {}
ArrayMemory::~ArrayMemory() = default;

Result<std::shared_ptr<void>> ArrayMemory::Allocate(size_t bytes) {
  if (bytes >= kLeastMappedBytes) {
    std::optional<Mapping> mapping = kept_->Take(bytes);
    if (!mapping) {
      const size_t wanted = WithRoom(bytes);
      if (Result<Mapping> made = Mapping::Map(wanted, wanted >= kLeastHugeBytes); made.ok()) {
        mapping = *std::move(made);
      }
    }
    if (mapping) {
      void* const data = mapping->data();
      return std::shared_ptr<void>(data,
                                   [kept = std::weak_ptr(kept_),
                                    held = std::make_shared<Mapping>(*std::move(mapping))](void*) {
                                     if (const std::shared_ptr<Kept> still = kept.lock())
                                       still->Put(std::move(*held));
                                   });
    }
  }
  const size_t rounded = (bytes + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  std::shared_ptr<void> memory(std::aligned_alloc(kArrayAlignment, rounded), &std::free);
  if (memory != nullptr) return memory;
  return Error{
      .code = Code::kResourceExhausted,
      .cause = "the system has no memory for an array of " + std::to_string(bytes) + " bytes",
      .advice = "Free memory of this machine, or raise the limits of this process",
      .wanted_bytes = bytes,
      .detail = Error::Detail::kNoMemory};
}

}  // namespace stoker
