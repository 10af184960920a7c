#include "tests/fuzz/parse/read_manifest.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

void RequireGoodBoxes(const ArrayColumn& column) {
  if (column.kind != Field::Kind::kBoxes) return;
  const auto* const numbers = static_cast<const float*>(column.data);
  const auto objects = static_cast<size_t>(column.offsets[column.samples]);
  const bool has_ends = column.box_format == BoxFormat::kXyxy;
  for (size_t i = 0; i < objects; ++i) {
    const float* const box = numbers + 4 * i;
    for (size_t side = 0; side < 2; ++side) {
      Require(std::isfinite(box[side]) && std::isfinite(box[2 + side]), "boxes are finite");
      Require(has_ends ? box[side] <= box[2 + side] : box[2 + side] >= 0, "boxes are not reversed");
    }
  }
}

uint64_t RowsOf(const ManifestTable& table) {
  return table.ends.empty() ? table.paths.size() : table.ends.size();
}

void RequireAGoodTable(const ManifestTable& table, size_t input) {
  const uint64_t rows = RowsOf(table);
  Require(rows > 0 && rows <= input && table.paths.size() <= input, "each row is in the file");
  Require(std::ranges::is_sorted(table.ends), "lists follow each other");
  Require(table.ends.empty() || table.ends.back() == table.paths.size(), "paths are of a list");
  for (uint64_t path = 0; path < table.paths.size(); ++path) {
    Require(!table.paths[path].empty() && table.paths[path].find('\0') == std::string_view::npos,
            "paths are those of files");
  }
  for (const ObjectValues& values : table.objects) {
    Require(values.samples() == rows, "columns of objects are complete");
    Require(values.objects() == table.objects[0].objects(), "columns have the same objects");
    Require(values.objects() <= input, "each object is in the file");
    RequireGoodBoxes(values.View());
  }
  Require(!table.has_label || !table.columns.empty(), "the label is a column");
  for (const ValueColumn& column : table.columns) {
    Require(column.rows() == rows && column.View().samples == rows && !column.lost_text(),
            "columns are complete");
    Require(column.View().row_bytes() > 0, "rows have a type");
  }
}

Result<ManifestTable> Read(std::string_view bytes, const ManifestOptions& options) {
  static FuzzedFile fuzzed("manifest");
  const std::string& path =
      fuzzed.Write(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  Result<ManifestTable> table = bytes.starts_with('{') ? ReadJsonManifest(path, options)
                                                       : ReadCsvManifest(path, ',', options);
  table.ok() ? RequireAGoodTable(*table, bytes.size()) : PromiseGoodError(table.error(), path);
  return table;
}

// Reads a manifest with the keyed columns that are before it, up to an empty line.
void ReadKeyed(std::string_view text) {
  const size_t end = text.find("\n\n");
  const Result<std::vector<KeyedColumn>> keyed = ParseKeyedColumns(text.substr(0, end));
  if (!keyed.ok()) {
    Require(keyed.error().code == Code::kInvalidArgument, "texts cause these errors");
    Require(keyed.error().cause.size() < 1000 + 4 * text.size(),  // \xff for a byte, at most
            "the cause is of moderate length");
    return;
  }
  std::set<std::string> names;
  for (const KeyedColumn& column : *keyed) {
    Require(!column.key.empty() && names.insert(column.field.name).second, "columns have names");
  }
  if (end == std::string_view::npos) return;
  const std::string_view manifest = text.substr(end + 2);
  const ManifestOptions options{.keyed = *keyed};
  (void)Read(manifest, options).ok();
}

}  // namespace

void ReadFuzzedManifest(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with('!')) return ReadKeyed(text.substr(1));
  static const ManifestOptions keyed{.keyed = ParseKeyedColumns(kKeyed).value()};
  if (text.starts_with('{')) (void)Read(text, keyed).ok();
  Result<ManifestTable> table = Read(text, {});
  if (!table.ok() || !table->has_label) return;
  const size_t classes = table->columns[0].NumberClasses().size();
  Require(classes <= RowsOf(*table), "each class has a sample");
  RequireAGoodTable(*table, bytes.size());
}

}  // namespace stoker::testing
