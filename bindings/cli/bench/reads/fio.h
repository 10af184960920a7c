// Measures the same reads with fio (https://fio.readthedocs.io).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/readers/reader_kind.h"

namespace stoker {

struct FileRange {
  std::string path{};
  uint64_t offset = 0;
  uint64_t length = 0;
  bool whole = false;  // the file is one sample: it is opened and closed for this read
};

struct FioFigure {
  uint64_t reads = 0;
  double reads_per_second = 0;
  double bytes_per_second = 0;
};

// Has fio do these reads in this order, `depth` at a time with io_uring, one at a time with pread,
// through the page cache. Returns nullopt if fio is not installed or fails, or if fio's list of
// reads cannot hold a path: one with white space, or of more than 255 bytes.
std::optional<FioFigure> MeasureWithFio(const std::vector<FileRange>& reads, ReaderKind reader,
                                        uint32_t depth);

// Parses fio's terse report, version 3; returns nullopt unless it reports a run without errors.
std::optional<FioFigure> ParseFioReport(const std::string& report);

}  // namespace stoker
