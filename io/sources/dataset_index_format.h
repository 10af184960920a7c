// The bytes of a dataset's index file, which dataset_index.cc reads and dataset_index_writer.cc
// writes. Numbers are little-endian. docs/jpeg.md, "Crop index", has them as a table.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace stoker::dataset_index {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> kMagic = {'S', 'T', 'K', 'I', 'N', 'D', 'E', 'X'};
inline constexpr uint32_t kVersion = 1;

struct Header {  // at the start of the file; `sections` of Section follow
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t sections = 0;
  uint64_t file_bytes = 0;
  uint64_t checksum = 0;  // Hash64 of this header, with 0 here, and of the sections' list behind it
};
static_assert(sizeof(Header) == 32);

// Others may follow: a reader passes over those that it does not know.
enum SectionKind : uint32_t {
  kSamples = 1,      // slots of a hash table: which sample's record is where
  kCropIndexes = 2,  // the records: crop indexes, each with a checksum of its own
};

struct Section {
  uint32_t kind = 0;
  uint32_t unused = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // Hash64; of kCropIndexes 0
};
static_assert(sizeof(Section) == 32);

// A sample lies in the first free slot from FirstSlot of its key on; behind the last slot comes the
// first one. There is a free one always. A reader looks at no more than
// kMostProbes slots: of a table that is a third free, and keys that are spread evenly, so many
// taken ones do not lie in a row.
inline constexpr uint64_t kMostProbes = 1024;

struct Slot {
  uint64_t key = 0;     // SampleKey
  uint64_t offset = 0;  // of the record, in its section
  uint64_t bytes = 0;   // 0: the slot is free
};
static_assert(sizeof(Slot) == 24);

// Precondition: slots > 0. Keys are spread evenly over all 64 bits.
inline uint64_t FirstSlot(uint64_t key, uint64_t slots) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{key} * slots >> 64);
}

}  // namespace stoker::dataset_index
