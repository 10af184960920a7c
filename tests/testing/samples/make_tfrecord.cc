#include "tests/testing/samples/make_tfrecord.h"

#include <cstring>

#include "io/tfrecord/tfrecord_records.h"

namespace stoker::testing {

namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string WithCrc(std::string bytes) {
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  return bytes + LittleEndian(MaskedCrc({at, bytes.size()}));
}

// An entry of Features.feature. `kind`: the field of its list.
std::string FeatureOf(std::string_view name, unsigned kind, std::string_view list) {
  const std::string feature = LengthDelimited(kind, list);
  return LengthDelimited(1, LengthDelimited(1, name) + LengthDelimited(2, feature));
}

}  // namespace

std::string LengthDelimited(unsigned field, std::string_view content) {
  return Varint(field << 3 | 2) + Varint(content.size()) + std::string(content);
}

std::string TfRecordOf(std::string_view data) {
  return WithCrc(LittleEndian(uint64_t{data.size()})) + WithCrc(std::string(data));
}

std::string BytesFeature(std::string_view name, const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += LengthDelimited(1, value);
  return FeatureOf(name, 1, list);
}

std::string FloatFeature(std::string_view name, const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += LittleEndian(value);
  return FeatureOf(name, 2, LengthDelimited(1, packed));
}

std::string IntegerFeature(std::string_view name, const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += Varint(static_cast<uint64_t>(value));
  return FeatureOf(name, 3, LengthDelimited(1, packed));
}

std::string ExampleOf(std::string_view features) { return LengthDelimited(1, features); }

std::string ImageRecord(std::string_view image, int64_t label) {
  return TfRecordOf(ExampleOf(BytesFeature("image/encoded", {std::string(image)}) +
                              IntegerFeature("image/class/label", {label})));
}

}  // namespace stoker::testing
