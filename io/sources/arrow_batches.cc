#include "io/sources/arrow_batches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/try.h"

namespace stoker {

namespace {

constexpr std::string_view kFileMagic = "ARROW1";
constexpr uint64_t kFileBegin = 8;                    // the magic number, padded
constexpr size_t kFooterEnd = 4 + kFileMagic.size();  // the footer's length, the magic number
constexpr size_t kMessageBegin = 8;                   // a marker, and the metadata's length
constexpr uint32_t kMarker = 0xFFFFFFFF;
constexpr uint64_t kMostMetadata = 256 << 20;
constexpr size_t kReadAhead = 2048;  // bytes, of which most metadata has fewer

enum MessageType : uint8_t { kEnd = 0, kSchema = 1, kDictionaryBatch = 2, kRecordBatch = 3 };

constexpr char kUncompress[] =
    "Write it uncompressed: pyarrow.feather.write_feather(…, compression=\"uncompressed\"), or "
    "pyarrow.ipc without IpcWriteOptions(compression=…)";

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a file is that is no Arrow file, by its first bytes.
struct OtherForm {
  std::string_view begin;
  const char* name;
  const char* advice;
};
constexpr std::array kOtherForms = {
    OtherForm{"PAR1", "a Parquet file", "Read it from Python, by stoker.parquet"},
    OtherForm{"FEA1", "a Feather file of version 1",
              "Write it as version 2: pyarrow.feather.write_feather(pyarrow.feather.read_table("
              "FILE), NEW, compression=\"uncompressed\")"},
    OtherForm{"\x1f\x8b", "compressed (GZIP)", "Decompress it: `gunzip < FILE > NEW`"},
    OtherForm{"\x28\xb5\x2f\xfd", "compressed (Zstandard)", "Decompress it: `unzstd FILE -o NEW`"},
};

}  // namespace

struct ArrowBatches::Message {
  uint64_t at = 0;    // in the file
  uint64_t body = 0;  // behind its metadata
  uint64_t body_bytes = 0;
  uint8_t type = kEnd;
  size_t metadata_begin = 0, metadata_bytes = 0;  // in metadata_
};

Error ArrowBatches::Damaged(uint64_t at, const std::string& cause) const {
  return {.code = Code::kDataLoss,
          .cause = cause + ": the file is damaged",
          .file = file_->path(),
          .offset = at,
          .advice = "Write the file again, or leave it out"};
}

Error ArrowBatches::CutOff(uint64_t at, const std::string& what) const {
  return {.code = Code::kDataLoss,
          .cause = "the file is cut off: " + what,
          .file = file_->path(),
          .offset = at,
          .advice = "Write the file again, or leave it out"};
}

Error ArrowBatches::NoArrow(std::span<const uint8_t> begin) const {
  Error error{.code = Code::kDataLoss,
              .cause =
                  "this is no Arrow IPC file, or it is damaged: it begins neither with a "
                  "message nor with ARROW1",
              .file = file_->path(),
              .offset = 0};
  for (const OtherForm& other : kOtherForms) {
    if (!TextOf(begin).starts_with(other.begin)) continue;
    error.code = Code::kUnimplemented;
    error.cause = std::string("this is ") + other.name + ", no Arrow IPC file";
    error.advice = other.advice;
  }
  return error;
}

Result<ArrowBatches> ArrowBatches::Open(const InputFile& file, const FileStamp& stamp) {
  ArrowBatches batches(file, stamp.bytes);
  TRY(batches.FindEnds());
  TRY(batches.ReadSchema());
  return batches;
}

// Decides which form the file has, and where its messages begin and end.
Status ArrowBatches::FindEnds() {
  std::array<uint8_t, kFileBegin> begin{};
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(0, begin));
  const auto first = std::span(begin).first(got);
  is_file_ = TextOf(first).starts_with(kFileMagic);
  if (is_file_) return ReadFooter(end_);
  uint32_t marker = 0;
  if (got >= sizeof(marker)) std::memcpy(&marker, begin.data(), sizeof(marker));
  return got == kFileBegin && marker == kMarker ? Status() : NoArrow(first);
}

