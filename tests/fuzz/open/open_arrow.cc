#include "tests/fuzz/open/open_arrow.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "io/arrow/arrow.h"
#include "io/arrow/arrow_batches.h"
#include "io/files/input_file.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

void VisitImages(const SampleSource& source, uint64_t bytes) {
  std::vector<uint64_t> ids(source.size());
  std::iota(ids.begin(), ids.end(), 0);
  for (const uint64_t id : ids) {
    Require(source.PiecesOf(id) <= kMostPieces, "samples have few images");
    for (size_t piece = 0; piece < source.PiecesOf(id); ++piece) {
      const ByteRange range = source.RangeOfAny(id, piece);
      Require(range.offset <= bytes && range.length <= bytes - range.offset,
              "images lie in the file");
    }
  }
  for (size_t field = 1; field < source.fields().size(); ++field) {
    const size_t row = source.fields()[field].row_bytes();
    std::vector<uint8_t> rows(row * ids.size());  // of its exact size, for the address sanitizer
    source.FixedRows(field, ids, rows.data());
    if (source.fields()[field].dtype == DType::kBool) {
      Require(std::ranges::all_of(rows, [](uint8_t value) { return value <= 1; }),
              "booleans are 0 or 1");
    }
  }
}

void OpenWith(const std::string& path, const ArrowOptions& options, uint64_t bytes) {
  const Result<std::shared_ptr<const SampleSource>> source = Arrow(path, options);
  if (source.ok()) return VisitImages(**source, bytes);
  Require(source.error().file == path, "errors name the file");
  Require(source.error().code != Code::kDataLoss || source.error().offset, "damage has an offset");
}

// The names of the columns, a few of them.
std::vector<std::string> ColumnsIn(const std::string& path) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  const InputFile file = InputFile::Open(path).value();
  const Result<ArrowBatches> batches = ArrowBatches::Open(file, file.Stamp().value());
  if (!batches.ok()) return names;
  for (const ArrowField& field : batches->schema().fields) {
    if (names.size() < kMost) names.push_back(field.name);
  }
  return names;
}

}  // namespace

void OpenFuzzedArrow(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("arrow");
  const std::string& path = fuzzed.Write(bytes);
  OpenWith(path, {.threads = 1}, bytes.size());
  for (const std::string& name : ColumnsIn(path)) {
    OpenWith(path, {.label = "", .columns = {name}, .threads = 1}, bytes.size());
    OpenWith(path, {.image = name, .label = name, .threads = 1}, bytes.size());
  }
}

}  // namespace stoker::testing
