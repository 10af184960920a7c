// Makes a source of samples of equal size in files, one after the other: CIFAR's binary files,
// MNIST's, tokens, features, raw images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// `record`: the fields of a sample as they lie in the files, dense and in this order, with numbers
// in the machine's byte order. Each becomes a column of the batch; one with the name "image" comes
// first, and one with the name "label" is the label. Each file begins with `offset` other bytes.
// Samples are in the order of the paths and, in a file, of its records.
//
// This call reads the files into memory of the source: copying from there is faster than from a
// mapped file, and later changes of the files cannot disturb a loader. So the files must fit into
// half of the available memory, divided among the ranks on this machine.
//
// InvalidArgument: no path; no field, or one that Arrays() would refuse; a path that is not a file.
// DataLoss, with file and offset: a file without records, or whose last record is incomplete.
// ResourceExhausted: the files do not fit. NotFound, PermissionDenied, ….
Result<std::shared_ptr<const SampleSource>> Records(const std::vector<std::string>& paths,
                                                    std::vector<Field> record, uint64_t offset = 0);

}  // namespace stoker