Status ArrowBatches::ReadFooter(uint64_t bytes) {
  std::array<uint8_t, kFooterEnd> end{};
  int32_t length = 0;
  if (bytes >= kFileBegin + kFooterEnd) {
    ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(bytes - kFooterEnd, end));
    if (got != kFooterEnd) return CutOff(bytes, "it became shorter while it was read");
  }
  if (!TextOf(end).ends_with(kFileMagic)) {
    return CutOff(bytes, "it does not end with a footer and ARROW1");
  }
  std::memcpy(&length, end.data(), sizeof(length));
  const uint64_t at = bytes - kFooterEnd - static_cast<uint64_t>(std::max(length, 0));
  if (length <= 0 || bytes - kFooterEnd - kFileBegin < static_cast<uint64_t>(length)) {
    return Damaged(bytes - kFooterEnd, "the footer's length is " + std::to_string(length));
  }
  std::vector<uint8_t> footer(static_cast<size_t>(length));
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(at, footer));
  FlatBuffer buffer{std::span(footer).first(got)};
  constexpr size_t kBlockBytes = 24;
  expected_ = buffer.Root().Vector(3, kBlockBytes).size();
  if (!buffer.sound()) return Damaged(at, "the footer cannot be read");
  end_ = at;
  next_ = kFileBegin;
  return {};
}

Status ArrowBatches::ReadSchema() {
  const uint64_t at = next_;
  ASSIGN_OR_RETURN(const Message message, ReadMessage());
  if (message.type != kSchema) return Damaged(at, "the first message is no schema");
  FlatBuffer buffer{std::span(metadata_).subspan(message.metadata_begin, message.metadata_bytes)};
  const FlatTable root = buffer.Root();
  constexpr int16_t kVersion4 = 3;
  const auto version = root.Number<int16_t>(0);
  if (version < kVersion4) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the file was written by a version of Arrow before 0.15",
                 .file = file_->path(),
                 .offset = at,
                 .advice = "Write it again with a later version"};
  }
  has_union_validity_ = version == kVersion4;
  Result<ArrowSchema> schema = ParseArrowSchema(buffer, root.Table(2));
  if (!schema.ok()) {
    Error error = std::move(schema).error();
    error.file = file_->path();
    error.offset = at;
    return error;
  }
  schema_ = *std::move(schema);
  for (const ArrowField& field : schema_.fields) PassField(field, has_union_validity_, counts_);
  return {};
}

Result<bool> ArrowBatches::Next(ArrowBatch& batch) {
  for (;;) {
    ASSIGN_OR_RETURN(const Message message, ReadMessage());
    if (message.type == kEnd) return false;
    if (message.type == kDictionaryBatch) continue;
    if (message.type == kRecordBatch) {
      ++batches_;
      return TakeBatch(message, batch);
    }
    return Damaged(message.at, message.type == kSchema
                                   ? "a second schema is here, as in files that were joined"
                                   : "a message of type " + std::to_string(message.type) +
                                         " is no record batch");
  }
}

