#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "engine/core/hash.h"
#include "io/sources/dataset_index.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

using dataset_index::Header;
using dataset_index::Section;
using dataset_index::Slot;

namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr size_t kSections = 2;
constexpr uint64_t kRecordsAt = sizeof(Header) + kSections * sizeof(Section);

template <typename T>
std::span<const uint8_t> BytesOf(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof(T)};
}

Status WriteAll(int descriptor, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "cannot write the index", path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

// Of no other writer's, on this machine or another one.
std::string PartOf(const std::string& path) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) < 0) number = static_cast<uint64_t>(getpid());
  std::array<char, 17> hexadecimal{};
  std::snprintf(hexadecimal.data(), hexadecimal.size(), "%016" PRIx64, number);
  return path + ".part" + hexadecimal.data();
}

}  // namespace

Result<DatasetIndexWriter> DatasetIndexWriter::Create(const std::string& path) {
  constexpr int kTries = 100;  // each finds what another has left once in 2^64 times
  std::string part;
  int descriptor = -1;
  for (int i = 0; i < kTries && descriptor < 0; ++i) {
    part = PartOf(path);
    descriptor = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) return SystemError(errno, "cannot write the index", path);
  DatasetIndexWriter writer(path, std::move(part), descriptor);
  const std::vector<uint8_t> room(kRecordsAt);  // of what Finish knows
  if (Status status = writer.Write(room); !status.ok()) return std::move(status).error();
  return writer;
}

DatasetIndexWriter::DatasetIndexWriter(DatasetIndexWriter&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::move(other.part_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      waiting_(std::move(other.waiting_)),
      samples_(std::move(other.samples_)),
      record_bytes_(other.record_bytes_) {}

DatasetIndexWriter::~DatasetIndexWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(part_.c_str());
}

Status DatasetIndexWriter::Write(std::span<const uint8_t> bytes) {
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return waiting_.size() < kWriteBytes ? Status() : Flush();
}

Status DatasetIndexWriter::Flush() {
  Status status = WriteAll(descriptor_, waiting_, path_);
  waiting_.clear();
  return status;
}

Status DatasetIndexWriter::Add(uint64_t key, std::span<const uint8_t> record) {
  if (record.empty()) return {};
  samples_.push_back({key, record_bytes_, record.size()});
  record_bytes_ += record.size();
  return Write(record);
}

Result<uint64_t> DatasetIndexWriter::Finish() {
  std::vector<Slot> slots(samples_.size() + samples_.size() / 2 + 1);
  for (const Sample& sample : samples_) {
    uint64_t at = dataset_index::FirstSlot(sample.key, slots.size());
    while (slots[at].bytes != 0 && slots[at].key != sample.key) at = (at + 1) % slots.size();
    if (slots[at].bytes == 0) slots[at] = {sample.key, sample.offset, sample.bytes};
  }
  const std::span<const uint8_t> table(reinterpret_cast<const uint8_t*>(slots.data()),
                                       slots.size() * sizeof(Slot));
  const std::array<Section, kSections> sections = {
      Section{dataset_index::kSamples, 0, kRecordsAt + record_bytes_, table.size(), Hash64(table)},
      Section{dataset_index::kCropIndexes, 0, kRecordsAt, record_bytes_, 0}};
  Header header;
  header.sections = kSections;
  header.file_bytes = kRecordsAt + record_bytes_ + table.size();
  header.checksum = Hash64(BytesOf(sections), Hash64(BytesOf(header)));
  Status status = Write(table);
  if (status.ok()) status = Flush();
  if (status.ok() && lseek(descriptor_, 0, SEEK_SET) != 0) {
    status = SystemError(errno, "cannot write the index", path_);
  }
  if (status.ok()) status = WriteAll(descriptor_, BytesOf(header), path_);
  if (status.ok()) status = WriteAll(descriptor_, BytesOf(sections), path_);
  if (status.ok()) status = Replace();
  if (!status.ok()) return std::move(status).error();
  return header.file_bytes;
}

Status DatasetIndexWriter::Replace() {
  // On the disk before it has its name: a crash leaves the old file or the new one.
  if (fdatasync(descriptor_) != 0) return SystemError(errno, "cannot write the index", path_);
  if (rename(part_.c_str(), path_.c_str()) != 0) {
    return SystemError(errno, "cannot replace the index", path_);
  }
  close(std::exchange(descriptor_, -1));
  return {};
}

}  // namespace stoker
