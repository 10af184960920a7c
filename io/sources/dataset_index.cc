#include "io/sources/dataset_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "engine/core/hash.h"

namespace stoker {

using dataset_index::FirstSlot;
using dataset_index::Header;
using dataset_index::Section;
using dataset_index::Slot;

namespace {

// What may lie between the sections, and records that no slot names, at most.
constexpr uint64_t kMostUnused = 1 << 20;
constexpr uint32_t kMostSections = 64;
// A table is refused before it takes more memory than a multiple of what lies on the disk: a file
// with holes is cheap to make large.
constexpr uint64_t kMostSlotsPerSample = 64;
constexpr uint64_t kSlotsAlways = 1024;

template <typename T>
std::span<uint8_t> BytesOf(T& value) {
  return {reinterpret_cast<uint8_t*>(&value), sizeof(T)};
}

template <typename T>
std::span<uint8_t> BytesOf(std::vector<T>& values) {
  return {reinterpret_cast<uint8_t*>(values.data()), values.size() * sizeof(T)};
}

Error Damaged(const std::string& what) {
  return {.code = Code::kDataLoss,
          .cause = "the index is damaged: " + what,
          .advice = "Make it anew with `stoker index`"};
}

Error NoIndex() {
  return {.code = Code::kInvalidArgument,
          .cause = "this is no crop index",
          .advice = "Give the file that `stoker index` wrote"};
}

Status ReadAt(int descriptor, uint64_t offset, std::span<uint8_t> to) {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "cannot read the index");
    if (got == 0) return Damaged("it ends too early");
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

bool Inside(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return offset <= whole && bytes <= whole - offset;
}

bool TooEmpty(uint64_t slots, uint64_t samples) {
  return slots > kSlotsAlways && (slots - kSlotsAlways) / kMostSlotsPerSample > samples;
}

// The header and the list of sections behind it.
Result<std::vector<Section>> ReadSections(int descriptor, uint64_t file_bytes) {
  Header header;
  if (file_bytes < sizeof(header.magic)) return NoIndex();
  Status status = ReadAt(descriptor, 0, BytesOf(header.magic));
  if (!status.ok()) return std::move(status).error();
  if (header.magic != dataset_index::kMagic) return NoIndex();
  status = ReadAt(descriptor, 0, BytesOf(header));
  if (!status.ok()) return std::move(status).error();
  if (header.version != dataset_index::kVersion) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "an index of version " + std::to_string(header.version) +
                          "; this stoker reads " + std::to_string(dataset_index::kVersion),
                 .advice = "Make it anew with `stoker index`"};
  }
  if (header.file_bytes != file_bytes) return Damaged("it is not as long as it should be");
  if (header.sections > kMostSections) return Damaged("its header");
  std::vector<Section> sections(header.sections);
  status = ReadAt(descriptor, sizeof(header), BytesOf(sections));
  if (!status.ok()) return std::move(status).error();
  const uint64_t checksum = std::exchange(header.checksum, 0);
  if (Hash64(BytesOf(sections), Hash64(BytesOf(header))) != checksum) return Damaged("its header");
  uint64_t unused = file_bytes;
  for (const Section& section : sections) {
    if (!Inside(section.offset, section.bytes, file_bytes)) return Damaged("its sections");
    unused -= std::min(unused, section.bytes);
  }
  if (unused > kMostUnused + sizeof(Header) + kMostSections * sizeof(Section)) {
    return Damaged("it is longer than its sections");
  }
  return sections;
}

}  // namespace

uint64_t SampleKey(std::string_view folder, std::string_view name) {
  return Hash64(name, Hash64(folder));
}

DatasetIndex& DatasetIndex::operator=(DatasetIndex&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(slots_, other.slots_);
  std::swap(records_, other.records_);
  std::swap(samples_, other.samples_);
  return *this;
}

DatasetIndex::~DatasetIndex() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<DatasetIndex> DatasetIndex::Open(const std::string& path) {
  DatasetIndex index;
  index.path_ = path;
  Status status = index.Load();
  if (!status.ok()) return std::move(status).error().WithFile(path);
  return index;
}

Status DatasetIndex::Load() {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    return errno == ENXIO ? NoIndex() : SystemError(errno, "cannot open the index");
  }
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) return SystemError(errno, "cannot look at the index");
  if (!S_ISREG(info.st_mode)) return NoIndex();
  Result<std::vector<Section>> sections =
      ReadSections(descriptor_, static_cast<uint64_t>(info.st_size));
  if (!sections.ok()) return std::move(sections).error();
  bool listed = false, recorded = false;
  for (const Section& section : *sections) {
    const bool again = section.kind == dataset_index::kSamples       ? std::exchange(listed, true)
                       : section.kind == dataset_index::kCropIndexes ? std::exchange(recorded, true)
                                                                     : false;
    if (again) return Damaged("its sections");
    if (section.kind == dataset_index::kCropIndexes) records_ = section;
    if (section.kind != dataset_index::kSamples) continue;
    if (Status status = ReadSlots(section); !status.ok()) return status;
  }
  return CheckSlots();
}

// A piece at a time, so that what is no table is noticed while it is small.
Status DatasetIndex::ReadSlots(const Section& section) {
  constexpr uint64_t kPiece = 1 << 16;
  if (section.bytes % sizeof(Slot) != 0) return Damaged("its list of samples");
  const uint64_t slots = section.bytes / sizeof(Slot);
  try {
    while (slots_.size() < slots) {
      const uint64_t begin = slots_.size();
      slots_.resize(std::min(begin + kPiece, slots));
      const std::span<uint8_t> piece = BytesOf(slots_).subspan(begin * sizeof(Slot));
      Status status = ReadAt(descriptor_, section.offset + begin * sizeof(Slot), piece);
      if (!status.ok()) return status;
      for (uint64_t i = begin; i < slots_.size(); ++i) samples_ += slots_[i].bytes != 0;
      if (TooEmpty(slots_.size(), samples_)) return Damaged("its list of samples is too empty");
    }
    slots_.shrink_to_fit();
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "no memory for the index' list of samples"};
  }
  if (Hash64(BytesOf(slots_)) != section.checksum) return Damaged("its list of samples");
  if (slots > 0 && samples_ == slots) return Damaged("its list of samples is too full");
  return {};
}

Status DatasetIndex::CheckSlots() const {
  uint64_t unused = records_.bytes;
  for (const Slot& slot : slots_) {
    if (!Inside(slot.offset, slot.bytes, records_.bytes)) return Damaged("its list of samples");
    unused -= std::min(unused, slot.bytes);
  }
  if (unused > kMostUnused) return Damaged("it is longer than its list of samples");
  return {};
}

const Slot* DatasetIndex::Find(uint64_t key) const {
  const uint64_t slots = slots_.size();
  if (slots == 0) return nullptr;
  uint64_t at = FirstSlot(key, slots);
  for (uint64_t looked = 0; looked < dataset_index::kMostProbes; ++looked) {
    const Slot& slot = slots_[at];
    if (slot.bytes == 0) return nullptr;
    if (slot.key == key) return &slot;
    at = at + 1 == slots ? 0 : at + 1;
  }
  return nullptr;
}

void DatasetIndex::Read(uint64_t key, uint64_t most, std::vector<uint8_t>& record) const {
  record.clear();
  const Slot* const slot = Find(key);
  if (slot == nullptr || slot->bytes > most) return;
  try {
    record.resize(slot->bytes);
  } catch (const std::bad_alloc&) {
    return;
  }
  if (!ReadAt(descriptor_, records_.offset + slot->offset, record).ok()) record.clear();
}

}  // namespace stoker
