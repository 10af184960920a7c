// TfRecords: the byte ranges of the records of a TFRecord file.
//
// A record consists of its data's length (8 bytes, little-endian), the length's checksum (4 bytes),
// the data, and the data's checksum (4 bytes). Records follow each other without gaps. Checksums
// are CRC-32C, masked, because data may contain checksums itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/files/input_file.h"

namespace stoker {

inline constexpr size_t kTfRecordHeader = 12;  // bytes before the data
inline constexpr size_t kTfRecordFooter = 4;   // bytes after it
inline constexpr size_t kTfRecordAround = kTfRecordHeader + kTfRecordFooter;

struct TfRecords {
  std::vector<uint64_t> ends;  // of each record, in the file; it begins where the previous one ends
  uint64_t content = 0;        // the content hash of all lengths and checksums (ContentOf)

  uint64_t memory_bytes() const { return ends.capacity() * sizeof(uint64_t); }
};

// Returns the content hash of records with the hash `first`, followed by `count` records with the
// hash `then`. The hash of no records is 0, and the result does not depend on the division into
// files.
uint64_t JoinContent(uint64_t first, uint64_t then, uint64_t count);
// Returns the content hash of one record.
uint64_t ContentOf(uint64_t length, uint32_t masked_crc);

// Returns the masked checksum that a record has for these bytes.
uint32_t MaskedCrc(std::span<const uint8_t> bytes);

// Reads the headers of all records, and checks lengths. The data is skipped, so that its checksums
// are not checked. `stamp` is set to the file's state at that time.
//
// Errors name the file and the offset:
// - DataLoss: it is not a TFRecord file, is damaged or cut off, or changes while it is read;
// - Unimplemented: it is compressed (GZIP, ZLIB), with how to decompress it;
// - those of reading the file.
Result<TfRecords> ReadTfRecords(const InputFile& file, FileStamp& stamp);

// Returns the data in `record`, the bytes of a whole record. DataLoss, without file and offset, if
// its length or a checksum is wrong.
Result<std::span<const uint8_t>> DataOfTfRecord(std::span<const uint8_t> record);

}  // namespace stoker
