#include "io/tfrecord/tf_example.h"

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker {

namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr auto kMessage = pbf_wire_type::length_delimited;

data_view ViewOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const uint8_t> BytesIn(data_view view) {
  return {reinterpret_cast<const uint8_t*>(view.data()), view.size()};
}

Error BadMessage(const std::string& what) {
  return {.code = Code::kDataLoss, .cause = "the record is not a tf.train.Example: " + what};
}

// Calls a function that reads a message: protozero throws if the bytes are not one.
template <typename Read>
Status CatchParseErrors(const Read& read) {
  try {
    return read();
  } catch (const protozero::exception& error) {
    return BadMessage(error.what());
  }
}

// Reads the Feature message into `feature`, which has no list yet.
Status ReadFeature(pbf_reader message, TfFeature& feature) {
  while (message.next()) {
    TfFeature::Kind kind = TfFeature::Kind::kNone;
    switch (message.tag_and_type()) {
      case tag_and_type(1, kMessage):
        kind = TfFeature::Kind::kBytes;
        break;
      case tag_and_type(2, kMessage):
        kind = TfFeature::Kind::kFloats;
        break;
      case tag_and_type(3, kMessage):
        kind = TfFeature::Kind::kIntegers;
        break;
      default:
        message.skip();
        continue;
    }
    if (feature.kind != TfFeature::Kind::kNone) return BadMessage("a feature has several lists");
    feature.kind = kind;
    feature.list = BytesIn(message.get_view());
  }
  return {};
}

// Calls `visit` with each feature.
template <typename Visit>
Status VisitFeatures(std::span<const uint8_t> example, const Visit& visit) {
  return CatchParseErrors([&]() -> Status {
    pbf_reader message(ViewOf(example));
    while (message.next(1, kMessage)) {  // Example.features
      pbf_reader features = message.get_message();
      while (features.next(1, kMessage)) {  // an entry of Features.feature
        pbf_reader entry = features.get_message();
        TfFeature feature;
        while (entry.next()) {
          if (entry.tag_and_type() == tag_and_type(1, kMessage)) {
            const data_view name = entry.get_view();
            feature.name = {name.data(), name.size()};
          } else if (entry.tag_and_type() == tag_and_type(2, kMessage)) {
            TRY(ReadFeature(entry.get_message(), feature));
          } else {
            entry.skip();
          }
        }
        visit(feature);
      }
    }
    return {};
  });
}

// Calls `take` with each value of a list, packed or not. Protobuf's writers pack them.
template <typename Take>
void ForEachBytes(std::span<const uint8_t> list, const Take& take) {
  pbf_reader message(ViewOf(list));
  while (message.next(1, kMessage)) take(BytesIn(message.get_view()));
}

// `Number`: the encoding of a list's numbers.
template <typename Number, typename Take>
void ForEach(std::span<const uint8_t> list, const Take& take) {
  pbf_reader message(ViewOf(list));
  while (message.next()) {
    switch (message.tag_and_type()) {
      case tag_and_type(1, kMessage):
        for (const auto value : Number::Packed(message)) take(value);
        break;
      case tag_and_type(1, Number::kType):
        take(Number::One(message));
        break;
      default:
        message.skip();
    }
  }
}

struct Float {
  static constexpr auto kType = pbf_wire_type::fixed32;
  static auto Packed(pbf_reader& message) { return message.get_packed_float(); }
  static float One(pbf_reader& message) { return message.get_float(); }
};

struct Integer {
  static constexpr auto kType = pbf_wire_type::varint;
  static auto Packed(pbf_reader& message) { return message.get_packed_int64(); }
  static int64_t One(pbf_reader& message) { return message.get_int64(); }
};

// Copies values one after the other as long as there is room, and counts all values.
class RowFiller {
 public:
  explicit RowFiller(std::span<uint8_t> rows) : rows_(rows) {}

  template <typename T>
  void operator()(T value) {
    if (bytes_ + sizeof(value) <= rows_.size()) {
      std::memcpy(rows_.data() + bytes_, &value, sizeof(value));
    }
    bytes_ += sizeof(value);
  }
  size_t bytes() const { return bytes_; }

 private:
  std::span<uint8_t> rows_;
  size_t bytes_ = 0;
};

Error WrongCount(const TfFeature& feature, const std::string& cause) {
  return {.code = Code::kUnimplemented,
          .cause = "feature '" + std::string(feature.name) + "' has " + cause};
}

}  // namespace

Status FindFeatures(std::span<const uint8_t> example, std::span<const std::string> names,
                    std::span<TfFeature> found) {
  for (TfFeature& feature : found) feature = {};
  return VisitFeatures(example, [&](const TfFeature& feature) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (feature.name == names[i]) found[i] = feature;
    }
  });
}

Result<std::vector<TfFeature>> FirstFeatures(std::span<const uint8_t> example, size_t most) {
  std::vector<TfFeature> first;
  TRY(VisitFeatures(example, [&](const TfFeature& feature) {
    if (first.size() < most) first.push_back(feature);
  }));
  return first;
}

Result<uint64_t> CountValues(const TfFeature& feature) {
  uint64_t count = 0;
  const auto one_more = [&count](auto /*value*/) { ++count; };
  TRY(CatchParseErrors([&]() -> Status {
    if (feature.kind == TfFeature::Kind::kBytes) ForEachBytes(feature.list, one_more);
    if (feature.kind == TfFeature::Kind::kFloats) ForEach<Float>(feature.list, one_more);
    if (feature.kind == TfFeature::Kind::kIntegers) ForEach<Integer>(feature.list, one_more);
    return {};
  }));
  return count;
}

Result<std::span<const uint8_t>> OnlyBytes(const TfFeature& feature) {
  std::span<const uint8_t> only;
  uint64_t count = 0;
  TRY(CatchParseErrors([&]() -> Status {
    ForEachBytes(feature.list, [&](std::span<const uint8_t> value) {
      only = value;
      ++count;
    });
    return {};
  }));
  if (count == 1) return only;
  return WrongCount(feature, std::to_string(count) + " byte strings; it must have one");
}

Result<std::vector<std::string_view>> AllBytes(const TfFeature& feature) {
  std::vector<std::string_view> all;
  TRY(CatchParseErrors([&]() -> Status {
    ForEachBytes(feature.list, [&all](std::span<const uint8_t> value) {
      all.emplace_back(reinterpret_cast<const char*>(value.data()), value.size());
    });
    return {};
  }));
  return all;
}

Status CopyValues(const TfFeature& feature, std::span<uint8_t> rows) {
  RowFiller fill(rows);
  const bool are_floats = feature.kind == TfFeature::Kind::kFloats;
  TRY(CatchParseErrors([&]() -> Status {
    const auto take = [&fill](auto value) { fill(value); };
    are_floats ? ForEach<Float>(feature.list, take) : ForEach<Integer>(feature.list, take);
    return {};
  }));
  if (fill.bytes() == rows.size()) return {};
  const size_t size = are_floats ? sizeof(float) : sizeof(int64_t);
  const size_t count = fill.bytes() / size;
  return WrongCount(feature, std::to_string(count) + Plural(count, " value", " values") + ", and " +
                                 std::to_string(rows.size() / size) + " in the first record");
}

const char* NameOf(TfFeature::Kind kind) {
  switch (kind) {
    case TfFeature::Kind::kNone:
      return "no values";
    case TfFeature::Kind::kBytes:
      return "bytes";
    case TfFeature::Kind::kFloats:
      return "float";
    case TfFeature::Kind::kIntegers:
      return "int64";
  }
  return "?";
}

}  // namespace stoker
