#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <optional>

#include "engine/core/hash.h"
#include "io/sources/dataset_index.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

using dataset_index::BytesOf;
using dataset_index::Header;
using dataset_index::Section;
using dataset_index::SectionKind;

namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr size_t kSections = 6;
constexpr uint64_t kRecordsAt = sizeof(Header) + kSections * sizeof(Section);

template <typename Column>
std::span<const uint8_t> ColumnBytes(const Column& column) {
  return {reinterpret_cast<const uint8_t*>(column.data()), column.size() * sizeof(column[0])};
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
      written_(other.written_),
      facts_(std::move(other.facts_)) {}

DatasetIndexWriter::~DatasetIndexWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(part_.c_str());
}

Status DatasetIndexWriter::Write(std::span<const uint8_t> bytes) {
  written_ += bytes.size();
  if (bytes.size() >= kWriteBytes) {
    if (Status status = Flush(); !status.ok()) return status;
    return WriteAll(descriptor_, bytes, path_);
  }
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return waiting_.size() < kWriteBytes ? Status() : Flush();
}

Status DatasetIndexWriter::Flush() {
  Status status = WriteAll(descriptor_, waiting_, path_);
  waiting_.clear();
  return status;
}

Status DatasetIndexWriter::Add(const ImageFacts& facts, std::span<const uint8_t> record) {
  constexpr uint64_t kUnknown = ~uint32_t{0};
  const uint64_t bytes = facts.file_bytes == 0 ? kUnknown : std::min(facts.file_bytes, kUnknown);
  facts_.push_back({.record_end = written_ - kRecordsAt + record.size(),
                    .file_bytes = static_cast<uint32_t>(bytes),
                    .width = facts.width,
                    .height = facts.height,
                    .orientation = facts.orientation,
                    .format = facts.format});
  return Write(record);
}

Result<uint64_t> DatasetIndexWriter::Finish(const ImageList& list) {
  std::vector<Section> sections = {
      {SectionKind::kCropIndexes, 0, kRecordsAt, written_ - kRecordsAt, 0}};
  const auto add = [&](SectionKind kind, std::span<const uint8_t> bytes) {
    sections.push_back({kind, 0, written_, bytes.size(), dataset_index::Checksum(bytes)});
    return Write(bytes);
  };
  Status status = add(SectionKind::kFolders, ColumnBytes(list.folders));
  if (status.ok()) status = add(SectionKind::kPaths, ColumnBytes(list.paths));
  if (status.ok()) status = add(SectionKind::kFiles, ColumnBytes(list.files));
  if (status.ok()) status = add(SectionKind::kNames, ColumnBytes(list.names));
  if (status.ok()) status = add(SectionKind::kFacts, ColumnBytes(facts_));
  if (status.ok()) status = Flush();
  Header header;
  header.file_bytes = written_;
  header.fingerprint = list.Fingerprint();
  if (status.ok()) status = WriteHeader(header, sections);
  // On the disk before it has its name: a crash leaves the old file or the new one.
  if (status.ok() && fdatasync(descriptor_) != 0) {
    status = SystemError(errno, "cannot write the index", path_);
  }
  if (status.ok()) status = Replace();
  if (!status.ok()) return std::move(status).error();
  close(std::exchange(descriptor_, -1));
  return written_;
}

Status DatasetIndexWriter::WriteHeader(Header header, std::span<const Section> sections) {
  const std::span<const uint8_t> list = ColumnBytes(sections);
  header.sections = static_cast<uint32_t>(sections.size());
  header.checksum = Hash64(list, Hash64(BytesOf(header)));
  if (lseek(descriptor_, 0, SEEK_SET) != 0) {
    return SystemError(errno, "cannot write the index", path_);
  }
  Status status = WriteAll(descriptor_, BytesOf(header), path_);
  return status.ok() ? WriteAll(descriptor_, list, path_) : status;
}

Status DatasetIndexWriter::Replace() {
  if (rename(part_.c_str(), path_.c_str()) == 0) return {};
  return SystemError(errno, "cannot replace the index", path_);
}

}  // namespace stoker
