#include "io/arrow/arrow_batches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/result/try.h"

namespace stoker {

namespace {

constexpr std::string_view kFileMagic = "ARROW1";
constexpr uint64_t kFileBegin = 8;                    // the magic number, padded
constexpr size_t kFooterEnd = 4 + kFileMagic.size();  // the footer's length, the magic number
constexpr size_t kBlockBytes = 24;                    // of a record batch, in the footer
constexpr size_t kMessageBegin = 8;                   // a marker, and the metadata's length
constexpr uint32_t kMarker = 0xFFFFFFFF;
constexpr uint64_t kMostMetadata = 256 << 20;
constexpr size_t kReadAhead = 2048;  // bytes; most metadata is smaller

enum MessageType : uint8_t { kEnd = 0, kSchema = 1, kDictionaryBatch = 2, kRecordBatch = 3 };

constexpr char kUncompress[] =
    "Write it with compression=\"uncompressed\", an option of pyarrow.feather.write_feather and of "
    "polars' write_ipc, or by pyarrow.ipc without IpcWriteOptions(compression=…)";

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A kind of file that is not an Arrow file, and its first bytes.
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
  uint64_t body = 0;  // after its metadata
  uint64_t body_bytes = 0;
  uint8_t type = kEnd;
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

Error ArrowBatches::PastEnd(uint64_t at, const std::string& what) const {
  return blocks_ ? Damaged(at, what + " is longer than the footer says")
                 : CutOff(at, "it ends within " + what);
}

Error ArrowBatches::TooOld(uint64_t at) const {
  return {.code = Code::kUnimplemented,
          .cause = "the file has the form of Arrow before version 0.15",
          .file = file_->path(),
          .offset = at,
          .advice =
              "Write it again with a later version; of pyarrow without "
              "IpcWriteOptions(use_legacy_format=True)"};
}

Error ArrowBatches::NotArrow(std::span<const uint8_t> begin) const {
  Error error{.code = Code::kDataLoss,
              .cause =
                  "this is not an Arrow IPC file, or it is damaged: it begins neither with a "
                  "message nor with ARROW1",
              .file = file_->path(),
              .offset = 0};
  for (const OtherForm& other : kOtherForms) {
    if (!TextOf(begin).starts_with(other.begin)) continue;
    error.code = Code::kUnimplemented;
    error.cause = std::string("this is ") + other.name + ", not an Arrow IPC file";
    error.advice = other.advice;
  }
  return file_->OfUnknownKind(std::move(error));
}

Result<ArrowBatches> ArrowBatches::Open(const InputFile& file, const FileStamp& stamp) {
  ArrowBatches batches(file, stamp.bytes);
  std::array<uint8_t, kFileBegin> begin{};
  ASSIGN_OR_RETURN(const size_t got, file.ReadAt(0, begin));
  const auto first = std::span(begin).first(got);
  TRY(TextOf(first).starts_with(kFileMagic) ? batches.OpenFile() : batches.OpenStream(first));
  for (const ArrowField& field : batches.schema_.fields) {
    PassField(field, batches.has_union_validity_, batches.counts_);
  }
  return batches;
}

Status ArrowBatches::OpenStream(std::span<const uint8_t> begin) {
  uint32_t marker = 0;
  if (begin.size() >= sizeof(marker)) std::memcpy(&marker, begin.data(), sizeof(marker));
  if (begin.size() < kMessageBegin || marker != kMarker) {
    ASSIGN_OR_RETURN(const bool is_old, IsOldMessage(0));
    return is_old ? TooOld(0) : NotArrow(begin);
  }
  ASSIGN_OR_RETURN(const Message message, ReadMessage(0, end_));
  if (message.type != kSchema) return Damaged(0, "the first message is not a schema");
  next_ = message.body + message.body_bytes;
  FlatBuffer buffer{Metadata()};
  const FlatTable root = buffer.Root();
  return TakeSchema(buffer, root.Number<int16_t>(0), root.Table(2), 0);
}

Status ArrowBatches::OpenFile() {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> footer, ReadFooter());
  const uint64_t at = end_ - kFooterEnd - footer.size();
  FlatBuffer buffer{footer};
  const FlatTable root = buffer.Root();
  const FlatTable schema = root.Table(1);
  const FlatVector blocks = root.Vector(3, kBlockBytes);
  if (!buffer.sound() || !schema.present()) return Damaged(at, "the footer cannot be read");
  TRY(TakeSchema(buffer, root.Number<int16_t>(0), schema, at));
  return TakeBlocks(blocks, at);
}

// Returns the footer's bytes, which end before its length and the magic number.
Result<std::vector<uint8_t>> ArrowBatches::ReadFooter() {
  std::array<uint8_t, kFooterEnd> end{};
  int32_t length = 0;
  if (end_ >= kFileBegin + kFooterEnd) {
    ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(end_ - kFooterEnd, end));
    if (got != kFooterEnd) return CutOff(end_, "it became shorter while it was read");
  }
  if (!TextOf(end).ends_with(kFileMagic)) {
    return CutOff(end_, "it does not end with a footer and ARROW1");
  }
  std::memcpy(&length, end.data(), sizeof(length));
  const auto bytes = static_cast<uint64_t>(std::max(length, 0));
  if (bytes == 0 || bytes > kMostMetadata || bytes > end_ - kFooterEnd - kFileBegin) {
    return Damaged(end_ - kFooterEnd, "the footer's length is " + std::to_string(length));
  }
  std::vector<uint8_t> footer(bytes);
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(end_ - kFooterEnd - bytes, footer));
  if (got != bytes) return CutOff(end_, "it became shorter while it was read");
  return footer;
}

