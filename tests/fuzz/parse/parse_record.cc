#include "tests/fuzz/parse/parse_record.h"

#include <string>
#include <string_view>
#include <vector>

#include "io/memory/record_text.h"
#include "tests/fuzz/promise.h"

namespace stoker::testing {

void ParseFuzzedRecord(std::span<const uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const Result<std::vector<Field>> parsed = ParseRecord(text);
  if (!parsed.ok()) {
    Promise(parsed.error().code == Code::kInvalidArgument, "code");
    return;
  }
  Promise(!parsed->empty(), "a field");
  for (const Field& field : *parsed) {
    Promise(!field.name.empty() && SizeOf(field.dtype) != 0, "a name and a type");
    for (const int64_t dimension : field.row_shape) Promise(dimension >= 0, "dimensions");
  }
  const std::string again = RecordText(*parsed);
  const Result<std::vector<Field>> same = ParseRecord(again);
  Promise(same.ok() && RecordText(*same) == again, "the text of what was parsed");
}

}  // namespace stoker::testing
