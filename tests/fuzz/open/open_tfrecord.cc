#include "tests/fuzz/open/open_tfrecord.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/files/input_file.h"
#include "io/shards/shard_index_file.h"
#include "io/tfrecord/tf_example.h"
#include "io/tfrecord/tfrecord_features.h"
#include "io/tfrecord/tfrecord_index_file.h"
#include "io/tfrecord/tfrecord_lists.h"
#include "io/tfrecord/tfrecord_objects.h"
#include "io/tfrecord/tfrecord_records.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

constexpr FileStamp kTfStamp{.bytes = 1 << 10, .modified_ns = 1};

void VisitRecords(const TfRecords& all, const FileStamp& stamp) {
  uint64_t begin = 0;
  for (const uint64_t end : all.ends) {
    Require(end >= begin + kTfRecordAround && end <= stamp.bytes, "records lie in the file");
    begin = end;
  }
  Require(begin == stamp.bytes, "records fill the file");
  const std::optional<TfRecords> again = UnpackTfRecordIndex(PackTfRecordIndex(all, stamp), stamp);
  Require(again && again->ends == all.ends && again->content == all.content,
          "an index gives records back");
}

bool LieIn(std::span<const uint8_t> part, std::span<const uint8_t> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Unpacks the Example with the features that it has itself.
void UnpackWithItsOwn(std::span<const uint8_t> example, const std::vector<TfFeature>& all) {
  TfRecordOptions options{.image = "", .label = ""};
  for (const TfFeature& feature : all) {
    const std::string name(feature.name);
    if (feature.kind == TfFeature::Kind::kBytes) options.image = name;
    if (feature.kind == TfFeature::Kind::kIntegers) options.label = name;
    if (feature.kind == TfFeature::Kind::kFloats) options.columns = {name};
  }
  Result<TfRecordFeatures> features = FeaturesOf(options);
  if (!features.ok() || !SetTypes(example, *features).ok()) return;
  std::vector<uint8_t> rows(LoadedBytes(features->fields));
  const auto image = UnpackExample(example, *features, rows);
  Require(!image.ok() || LieIn(*image, example), "the image lies in the Example");
}

void ParseFuzzedExample(std::span<const uint8_t> example) {
  const Result<std::vector<TfFeature>> all = FirstFeatures(example, 1000);
  if (!all.ok()) {
    Require(all.error().code == Code::kDataLoss, "what is no Example is DataLoss");
    return;
  }
  for (const TfFeature& feature : *all) {
    Require(LieIn(feature.list, example), "features lie in the Example");
    const Result<std::span<const uint8_t>> bytes = OnlyBytes(feature);
    Require(!bytes.ok() || LieIn(*bytes, example), "bytes lie in the Example");
    std::vector<uint8_t> row(8);  // of its exact size, for the address sanitizer
    (void)CopyValues(feature, row).ok();
    (void)CountValues(feature).ok();
  }
  UnpackWithItsOwn(example, *all);
}

// Reads the objects of records from lists of features.
void VisitLists(const TfRecordLists& lists, size_t records) {
  TfRecordObjects objects =
      TfRecordObjects::Make(ParseKeyedColumns("boxes,boxes,b\nlabels,object,l").value()).value();
  const std::vector<TfRecordLists> of_features(objects.features().size(), lists);
  for (size_t record = 0; record < records; ++record) {
    if (!objects.Add(of_features, record).ok()) return;
  }
  const Result<std::vector<ObjectValues>> values = objects.Take();
  if (!values.ok()) return;
  for (const ObjectValues& of : *values) {
    Require(of.samples() == records, "each record has its objects");
    Require(of.objects() == values->front().objects(), "columns have the same objects");
  }
}

// An index file of lists, regardless of its content.
void VisitListsIndex(std::span<const uint8_t> bytes) {
  constexpr size_t kRecords = 3;
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  (void)SignShardIndex(file, kTfStamp);
  const std::optional<TfRecordLists> lists = UnpackTfRecordLists(file, kTfStamp, kRecords);
  if (!lists) return;
  for (size_t record = 0; record < kRecords; ++record) {
    Require(LieIn((*lists)[record].list, lists->bytes), "lists lie in their bytes");
  }
  VisitLists(*lists, kRecords);
}

void OpenFuzzedRecords(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("tfrecord");
  const std::string& path = fuzzed.Write(bytes);
  FileStamp stamp;
  const Result<TfRecords> records = ReadTfRecords(InputFile::Open(path).value(), stamp);
  if (!records.ok()) {
    Require(records.error().file == path && records.error().offset.has_value(),
            "errors name file and offset");
    return;
  }
  VisitRecords(*records, stamp);
  const auto lists = ReadTfRecordLists(InputFile::Open(path).value(), records->ends, {"b/xmin"});
  if (lists.ok()) {
    VisitLists(lists->front(), records->ends.size());
    const auto again =
        UnpackTfRecordLists(PackTfRecordLists(lists->front(), stamp), stamp, records->ends.size());
    Require(again && again->bytes == lists->front().bytes, "an index gives lists back");
  } else {
    Require(lists.error().file == path && lists.error().offset.has_value(),
            "errors name file and offset");
  }
  uint64_t begin = 0;
  for (const uint64_t end : records->ends) {
    const auto data = DataOfTfRecord(bytes.subspan(begin, end - begin));
    if (data.ok()) ParseFuzzedExample(*data);
    begin = end;
  }
}

}  // namespace

void OpenFuzzedTfRecord(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("STKTFRIX")) {
    std::vector<uint8_t> file(bytes.begin(), bytes.end());
    (void)SignShardIndex(file, kTfStamp);
    const std::optional<TfRecords> records = UnpackTfRecordIndex(file, kTfStamp);
    if (records) VisitRecords(*records, kTfStamp);
    return;
  }
  if (text.starts_with("STKTFRLX")) return VisitListsIndex(bytes);
  OpenFuzzedRecords(bytes);
  (void)DataOfTfRecord(bytes).ok();
  ParseFuzzedExample(bytes);
}

}  // namespace stoker::testing
