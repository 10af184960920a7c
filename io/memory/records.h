// Makes a source of files of fixed-size records: the binary files of CIFAR and MNIST, tokens,
// features, raw images.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// `record`: the fields of a sample as stored in the files, dense and in this order, with numbers in
// the machine's byte order. Each becomes a column of the batch; one with the name "image" comes
// first, and one with the name "label" is the label. Each file begins with `offset` bytes that are
// skipped. Samples are in the order of the paths and, in a file, of its records.
//
// This call reads the files into memory of the source: copying from there is faster than from a
// mapped file, and later changes of the files cannot disturb a loader. So the files must fit into
// half of the available memory, divided among the ranks on this machine.
//
// InvalidArgument: there is no path, no field, or a field that Arrays() would refuse; a path is not
// a file. DataLoss, with file and offset: a file without records, or whose last record is
// incomplete. ResourceExhausted: the files do not fit. NotFound, PermissionDenied, ….
Result<std::shared_ptr<const SampleSource>> Records(const std::vector<std::string>& paths,
                                                    std::vector<Field> record, uint64_t offset = 0);

}  // namespace stoker
