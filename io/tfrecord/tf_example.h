// Reads tf.train.Example, the message that TFRecord files usually hold: features by name, each a
// list of byte strings, of floats or of 64-bit integers.
//
// The bytes are untrusted: those that are not an Example are DataLoss, without file and offset, as
// are all errors. Memory is allocated only for errors and by FirstFeatures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// A view of a feature in the message, which must outlive it.
struct TfFeature {
  enum class Kind : uint8_t { kNone, kBytes, kFloats, kIntegers };

  std::string_view name;          // null if the feature does not exist
  Kind kind = Kind::kNone;        // kNone if the feature does not exist, or has no list
  std::span<const uint8_t> list;  // the encoded list
};

// Sets found[i] to the feature with names[i]; if there are several, the last one counts, as in
// protobuf. A feature whose list comes in several pieces, which protobuf would join, is an error:
// no known program writes such messages. Precondition: both spans have the same size.
Status FindFeatures(std::span<const uint8_t> example, std::span<const std::string> names,
                    std::span<TfFeature> found);

// Returns the first `most` features, in the message's order.
Result<std::vector<TfFeature>> FirstFeatures(std::span<const uint8_t> example, size_t most);

// Returns the number of values in a feature's list.
Result<uint64_t> CountValues(const TfFeature& feature);

// Returns the only value of a feature of bytes. Unimplemented, without advice, if there are
// several, or none.
Result<std::span<const uint8_t>> OnlyBytes(const TfFeature& feature);

// Returns all values of a feature of bytes.
Result<std::vector<std::string_view>> AllBytes(const TfFeature& feature);

// Copies the values of a feature of floats (float) or integers (int64_t). Unimplemented, without
// advice, if their size is not that of `rows`: features may have another number of values in each
// record.
Status CopyValues(const TfFeature& feature, std::span<uint8_t> rows);

// Returns "bytes", "float", "int64" or "no values".
const char* NameOf(TfFeature::Kind kind);

}  // namespace stoker
