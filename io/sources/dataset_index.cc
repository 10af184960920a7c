#include "io/sources/dataset_index.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/core/hash.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

using dataset_index::FirstSlot;
using dataset_index::Header;
using dataset_index::Section;
using dataset_index::Slot;

namespace {

constexpr char kAdvice[] = "Make it again with `stoker index`, or remove it";

template <typename T>
T Load(std::span<const uint8_t> bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Error Damaged(const std::string& what) {
  return {.code = Code::kDataLoss, .cause = "the index is damaged: " + what, .advice = kAdvice};
}

bool Inside(const Section& section, size_t bytes) {
  return section.offset <= bytes && section.bytes <= bytes - section.offset;
}

}  // namespace

uint64_t SampleKey(std::string_view folder, std::string_view name) {
  return Hash64(name, Hash64(folder));
}

DatasetIndex& DatasetIndex::operator=(DatasetIndex&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(slots_, other.slots_);
  std::swap(records_, other.records_);
  std::swap(samples_, other.samples_);
  return *this;
}

DatasetIndex::~DatasetIndex() {
  if (file_.data() != nullptr) munmap(const_cast<uint8_t*>(file_.data()), file_.size());
}

Result<DatasetIndex> DatasetIndex::Open(const std::string& path) {
  DatasetIndex index;
  index.path_ = path;
  Status status = index.Map();
  if (status.ok()) status = index.Check();
  if (!status.ok()) return std::move(status).error().WithFile(path);
  return index;
}

Status DatasetIndex::Map() {
  const int descriptor = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(errno, "cannot open the index");
  struct stat info {};
  Status status;
  if (fstat(descriptor, &info) != 0) {
    status = SystemError(errno, "cannot look at the index");
  } else if (!S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(sizeof(Header))) {
    status = Damaged("no file of an index' size");
  } else {
    const auto bytes = static_cast<size_t>(info.st_size);
    void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
      status = SystemError(errno, "cannot map the index");
    } else {
      file_ = {static_cast<const uint8_t*>(memory), bytes};
    }
  }
  close(descriptor);
  return status;
}

Status DatasetIndex::Check() {
  auto header = Load<Header>(file_, 0);
  if (header.magic != dataset_index::kMagic) return Damaged("it does not begin as one");
  if (header.version != dataset_index::kVersion) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "an index of version " + std::to_string(header.version) +
                          "; this stoker reads " + std::to_string(dataset_index::kVersion),
                 .advice = kAdvice};
  }
  if (header.file_bytes != file_.size()) return Damaged("it is not as long as it should be");
  if (header.sections > (file_.size() - sizeof(Header)) / sizeof(Section)) {
    return Damaged("its header");
  }
  const std::span<const uint8_t> list =
      file_.subspan(sizeof(Header), header.sections * sizeof(Section));
  const uint64_t checksum = std::exchange(header.checksum, 0);
  const std::span<const uint8_t> first(reinterpret_cast<const uint8_t*>(&header), sizeof(header));
  if (Hash64(list, Hash64(first)) != checksum) return Damaged("its header");
  for (size_t at = 0; at < list.size(); at += sizeof(Section)) {
    const auto section = Load<Section>(list, at);
    if (!Inside(section, file_.size())) return Damaged("its sections");
    const std::span<const uint8_t> bytes = file_.subspan(section.offset, section.bytes);
    if (section.kind == dataset_index::kCropIndexes) records_ = bytes;
    if (section.kind != dataset_index::kSamples) continue;
    if (Hash64(bytes) != section.checksum) return Damaged("its list of samples");
    slots_ = bytes.first(bytes.size() / sizeof(Slot) * sizeof(Slot));
  }
  for (size_t at = 0; at < slots_.size(); at += sizeof(Slot)) {
    samples_ += Load<Slot>(slots_, at).bytes != 0;
  }
  return {};
}

std::span<const uint8_t> DatasetIndex::Find(uint64_t key) const {
  const uint64_t slots = slots_.size() / sizeof(Slot);
  if (slots == 0) return {};
  uint64_t at = FirstSlot(key, slots);
  for (uint64_t looked = 0; looked < slots; ++looked) {
    const Slot slot = Load<Slot>(slots_, at * sizeof(Slot));
    if (slot.bytes == 0) break;
    if (slot.key == key) {
      const bool inside =
          slot.offset <= records_.size() && slot.bytes <= records_.size() - slot.offset;
      return inside ? records_.subspan(slot.offset, slot.bytes) : std::span<const uint8_t>();
    }
    at = at + 1 == slots ? 0 : at + 1;
  }
  return {};
}

}  // namespace stoker
