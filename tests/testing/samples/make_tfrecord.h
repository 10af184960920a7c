// TFRecord files for tests, sound and unsound, record by record.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::testing {

// A record with the checksums of its length and data.
std::string TfRecordOf(std::string_view data);

// Returns features of a tf.train.Example, packed as protobuf's writers do. Several are
// concatenated.
std::string BytesFeature(std::string_view name, const std::vector<std::string>& values);
std::string FloatFeature(std::string_view name, const std::vector<float>& values);
std::string IntegerFeature(std::string_view name, const std::vector<int64_t>& values);

// A field of a protobuf message that has a length.
std::string LengthDelimited(unsigned field, std::string_view content);

// A tf.train.Example.
std::string ExampleOf(std::string_view features);

// A record of an Example with the usual features of an image and a label.
std::string ImageRecord(std::string_view image, int64_t label);

}  // namespace stoker::testing
