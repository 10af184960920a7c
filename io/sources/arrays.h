// Samples that are in memory already: NumPy arrays, tables, whatever the program has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/array_column.h"
#include "io/sources/source.h"

namespace stoker {

// One or two columns with the same number of samples: what a batch's columns will be, in this
// order, with these names; the first one is the image where there are transforms. Any element type
// and row shape. Nothing is copied before it is put into a batch.
//
// The memory is the caller's. `owner`, which may be null, keeps it: the source lets go of it when
// it goes itself, on whatever thread that is. Rows must not change while a loader reads them.
//
// InvalidArgument names the column and what is wrong: no column or more than two, no name or the
// same one twice, no samples or not equally many, no data, a dimension that is not positive, more
// than seven of them, rows of 2^42 bytes or more.
Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner);

// The type and shape of a row: "uint8 (28, 28)", "int64".
std::string DescribeRow(const ArrayColumn& column);

}  // namespace stoker
