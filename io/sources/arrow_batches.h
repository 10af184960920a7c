// ArrowBatches: the record batches of an Arrow IPC file, and where their buffers lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "io/sources/arrow_schema.h"
#include "io/sources/flat_buffer.h"
#include "io/sources/input_file.h"

namespace stoker {

struct ArrowNode {
  int64_t rows = 0;
  int64_t nulls = 0;
};

struct ArrowBuffer {
  int64_t offset = 0;  // in the file
  int64_t length = 0;
};

// Its buffers lie in the file. Their numbers are those that the schema says.
struct ArrowBatch {
  uint64_t at = 0;  // of its message, in the file
  uint64_t rows = 0;
  std::vector<ArrowNode> nodes;
  std::vector<ArrowBuffer> buffers;
  std::vector<uint64_t> view_buffers;  // further buffers, by field with views
};

// Reads a file of either form, from front to back: the stream, which Hugging Face's datasets and
// `pyarrow.ipc.new_stream` write, and the file ("ARROW1"), of `pyarrow.ipc.new_file` and Feather,
// which is a stream between a magic number and a footer. Only messages are read, not the buffers.
//
// Errors name the file and the offset: DataLoss (it is no Arrow file, is damaged or cut off: a
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

  struct Message;
  Status FindEnds();
  Status ReadFooter(uint64_t bytes);
  Status ReadSchema();
  // The message at next_, which moves behind it; its type is 0 at the end.
  Result<Message> ReadMessage();
  Status CheckEnd(uint64_t behind) const;
  Result<bool> TakeBatch(const Message& message, ArrowBatch& batch) const;
  Status TakeBuffers(const Message& message, const FlatVector& buffers, ArrowBatch& batch) const;

  Error Damaged(uint64_t at, const std::string& cause) const;
  Error CutOff(uint64_t at, const std::string& what) const;
  Error NoArrow(std::span<const uint8_t> begin) const;

  const InputFile* file_;
  uint64_t end_;  // of the messages
  uint64_t next_ = 0;
  bool is_file_ = false;              // rather than a stream
  std::optional<uint64_t> expected_;  // batches, as the footer says
  uint64_t batches_ = 0;              // that were read
  ArrowSchema schema_;
  ArrowPlace counts_;  // of all fields
  bool has_union_validity_ = false;
  std::vector<uint8_t> metadata_;  // of the message that was read last
};

}  // namespace stoker
