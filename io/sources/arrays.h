// Samples in memory: NumPy arrays, tables, or anything else that the program has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/array_column.h"
#include "io/sources/source.h"

namespace stoker {

// One or two columns with the same number of samples become a batch's columns, in this order and
// with these names; transforms apply to the first one, the image. Any element type and row shape.
// Nothing is copied before it is put into a batch.
//
// The memory is the caller's. `owner`, which may be null, keeps it valid: the source releases it on
// its own destruction, on any thread. Rows must not change while a loader reads them.
//
// InvalidArgument names the column and the problem: no column or more than two, no name or the same
// one twice, no samples or different numbers of them, no data, a dimension that is not positive,
// more than seven dimensions, rows of 2^42 bytes or more.
Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner);

// The type and shape of a row: "uint8 (28, 28)", "int64".
std::string DescribeRow(const ArrayColumn& column);

}  // namespace stoker
