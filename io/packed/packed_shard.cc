#include "io/packed/packed_shard.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/hash/crc32c.h"
#include "core/hash/hash.h"
#include "core/result/try.h"
#include "io/packed/piece_fields.h"

namespace stoker {

using packed_set::Entry;
using packed_set::Sample;

namespace {

constexpr size_t kShardSections = 3;

bool IsIn(const sections::Section& records, const Entry& entry, uint32_t number) {
  const Sample& sample = entry.sample;
  const uint64_t length = sample.record_bytes();
  const uint64_t begin = sample.offset() - records.offset;
  return sample.shard() == number && sample.offset() >= records.offset && length <= records.bytes &&
         begin <= records.bytes - length && sample.IsSound() && entry.path_bytes != 0;
}

}  // namespace

bool IsPackedPath(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    if (path.empty() || path.front() == '/' || path.front() == '.') return false;
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool IsSoundRecord(std::span<const uint8_t> record) {
  const std::span<const uint8_t> image = record.first(record.size() - packed_set::kCrcBytes);
  uint32_t crc = 0;
  std::memcpy(&crc, record.data() + image.size(), sizeof(crc));
  return Crc32c(image) == crc;
}

Result<PackedShard> ReadPackedShard(const std::string& path, uint32_t number) {
  try {
    ASSIGN_OR_RETURN(const SectionFile file, SectionFile::Open(path, packed_set::kShardFile));
    TRY(file.Require({sections::kRecords, sections::kEntries, sections::kEntryPaths}));
    PackedShard shard{.number = number,
                      .shard = {.bytes = file.file_bytes(), .fingerprint = file.fingerprint()},
                      .fields = {},
                      .entries = {},
                      .paths = {}};
    TRY(ReadPieceFields(file, shard.fields));
    const sections::Section& records = file.At(sections::kRecords);
    uint64_t path_bytes = 0;
    const size_t pieces = shard.pieces();
    TRY(file.ReadColumn(
        sections::kEntries, shard.entries, [&](uint64_t n) { return n % pieces == 0; },
        [&](size_t begin) {
          for (size_t i = begin; i < shard.entries.size(); ++i) {
            const Entry& entry = shard.entries[i];
            if (!IsIn(records, entry, number) || entry.piece != i % pieces) return false;
            path_bytes += entry.path_bytes;
          }
          return true;
        }));
    std::string paths;
    TRY(file.ReadColumn(
        sections::kEntryPaths, paths, [&](uint64_t n) { return n == path_bytes; },
        [](size_t) { return true; }));
    std::string_view rest = paths;
    shard.paths.Reserve(shard.entries.size());
    for (const Entry& entry : shard.entries) {
      const std::string_view one = rest.substr(0, entry.path_bytes);
      if (!IsPackedPath(one)) return file.Damaged("a path");
      shard.paths.Add(one);
      rest.remove_prefix(one.size());
    }
    return shard;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the shard's entries", path};
  }
}

Result<PackedShardWriter> PackedShardWriter::Create(const std::string& path, uint32_t number,
                                                    std::vector<packed_set::PieceField> fields) {
  const size_t sections = kShardSections + (fields.empty() ? 0 : 1);
  ASSIGN_OR_RETURN(SectionFileWriter writer, SectionFileWriter::Create(path, sections));
  return PackedShardWriter(std::move(writer), number, std::move(fields));
}

Status PackedShardWriter::Add(Entry entry, std::string_view path, std::span<const uint8_t> image,
                              std::span<const uint8_t> file) {
  entry.sample.place = uint64_t{number_} << packed_set::kShardShift | writer_.written();
  entry.sample.bytes = static_cast<uint32_t>(image.size());
  entry.path_bytes = static_cast<uint32_t>(path.size());
  entry.piece = static_cast<uint32_t>(fields_.empty() ? 0 : entries_.size() % fields_.size());
  const uint32_t crc = Crc32c(image);
  static_assert(sizeof(crc) == packed_set::kCrcBytes);
  TRY(writer_.Write(image));
  TRY(writer_.Write(sections::BytesOf(crc)));
  TRY(writer_.Write(file));
  entries_.push_back(entry);
  paths_ += path;
  return {};
}

Status PackedShardWriter::Commit() {
  writer_.AddWritten(sections::kRecords);
  TRY(writer_.Add(sections::kEntries, sections::ColumnBytes(entries_)));
  TRY(writer_.Add(sections::kEntryPaths, sections::ColumnBytes(paths_)));
  const uint64_t fingerprint = Hash64(paths_, Hash64(sections::ColumnBytes(entries_)));
  if (!fields_.empty()) TRY(writer_.Add(sections::kPieceFields, sections::ColumnBytes(fields_)));
  const bool has_pngs =
      std::ranges::any_of(entries_, [](const Entry& e) { return e.sample.is_packed_png(); });
  const SectionFileKind kind =
      packed_set::OfVersion(packed_set::kShardFile, !fields_.empty(), has_pngs);
  ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t bytes, writer_.Commit(kind, fingerprint));
  return {};
}

}  // namespace stoker
