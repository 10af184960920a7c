// Runs fio (https://fio.readthedocs.io) for the same reads.
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

// Lets fio make these reads in this order, `depth` at a time with io_uring, one at a time with
// pread, through the page cache. None if fio is not installed or fails, or if a path is one that
// its list of reads cannot hold: with white space, or of more than 255 bytes.
std::optional<FioFigure> MeasureWithFio(const std::vector<FileRange>& reads, ReaderKind reader,
                                        uint32_t depth);

// Reads fio's terse report, version 3; none if it is not one of a run without errors.
std::optional<FioFigure> ParseFioReport(const std::string& report);

}  // namespace stoker