// Takes the footer's list of record batches. Each block lies before the footer, and all together
// have at most the file's bytes, so that rows take memory in proportion to the file even if blocks
// overlap.
Status ArrowBatches::TakeBlocks(const FlatVector& blocks, uint64_t footer) {
  struct StoredBlock {
    int64_t at;
    int32_t message_bytes, padding;
    int64_t body_bytes;
  };
  static_assert(sizeof(StoredBlock) == kBlockBytes);
  blocks_.emplace();
  uint64_t left = footer;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto given = blocks.At<StoredBlock>(i);
    const Block block{.at = static_cast<uint64_t>(given.at),
                      .message_bytes = static_cast<uint64_t>(given.message_bytes),
                      .body_bytes = static_cast<uint64_t>(given.body_bytes)};
    if (given.at < 0 || given.message_bytes < 0 || given.body_bytes < 0 || block.at > footer ||
        block.message_bytes > footer - block.at ||
        block.body_bytes > footer - block.at - block.message_bytes) {
      return Damaged(footer, "record batch " + std::to_string(i) + " of the footer lies outside");
    }
    const uint64_t bytes = block.message_bytes + block.body_bytes;
    if (bytes > left) return Damaged(footer, "record batches of the footer overlap");
    left -= bytes;
    blocks_->push_back(block);
  }
  return {};
}

Status ArrowBatches::TakeSchema(FlatBuffer& buffer, int16_t version, const FlatTable& schema,
                                uint64_t at) {
  constexpr int16_t kVersion4 = 3;
  if (version < kVersion4) return TooOld(at);
  has_union_validity_ = version == kVersion4;
  Result<ArrowSchema> parsed = ParseArrowSchema(buffer, schema);
  if (!parsed.ok()) {
    Error error = std::move(parsed).error();
    error.file = file_->path();
    error.offset = at;
    return error;
  }
  schema_ = *std::move(parsed);
  return {};
}

Result<bool> ArrowBatches::Next(ArrowBatch& batch) {
  return blocks_ ? NextOfFile(batch) : NextOfStream(batch);
}

Result<bool> ArrowBatches::NextOfFile(ArrowBatch& batch) {
  if (next_block_ == blocks_->size()) return false;
  const Block& block = (*blocks_)[next_block_++];
  ASSIGN_OR_RETURN(const Message message, ReadMessage(block.at, block.end()));
  if (message.type != kRecordBatch || message.body != block.at + block.message_bytes) {
    return Damaged(block.at, "the message here is not the record batch that the footer has");
  }
  return TakeBatch(message, batch);
}

