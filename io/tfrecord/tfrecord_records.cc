#include "io/tfrecord/tfrecord_records.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/hash/crc32c.h"
#include "core/hash/hash.h"
#include "core/result/try.h"

namespace stoker {

namespace {

constexpr uint64_t kContentFactor = 0x9E3779B97F4A7C15;  // odd

uint64_t LengthIn(const uint8_t* header) {
  uint64_t length = 0;
  std::memcpy(&length, header, sizeof(length));
  return length;
}

uint32_t CrcAt(const uint8_t* at) {
  uint32_t crc = 0;
  std::memcpy(&crc, at, sizeof(crc));
  return crc;
}

bool HasSoundLength(const uint8_t* header) {
  return MaskedCrc({header, sizeof(uint64_t)}) == CrcAt(header + sizeof(uint64_t));
}

constexpr char kWriteAgain[] = "Write the file again, or leave it out";

// The name of a compression and the command that reverses it; both empty for other bytes.
struct Compression {
  const char* name = nullptr;
  const char* advice = "";
};

// `begin`: the first bytes of a file.
Compression CompressionOf(std::span<const uint8_t> begin) {
  if (begin.size() < 2) return {};
  const unsigned first = begin[0], second = begin[1];
  if (first == 0x1F && second == 0x8B) {
    return {"GZIP", "Decompress it, because samples are read at random: `gunzip < FILE > NEW`"};
  }
  if ((first & 15) == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0) {
    return {"ZLIB",
            "Decompress it, because samples are read at random: `python3 -c \"import sys, zlib; "
            "d = zlib.decompressobj(); [sys.stdout.buffer.write(d.decompress(b)) for b in "
            "iter(lambda: sys.stdin.buffer.read(1 << 20), b'')]\" < FILE > NEW`"};
  }
  return {};
}

// Reads from header to header.
class HeaderScan {
 public:
  HeaderScan(const InputFile& file, uint64_t bytes) : file_(file), bytes_(bytes) {}

  Result<TfRecords> Run() {
    TfRecords all;
    for (uint64_t at = 0; at < bytes_;) {
      ASSIGN_OR_RETURN(const uint64_t length, LengthAt(at));
      const uint64_t end = at + kTfRecordAround + length;
      ASSIGN_OR_RETURN(const auto footer, Bytes(end - kTfRecordFooter, kTfRecordFooter, length));
      all.content = JoinContent(all.content, ContentOf(length, CrcAt(footer.data())), 1);
      all.ends.push_back(end);
      at = end;
    }
    all.ends.shrink_to_fit();
    return all;
  }

 private:
  static constexpr size_t kWindow = 64 << 10;
  static constexpr uint64_t kSmall = 16 << 10;  // records that are read rather than skipped

  // Returns the length of the record at `at`, after checking that the record lies in the file.
  Result<uint64_t> LengthAt(uint64_t at) {
    const uint64_t rest = bytes_ - at;
    ASSIGN_OR_RETURN(const auto header, Bytes(at, std::min<uint64_t>(rest, kTfRecordHeader), 0));
    if (header.size() == kTfRecordHeader && HasSoundLength(header.data())) {
      const uint64_t length = LengthIn(header.data());
      if (rest >= kTfRecordAround && length <= rest - kTfRecordAround) return length;
      return CutOff(at, "a record of " + std::to_string(length) + " bytes");
    }
    if (at == 0) return NoTfRecord(header);
    if (header.size() < kTfRecordHeader) return CutOff(at, "a record's header");
    return Error{.code = Code::kDataLoss,
                 .cause = "the checksum of a record's length is wrong: the file is damaged",
                 .file = file_.path(),
                 .offset = at,
                 .advice = kWriteAgain};
  }

