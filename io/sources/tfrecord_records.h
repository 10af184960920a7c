// TfRecords: where the records of a TFRecord file lie.
//
// A record is its data's length (8 bytes, little-endian), the length's checksum (4 bytes), the
// data, and the data's checksum (4 bytes). Records follow each other without gaps. Checksums are
// CRC-32C, masked, because data may have checksums of its own in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/input_file.h"

namespace stoker {

inline constexpr size_t kTfRecordHeader = 12;  // bytes before the data
inline constexpr size_t kTfRecordFooter = 4;   // bytes behind it
inline constexpr size_t kTfRecordAround = kTfRecordHeader + kTfRecordFooter;

struct TfRecords {
  std::vector<uint64_t> ends;  // of each record, in the file; it begins where the previous one ends
  uint64_t content = 0;        // ContentOf them: a hash of all lengths and checksums

  uint64_t memory_bytes() const { return ends.capacity() * sizeof(uint64_t); }
};

// The content of records that have the content `first`, followed by `count` records that have the
// content `then`. That of none is 0, so the sum does not depend on the division into files.
uint64_t JoinContent(uint64_t first, uint64_t then, uint64_t count);
// The content of one record.
uint64_t ContentOf(uint64_t length, uint32_t masked_crc);

// The masked checksum that a record has for these bytes.
uint32_t MaskedCrc(std::span<const uint8_t> bytes);

// Reads the headers of all records, and checks lengths. The data is skipped, so that its checksums
// are not checked. `stamp` is set to the file's state at that time.
//
// Errors name the file and the offset:
// - DataLoss: it is no TFRecord file, is damaged or cut off, or changes while it is read;
// - Unimplemented: it is compressed (GZIP, ZLIB), with how to decompress it;
// - those of reading the file.
Result<TfRecords> ReadTfRecords(const InputFile& file, FileStamp& stamp);

// The data in a record, which `record` is all of: DataLoss, without file and offset, if its length
// or a checksum is wrong.
Result<std::span<const uint8_t>> DataOfTfRecord(std::span<const uint8_t> record);

}  // namespace stoker