Result<ArrowBatches::Message> ArrowBatches::ReadMessage() {
  Message message{.at = next_};
  if (next_ == end_ && is_file_)
    return CheckEnd(next_).ok() ? message : Result<Message>(CheckEnd(next_).error());
  if (end_ - next_ < kMessageBegin) {
    return CutOff(end_, "there is no marker of its end behind the last message");
  }
  metadata_.resize(std::min<uint64_t>(kReadAhead, end_ - next_));
  ASSIGN_OR_RETURN(size_t got, file_->ReadAt(next_, metadata_));
  uint32_t marker = 0, length = 0;
  if (got >= kMessageBegin) {
    std::memcpy(&marker, metadata_.data(), sizeof(marker));
    std::memcpy(&length, metadata_.data() + sizeof(marker), sizeof(length));
  }
  if (marker != kMarker) return Damaged(next_, "no message is here");
  const uint64_t behind = next_ + kMessageBegin;
  if (length == 0) {
    TRY(CheckEnd(behind));
    return message;
  }
  if (length > kMostMetadata) {
    return Damaged(next_, "a message has " + std::to_string(length) + " bytes of metadata");
  }
  if (end_ - behind < length) return CutOff(next_, "it ends within the message that begins here");
  if (got < kMessageBegin + length) {
    metadata_.resize(kMessageBegin + length);
    ASSIGN_OR_RETURN(got, file_->ReadAt(next_, metadata_));
    if (got < metadata_.size()) return CutOff(next_, "it became shorter while it was read");
  }
  message.metadata_begin = kMessageBegin;
  message.metadata_bytes = length;
  message.body = behind + length;
  FlatBuffer buffer{std::span(metadata_).subspan(kMessageBegin, length)};
  const FlatTable root = buffer.Root();
  message.type = root.Number<uint8_t>(1);
  const auto body = root.Number<int64_t>(3);
  if (!buffer.sound() || message.type == kEnd || body < 0) {
    return Damaged(next_, "a message's metadata cannot be read");
  }
  message.body_bytes = static_cast<uint64_t>(body);
  if (end_ - message.body < message.body_bytes) {
    return CutOff(
        next_, "it ends within the message of " + std::to_string(body) + " bytes that begins here");
  }
  next_ = message.body + message.body_bytes;
  return message;
}

// `behind`: where the messages ended.
Status ArrowBatches::CheckEnd(uint64_t behind) const {
  if (expected_ && *expected_ != batches_) {
    return Damaged(behind, "the footer has " + std::to_string(*expected_) +
                               " record batches, and the file " + std::to_string(batches_));
  }
  if (is_file_ || behind == end_) return {};
  return Damaged(behind, std::to_string(end_ - behind) +
                             " bytes are behind the end of the stream, as in files that were "
                             "joined");
}

Result<bool> ArrowBatches::TakeBatch(const Message& message, ArrowBatch& batch) const {
  FlatBuffer buffer{std::span(metadata_).subspan(message.metadata_begin, message.metadata_bytes)};
  const FlatTable header = buffer.Root().Table(2);
  const auto rows = header.Number<int64_t>(0);
  const FlatVector nodes = header.Vector(1, sizeof(ArrowNode));
  const FlatVector buffers = header.Vector(2, sizeof(ArrowBuffer));
  const FlatVector views = header.Vector(4, sizeof(int64_t));
  if (header.Table(3).present()) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the file's buffers are compressed",
                 .file = file_->path(),
                 .offset = message.at,
                 .advice = kUncompress};
  }
  uint64_t further = 0;
  batch.view_buffers.clear();
  for (size_t i = 0; i < views.size() && further <= buffers.size(); ++i) {
    batch.view_buffers.push_back(static_cast<uint64_t>(views.At<int64_t>(i)));
    further += std::min<uint64_t>(batch.view_buffers.back(), uint64_t{1} << 32);
  }
  if (!buffer.sound() || rows < 0 || nodes.size() != counts_.nodes ||
      views.size() != counts_.views || buffers.size() != counts_.buffers + further) {
    return Damaged(message.at, "a record batch does not have the columns of the schema");
  }
  batch.at = message.at;
  batch.rows = static_cast<uint64_t>(rows);
  batch.nodes.clear();
  for (size_t i = 0; i < nodes.size(); ++i) batch.nodes.push_back(nodes.At<ArrowNode>(i));
  TRY(TakeBuffers(message, buffers, batch));
  return true;
}

Status ArrowBatches::TakeBuffers(const Message& message, const FlatVector& buffers,
                                 ArrowBatch& batch) const {
  batch.buffers.clear();
  const auto bytes = static_cast<int64_t>(message.body_bytes);
  for (size_t i = 0; i < buffers.size(); ++i) {
    auto buffer = buffers.At<ArrowBuffer>(i);
    if (buffer.offset < 0 || buffer.length < 0 || buffer.offset > bytes ||
        buffer.length > bytes - buffer.offset) {
      return Damaged(message.at, "buffer " + std::to_string(i) + " of a record batch lies outside");
    }
    buffer.offset += static_cast<int64_t>(message.body);
    batch.buffers.push_back(buffer);
  }
  return {};
}

}  // namespace stoker
