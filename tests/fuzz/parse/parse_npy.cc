#include "tests/fuzz/parse/parse_npy.h"

#include <algorithm>
#include <vector>

#include "core/result/utf8.h"
#include "io/memory/npy.h"
#include "tests/fuzz/promise.h"

namespace stoker::testing {

namespace {

void CheckError(const Error& error, size_t bytes) {
  Promise(error.code == Code::kDataLoss || error.code == Code::kUnimplemented, "code");
  Promise(error.offset && *error.offset <= bytes, "the offset lies in the file");
  Promise(Printable(error.cause) == error.cause, "the cause is safe to print");
}

}  // namespace

void ParseFuzzedNpy(std::span<const uint8_t> input) {
  const Result<NpyHeader> header = ParseNpyHeader(input);
  if (!header.ok()) return CheckError(header.error(), input.size());
  Promise(header->data_begin <= input.size(), "the header lies in the file");
  Promise(SizeOf(header->dtype) != 0 && !IsString(header->dtype), "numbers");
  for (const int64_t dimension : header->shape()) Promise(dimension > 0, "dimensions");
  const Field field{.name = "array",
                    .dtype = header->dtype,
                    .row_shape = {header->shape().begin(), header->shape().end()}};
  constexpr size_t kMostBytes = 1 << 20;
  if (field.row_bytes() > kMostBytes) return;
  std::vector<uint8_t> row(field.row_bytes());
  const Status copied = CopyNpy(input, field, row);
  if (!copied.ok()) return CheckError(copied.error(), input.size());
  Promise(std::ranges::equal(row, input.subspan(header->data_begin)), "the array");
}

}  // namespace stoker::testing
