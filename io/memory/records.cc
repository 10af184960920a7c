#include "io/memory/records.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "core/memory/mapping.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/files/input_file.h"
#include "io/files/lfs_pointer.h"
#include "io/memory/memory_columns.h"
#include "io/memory/memory_source.h"

namespace stoker {
namespace {

constexpr size_t kMaxFields = 1000;  // each below 2^42 bytes, so that their sum cannot overflow

// Returns the bytes of a record, or why a record cannot be like this.
Result<uint64_t> SizeOfRecord(std::span<const Field> record) {
  if (record.empty() || record.size() > kMaxFields) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "a record of " + std::to_string(record.size()) + " fields",
                 .advice = "Give 1 to " + std::to_string(kMaxFields)};
  }
  uint64_t bytes = 0;
  for (const Field& field : record) {
    TRY(CheckRow({.name = field.name, .dtype = field.dtype, .row_shape = field.row_shape}));
    bytes += field.row_bytes();
  }
  return bytes;
}

Error Cut(const InputFile& file, uint64_t offset, std::string cause) {
  return {.code = Code::kDataLoss,
          .cause = std::move(cause),
          .file = file.path(),
          .offset = offset,
          .advice = "Check dtype, shape and offset, or re-create the file"};
}

// Returns the bytes of a file's records.
Result<uint64_t> BytesOfRecords(const InputFile& file, uint64_t record_bytes, uint64_t offset) {
  ASSIGN_OR_RETURN(const FileStamp stamp, file.Stamp());
  // A Git LFS pointer could pass for records: of one byte, for example. Its specification says that
  // it is shorter than this.
  if (stamp.bytes < 1024) TRY(RefuseLfsPointer(file));
  if (stamp.bytes <= offset) return Cut(file, stamp.bytes, "the file has no records");
  const uint64_t bytes = stamp.bytes - offset, rest = bytes % record_bytes;
  if (rest == 0) return bytes;
  return Cut(file, stamp.bytes - rest,
             "the last record has " + std::to_string(rest) + Plural(rest, " byte", " bytes") +
                 " of " + std::to_string(record_bytes));
}

Error TooLarge(const std::string& path, uint64_t limit) {
  return {.code = Code::kResourceExhausted,
          .cause = "the records take more than " + std::to_string(limit >> 20) +
                   " MiB, half of the memory that is available to this process",
          .file = path,
          .advice = "Map the files with numpy.memmap, and give the arrays to stoker.arrays"};
}

// Reads the records of all files, one after the other.
class RecordFiles {
 public:
  RecordFiles(const std::vector<std::string>& paths, uint64_t record_bytes, uint64_t offset)
      : paths_(paths), record_bytes_(record_bytes), offset_(offset) {}

  // Sums up the files' sizes. Closes each file again, because there may be many.
  Result<uint64_t> Measure() {
    const uint64_t limit = AvailableMemory() / 2 / static_cast<uint64_t>(RanksHere());
    uint64_t total = 0;
    for (const std::string& path : paths_) {
      ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
      ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfRecords(file, record_bytes_, offset_));
      if (bytes > limit - total) return TooLarge(path, limit);
      total += bytes;
      bytes_.push_back(bytes);
    }
    return total;
  }

  // Precondition: `to` has the size that Measure returned.
  Status Read(std::span<uint8_t> to) const {
    for (size_t i = 0; i < paths_.size(); ++i) {
      ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(paths_[i]));
      ASSIGN_OR_RETURN(const uint64_t got, file.ReadAt(offset_, to.first(bytes_[i])));
      if (got != bytes_[i]) return Cut(file, offset_ + got, "the file was cut while it was read");
      to = to.subspan(bytes_[i]);
    }
    return {};
  }

 private:
  const std::vector<std::string>& paths_;
  const uint64_t record_bytes_;
  const uint64_t offset_;
  std::vector<uint64_t> bytes_;  // by path
};

// Returns the fields as columns of `memory`, in the order of a batch.
std::vector<ArrayColumn> ColumnsOf(std::span<const Field> record, const uint8_t* memory,
                                   uint64_t record_bytes, uint64_t samples) {
  std::vector<ArrayColumn> columns;
  for (const Field& field : record) {
    columns.push_back({.name = field.name,
                       .dtype = field.dtype,
                       .row_shape = field.row_shape,
                       .data = memory,
                       .samples = samples,
                       .row_stride = static_cast<int64_t>(record_bytes)});
    memory += field.row_bytes();
  }
  const auto image = std::ranges::find(columns, "image", &ArrayColumn::name);
  if (image != columns.end()) std::rotate(columns.begin(), image, image + 1);
  return columns;
}

std::optional<size_t> LabelAmong(std::span<const ArrayColumn> columns) {
  const auto label = std::ranges::find(columns, "label", &ArrayColumn::name);
  if (label == columns.end()) return std::nullopt;
  return static_cast<size_t>(label - columns.begin());
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Records(const std::vector<std::string>& paths,
                                                    std::vector<Field> record, uint64_t offset) {
  if (paths.empty()) return Error{.code = Code::kInvalidArgument, .cause = "no files were given"};
  ASSIGN_OR_RETURN(const uint64_t record_bytes, SizeOfRecord(record));
  RecordFiles files(paths, record_bytes, offset);
  ASSIGN_OR_RETURN(const uint64_t bytes, files.Measure());
  ASSIGN_OR_RETURN(Mapping mapping, Mapping::Map(bytes, /*huge_pages=*/true));
  const auto memory = std::make_shared<Mapping>(std::move(mapping));
  TRY(files.Read({memory->data(), bytes}));

  std::vector<ArrayColumn> columns =
      ColumnsOf(record, memory->data(), record_bytes, bytes / record_bytes);
  MemorySourceOptions options{
      .kind = "records", .label = LabelAmong(columns), .owned_bytes = memory->size()};
  ASSIGN_OR_RETURN(MemoryColumns made, MemoryColumns::Make(std::move(columns), memory));
  return MakeMemorySource(std::move(made), std::move(options));
}

}  // namespace stoker
