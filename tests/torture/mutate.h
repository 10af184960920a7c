// Photographs with damage: what disks, transfers and tools do to files, and what an attacker does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/numbers/random.h"
#include "tests/torture/photo_forms.h"

namespace stoker::testing {

enum class MutationKind : uint8_t {
  kBits,        // flipped
  kBytes,       // set
  kRemoved,     // a range
  kRepeated,    // a range, after itself
  kTruncated,   // the end is missing
  kSpliced,     // the beginning of one photograph and the end of another
  kParts,       // segments or chunks removed, repeated, exchanged
  kNames,       // of parts: markers, chunk types
  kLengths,     // of parts
  kDimensions,  // in the header
  kHeader,      // sampling factors, components, scans, colour types, flags
  kTables,      // data of parts from another photograph, or changed in place
  kMetadata,    // EXIF, ICC profiles, comments: added, large, wrong
  kSeveral,     // two to five of the others
};
inline constexpr int kMutationKinds = 14;

const char* NameOf(MutationKind kind);

struct Mutation {
  MutationKind kind{};
  PhotoForm form{};
  std::vector<uint8_t> bytes;  // at least one
};

// Mutation `number` of `photos`, JPEGs without damage: a function of these, the seed and the
// number. Each kind comes every kMutationKinds numbers.
Mutation Mutate(const std::vector<std::filesystem::path>& photos, uint64_t seed, uint64_t number);

}  // namespace stoker::testing
