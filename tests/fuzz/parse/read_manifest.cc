#include "tests/fuzz/parse/read_manifest.h"

#include <algorithm>
#include <string>

#include "io/manifest/manifest_table.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

constexpr char kKeyed[] =
    "mask,mask,mask\n"
    "boxes,boxes,objects.bbox,xywh\n"
    "labels,object,objects.categories\n"
    "area,object,objects.area,float32\n"
    "points,keypoints,points,0:1\n";

void RequireAGoodTable(const ManifestTable& table, size_t input) {
  const uint64_t rows = table.paths.size();
  Require(rows > 0 && rows <= input, "each row is in the file");
  for (uint64_t row = 0; row < rows; ++row) {
    Require(!table.paths[row].empty() && table.paths[row].find('\0') == std::string_view::npos,
            "paths are those of files");
  }
  for (const ObjectValues& values : table.objects) {
    Require(values.samples() == rows, "columns of objects are complete");
    Require(values.objects() == table.objects[0].objects(), "columns have the same objects");
    Require(values.objects() <= input, "each object is in the file");
  }
  Require(!table.has_label || !table.columns.empty(), "the label is a column");
  for (const ValueColumn& column : table.columns) {
    Require(column.rows() == rows && column.View().samples == rows && !column.lost_text(),
            "columns are complete");
    Require(column.View().row_bytes() > 0, "rows have a type");
  }
}

}  // namespace

void ReadFuzzedManifest(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("manifest");
  const std::string& path = fuzzed.Write(bytes);
  const bool json = !bytes.empty() && bytes[0] == '{';
  if (json) {
    static const ManifestOptions options{.keyed = ParseKeyedColumns(kKeyed).value()};
    const Result<ManifestTable> table = ReadJsonManifest(path, options);
    table.ok() ? RequireAGoodTable(*table, bytes.size()) : PromiseGoodError(table.error(), path);
  }
  Result<ManifestTable> table = json ? ReadJsonManifest(path, {}) : ReadCsvManifest(path, ',', {});
  if (!table.ok()) return PromiseGoodError(table.error(), path);
  RequireAGoodTable(*table, bytes.size());
  if (table->has_label) {
    const size_t classes = table->columns[0].NumberClasses().size();
    Require(classes <= table->paths.size(), "each class has a sample");
    RequireAGoodTable(*table, bytes.size());
  }
}

}  // namespace stoker::testing
