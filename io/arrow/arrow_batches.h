// ArrowBatches: reads the record batches of an Arrow IPC file, and the positions of their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "io/arrow/arrow_schema.h"
#include "io/arrow/flat_buffer.h"
#include "io/files/input_file.h"

namespace stoker {

struct ArrowNode {
  int64_t rows = 0;
  int64_t nulls = 0;
};

struct ArrowBuffer {
  int64_t offset = 0;  // in the file
  int64_t length = 0;
};

// One record batch. Its buffers are inside the file, and their number is the schema's.
struct ArrowBatch {
  uint64_t at = 0;  // of its message, in the file
  uint64_t rows = 0;
  std::vector<ArrowNode> nodes;
  std::vector<ArrowBuffer> buffers;
  std::vector<uint64_t> view_buffers;  // further buffers, by field with views
};

// Reads a file of either form: the stream, which Hugging Face's datasets and
// `pyarrow.ipc.new_stream` write, from front to back; and the file ("ARROW1") of
// `pyarrow.ipc.new_file`, Feather and polars, by the footer, which has the schema and the offsets
// of the record batches. Other parts of a file are not read, because not all writers put a message
// with the schema there. Only the messages of record batches are read, not the buffers.
//
// Errors name the file and the offset: DataLoss (it is not an Arrow file, is damaged or cut off: a
// stream without its end marker is), Unimplemented (compressed buffers, big-endian, older than
// Arrow 0.15), and those of reading.
class ArrowBatches {
 public:
  // Reads the schema. `file` must outlive this.
  static Result<ArrowBatches> Open(const InputFile& file, const FileStamp& stamp);

  const ArrowSchema& schema() const { return schema_; }
  bool has_union_validity() const { return has_union_validity_; }

  // Replaces `batch` by the next one; false at the end.
  Result<bool> Next(ArrowBatch& batch);

 private:
  ArrowBatches(const InputFile& file, uint64_t end) : file_(&file), end_(end) {}

  // A record batch of a file's footer: a message, and its buffers after it.
  struct Block {
    uint64_t at = 0, message_bytes = 0, body_bytes = 0;

    uint64_t end() const { return at + message_bytes + body_bytes; }
  };
  struct Message;

  Status OpenStream(std::span<const uint8_t> begin);
  Status OpenFile();
  Result<std::vector<uint8_t>> ReadFooter();
  Status TakeBlocks(const FlatVector& blocks, uint64_t footer);
  Status TakeSchema(FlatBuffer& buffer, int16_t version, const FlatTable& schema, uint64_t at);
  Result<bool> NextOfStream(ArrowBatch& batch);
  Result<bool> NextOfFile(ArrowBatch& batch);
  // Reads the message that begins at `at` and ends at `end` at the latest; the type of a stream's
  // end marker is 0. Metadata() is that of the last one. Precondition: at <= end <= end_.
  Result<Message> ReadMessage(uint64_t at, uint64_t end);
  Status ReadMetadata(uint64_t at, uint64_t end);
  std::span<const uint8_t> Metadata() const;
  // Whether the message is of the form that versions before 0.15 wrote, without a marker before its
  // length.
  Result<bool> IsOldMessage(uint64_t at) const;
  Result<bool> TakeBatch(const Message& message, ArrowBatch& batch) const;
  Status TakeBuffers(const Message& message, const FlatVector& buffers, ArrowBatch& batch) const;

  Error Damaged(uint64_t at, const std::string& cause) const;
  Error CutOff(uint64_t at, const std::string& what) const;
  Error PastEnd(uint64_t at, const std::string& what) const;
  Error TooOld(uint64_t at) const;
  Error NotArrow(std::span<const uint8_t> begin) const;

  const InputFile* file_;
  const uint64_t end_;                        // of the file
  uint64_t next_ = 0;                         // where a stream's next message begins
  std::optional<std::vector<Block>> blocks_;  // of a file's footer; nullopt means this is a stream
  size_t next_block_ = 0;
  ArrowSchema schema_;
  ArrowPosition counts_;  // of all fields
  bool has_union_validity_ = false;
  std::vector<uint8_t> metadata_;  // of the last message read, with its prefix
};

}  // namespace stoker
