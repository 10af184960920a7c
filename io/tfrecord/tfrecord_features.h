// TfRecordFeatures: the features of a tf.train.Example that make up a sample, and functions that
// extract them from a record's data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/field.h"
#include "io/tfrecord/tfrecord.h"

namespace stoker {

inline constexpr size_t kMostTfFeatures = 64;  // the image, the label and columns

struct TfRecordFeatures {
  std::vector<std::string> names;  // of the image, of the label if there is one, of the columns
  std::vector<Field> fields;       // of the same features
};

// Returns the features that `options` name. Their types are not known yet. InvalidArgument for
// invalid names.
Result<TfRecordFeatures> FeaturesOf(const TfRecordOptions& options);

// Sets the types and shapes of the fields to those of the features in `example`, a record's data.
// Errors without file and offset: InvalidArgument (a feature does not exist, or has a wrong type),
// Unimplemented (a column of several byte strings), DataLoss (not an Example).
Status SetTypes(std::span<const uint8_t> example, TfRecordFeatures& features);

// Finds the encoded image in `example`, and writes the rows of the other fields, one after the
// other, to `rows`, which has their size; strings are views of `example`. DataLoss, without file
// and offset, if a feature is missing, or of another type or number of values than SetTypes found.
Result<std::span<const uint8_t>> UnpackExample(std::span<const uint8_t> example,
                                               const TfRecordFeatures& features,
                                               std::span<uint8_t> rows);

}  // namespace stoker
