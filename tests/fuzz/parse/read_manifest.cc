#include "tests/fuzz/parse/read_manifest.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "io/manifest/manifest_table.h"
#include "tests/fuzz/decode/fuzzed_rows.h"

namespace stoker::testing {
namespace {

constexpr char kKeyed[] =
    "mask,mask,mask\n"
    "boxes,boxes,objects.bbox,xywh\n"
    "labels,object,objects.categories\n"
    "area,object,objects.area,float32\n"
    "points,keypoints,points,0:1\n";

void RequireAGoodError(const Error& error, const std::string& path) {
  Require(error.code == Code::kInvalidArgument || error.code == Code::kResourceExhausted,
          "files cause these errors");
  Require(error.file == path, "errors name the file");
  Require(!error.cause.empty() && error.cause.size() < 1000, "the cause is of moderate length");
  Require(std::ranges::none_of(error.cause,
                               [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
          "the cause is one line");
}

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
  static const int descriptor = memfd_create("manifest", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  Require(ftruncate(descriptor, 0) == 0 && pwrite(descriptor, bytes.data(), bytes.size(), 0) ==
                                               static_cast<ssize_t>(bytes.size()),
          "the input is put into a file");
  const bool json = !bytes.empty() && bytes[0] == '{';
  if (json) {
    static const ManifestOptions options{.keyed = ParseKeyedColumns(kKeyed).value()};
    const Result<ManifestTable> table = ReadJsonManifest(path, options);
    table.ok() ? RequireAGoodTable(*table, bytes.size()) : RequireAGoodError(table.error(), path);
  }
  Result<ManifestTable> table = json ? ReadJsonManifest(path, {}) : ReadCsvManifest(path, ',', {});
  if (!table.ok()) return RequireAGoodError(table.error(), path);
  RequireAGoodTable(*table, bytes.size());
  if (table->has_label) {
    const size_t classes = table->columns[0].NumberClasses().size();
    Require(classes <= table->paths.size(), "each class has a sample");
    RequireAGoodTable(*table, bytes.size());
  }
}

}  // namespace stoker::testing