  // Returns bytes of the file, valid until the next call. `length` is that of their record.
  Result<std::span<const uint8_t>> Bytes(uint64_t at, size_t count, uint64_t length) {
    if (at < window_at_ || at + count > window_at_ + window_bytes_) {
      // The header of the next record, if not the record itself, is read with a footer.
      const size_t ahead = length < kSmall ? kWindow : kTfRecordAround;
      window_at_ = at;
      ASSIGN_OR_RETURN(window_bytes_, file_.ReadAt(at, std::span(window_).first(ahead)));
      if (window_bytes_ < count) return ShortenedError();
    }
    return std::span<const uint8_t>(window_).subspan(at - window_at_, count);
  }

  Error CutOff(uint64_t at, const std::string& what) const {
    return {.code = Code::kDataLoss,
            .cause = "the file is cut off: it ends at byte " + std::to_string(bytes_) +
                     ", within " + what + " that begins here",
            .file = file_.path(),
            .offset = at,
            .advice = kWriteAgain};
  }

  Error NoTfRecord(std::span<const uint8_t> begin) const {
    const Compression compression = CompressionOf(begin);
    if (compression.name != nullptr) {
      return {.code = Code::kUnimplemented,
              .cause = std::string("the file is compressed (") + compression.name +
                       "), or no TFRecord file",
              .file = file_.path(),
              .offset = 0,
              .advice = compression.advice};
    }
    return file_.OfUnknownKind(
        {.code = Code::kDataLoss,
         .cause = "this is not a TFRecord file, or it is damaged: the checksum of the first "
                  "record's length is wrong",
         .file = file_.path(),
         .offset = 0});
  }

  Error ShortenedError() const {
    return {.code = Code::kDataLoss,
            .cause = "the file became shorter while it was read",
            .file = file_.path(),
            .offset = window_at_ + window_bytes_};
  }

  const InputFile& file_;
  const uint64_t bytes_;
  std::vector<uint8_t> window_ = std::vector<uint8_t>(kWindow);  // the last bytes read
  uint64_t window_at_ = 0;                                       // where, in the file
  size_t window_bytes_ = 0;
};

}  // namespace

uint64_t JoinContent(uint64_t first, uint64_t then, uint64_t count) {
  uint64_t factor = 1, power = kContentFactor;
  for (; count != 0; count >>= 1, power *= power) {
    if ((count & 1) != 0) factor *= power;
  }
  return first * factor + then;
}

uint64_t ContentOf(uint64_t length, uint32_t masked_crc) {
  std::array<uint8_t, sizeof(length) + sizeof(masked_crc)> bytes{};
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + sizeof(length), &masked_crc, sizeof(masked_crc));
  return Hash64(bytes);
}

uint32_t MaskedCrc(std::span<const uint8_t> bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

Result<TfRecords> ReadTfRecords(const InputFile& file, FileStamp& stamp) {
  ASSIGN_OR_RETURN(stamp, file.Stamp());
  Result<TfRecords> records = HeaderScan(file, stamp.bytes).Run();
  ASSIGN_OR_RETURN(const FileStamp after, file.Stamp());
  if (!stamp.is_written(after)) return records;
  return Error{.code = Code::kDataLoss,
               .cause = "the file changed while it was read",
               .file = file.path(),
               .offset = 0,
               .advice = "Open it once it is complete"};
}

Result<std::span<const uint8_t>> DataOfTfRecord(std::span<const uint8_t> record) {
  if (record.size() < kTfRecordAround || !HasSoundLength(record.data()) ||
      LengthIn(record.data()) != record.size() - kTfRecordAround) {
    return Error{.code = Code::kDataLoss,
                 .cause = "no record of " + std::to_string(record.size()) +
                          " bytes is here: the file has changed since it was indexed"};
  }
  const auto data = record.subspan(kTfRecordHeader, record.size() - kTfRecordAround);
  if (MaskedCrc(data) == CrcAt(record.data() + kTfRecordHeader + data.size())) return data;
  return Error{.code = Code::kDataLoss,
               .cause = "the checksum of the record's data is wrong: the file is damaged",
               .advice = kWriteAgain};
}

}  // namespace stoker