Result<bool> ArrowBatches::NextOfStream(ArrowBatch& batch) {
  for (;;) {
    ASSIGN_OR_RETURN(const Message message, ReadMessage(next_, end_));
    next_ = message.body + message.body_bytes;
    if (message.type == kRecordBatch) return TakeBatch(message, batch);
    if (message.type == kDictionaryBatch) continue;
    if (message.type != kEnd) {
      return Damaged(message.at, message.type == kSchema
                                     ? "a second schema is here, as in files that were joined"
                                     : "a message of type " + std::to_string(message.type) +
                                           " is not a record batch");
    }
    if (next_ == end_) return false;
    return Damaged(next_, std::to_string(end_ - next_) +
                              " bytes are after the end of the stream, as in files that were "
                              "joined");
  }
}

Result<ArrowBatches::Message> ArrowBatches::ReadMessage(uint64_t at, uint64_t end) {
  TRY(ReadMetadata(at, end));
  Message message{.at = at, .body = at + metadata_.size()};
  if (metadata_.size() == kMessageBegin) return message;
  FlatBuffer buffer{Metadata()};
  const FlatTable root = buffer.Root();
  message.type = root.Number<uint8_t>(1);
  const auto body = root.Number<int64_t>(3);
  if (!buffer.sound() || message.type == kEnd || body < 0) {
    return Damaged(at, "a message's metadata cannot be read");
  }
  message.body_bytes = static_cast<uint64_t>(body);
  if (end - message.body >= message.body_bytes) return message;
  return PastEnd(at, "the message of " + std::to_string(body) + " bytes that begins here");
}

std::span<const uint8_t> ArrowBatches::Metadata() const {
  return std::span(metadata_).subspan(kMessageBegin);
}

Status ArrowBatches::ReadMetadata(uint64_t at, uint64_t end) {
  if (end - at < kMessageBegin) {
    return blocks_ ? PastEnd(at, "a message")
                   : CutOff(end_, "there is no end marker after the last message");
  }
  metadata_.resize(std::min<uint64_t>(kReadAhead, end - at));
  ASSIGN_OR_RETURN(const size_t got, file_->ReadAt(at, metadata_));
  uint32_t marker = 0, length = 0;
  if (got >= kMessageBegin) {
    std::memcpy(&marker, metadata_.data(), sizeof(marker));
    std::memcpy(&length, metadata_.data() + sizeof(marker), sizeof(length));
  }
  if (marker != kMarker) {
    ASSIGN_OR_RETURN(const bool is_old, IsOldMessage(at));
    return is_old ? TooOld(at) : Damaged(at, "no message is here");
  }
  if (length > kMostMetadata) {
    return Damaged(at, "a message has " + std::to_string(length) + " bytes of metadata");
  }
  if (end - at - kMessageBegin < length) return PastEnd(at, "the message that begins here");
  metadata_.resize(kMessageBegin + length);
  if (got >= metadata_.size()) return {};
  ASSIGN_OR_RETURN(const size_t all, file_->ReadAt(at, metadata_));
  return all == metadata_.size() ? Status() : CutOff(at, "it became shorter while it was read");
}

Result<bool> ArrowBatches::IsOldMessage(uint64_t at) const {
  std::array<uint8_t, sizeof(uint32_t)> begin{};
  uint32_t length = 0;
  if (end_ - at < begin.size()) return false;
  ASSIGN_OR_RETURN(size_t got, file_->ReadAt(at, begin));
  std::memcpy(&length, begin.data(), sizeof(length));
  if (length == 0 || length > kMostMetadata || length > end_ - at - begin.size()) return false;
  std::vector<uint8_t> metadata(length);
  ASSIGN_OR_RETURN(got, file_->ReadAt(at + begin.size(), metadata));
  FlatBuffer buffer{std::span(metadata).first(got)};
  const FlatTable root = buffer.Root();
  const auto type = root.Number<uint8_t>(1);
  const FlatTable header = root.Table(2);
  if (!buffer.sound() || !header.present()) return false;
  return at == 0 ? type == kSchema && ParseArrowSchema(buffer, header).ok() : type == kRecordBatch;
}

Result<bool> ArrowBatches::TakeBatch(const Message& message, ArrowBatch& batch) const {
  FlatBuffer buffer{Metadata()};
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
