#include "bindings/cli/pack/restore_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <utility>

#include "core/hash/crc32c.h"
#include "core/result/try.h"
#include "io/packed/packed_shard.h"
#include "transforms/mask/pack.h"
#include "transforms/packed/restore.h"
#include "transforms/png/packed/restore.h"

namespace stoker {

using packed_set::Form;

namespace {

// The largest record, plus the slack that its buffer may have.
constexpr uint64_t kMostBytes = packed_set::kMaxImageBytes + (uint64_t{64} << 20);

}  // namespace

std::string EqualPngs::Text() const {
  std::string why;
  if (count > other_zlib) {
    why = fmt::format("{} whose compression cannot be reproduced", count - other_zlib);
  }
  if (other_zlib > 0) {
    why += fmt::format("{}{} that came back to the byte with another version of zlib than {}",
                       why.empty() ? "" : ", ", other_zlib, zlibVersion());
  }
  return fmt::format(
      "equal only: {} (PNGs with the same pixels and metadata, compressed again: {})", count, why);
}

FileRestorer::FileRestorer(const SampleSource& source, const PackedIndex& index)
    : source_(source), index_(index), reads_(source), budget_(kMostBytes) {
  request_.buffer = GrowingBuffer(budget_);
}

Result<std::span<const uint8_t>> FileRestorer::Restore(uint64_t id, size_t piece) {
  Result<std::span<const uint8_t>> file = RestoreRecord(id, piece);
  if (file.ok()) return file;
  Error error = std::move(file).error();
  if (error.file.empty()) {
    error.file = request_.path;
    error.offset = request_.offset + error.offset.value_or(0);
  }
  return NamedError(source_, id, std::move(error), piece);
}

// Reads the file after a packed image.
Result<std::span<const uint8_t>> FileRestorer::ReadFile(const packed_set::Sample& sample) {
  reads_.Read({.file = sample.shard(),
               .offset = sample.offset() + sample.bytes + packed_set::kCrcBytes,
               .length = sample.file_bytes},
              request_);
  TRY(std::move(request_.status));
  return std::span<const uint8_t>(request_.buffer.data(), request_.size);
}

Result<std::span<const uint8_t>> FileRestorer::RestoreRecord(uint64_t id, size_t piece) {
  const packed_set::Sample& sample = index_.SampleOf(id, piece);
  reads_.Read(id, request_, piece);
  TRY(std::move(request_.status));
  const std::span<const uint8_t> record(request_.buffer.data(), request_.size);
  ASSIGN_OR_RETURN(std::span<const uint8_t> file, source_.UnpackPiece(id, piece, record));
  if (!IsSoundRecord(record)) {
    return Error{.code = Code::kDataLoss,
                 .cause = "the record is damaged: its checksum is wrong",
                 .advice = packed_set::kShardFile.remake};
  }
  equal_ = {};
  if (sample.form == Form::kPackedJpeg) {
    ASSIGN_OR_RETURN(file_, RestoreJpeg(file));
    file = file_;
  } else if (sample.form == Form::kPackedPng || sample.form == Form::kEqualPng) {
    ASSIGN_OR_RETURN(RestoredPng png, RestorePng(file));
    file_ = std::move(png.bytes);
    // It was compared when it was packed, and the record is sound: zlib compresses otherwise now.
    const bool is_exact = sample.form == Form::kPackedPng && file_.size() == sample.file_bytes &&
                          Crc32c(file_) == sample.file_crc;
    if (!is_exact) equal_ = {.count = 1, .other_zlib = sample.form == Form::kPackedPng ? 1U : 0U};
    return std::span<const uint8_t>(file_);
  } else if (sample.has_file()) {
    file_.assign(file.begin(), file.end());
    file_.resize(file.size() + kBufferPadding);
    ASSIGN_OR_RETURN(file, ReadFile(sample));
    if (Crc32c(file) == sample.file_crc) {
      const std::span<const uint8_t> packed = std::span(file_).first(sample.bytes);
      TRY(sample.form == Form::kPackedMask ? CompareMasks(file, packed)
                                           : ComparePngs(file, packed));
    }
  } else if (sample.form != Form::kFile) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "it is stored in a form that this stoker does not know",
                 .advice = "Use a newer version"};
  }
  if (file.size() != sample.file_bytes || Crc32c(file) != sample.file_crc) {
    return Error{.code = Code::kDataLoss,
                 .cause = "checksum mismatch: this is not the file that was packed",
                 .advice = packed_set::kShardFile.remake};
  }
  return file;
}

}  // namespace stoker
