// The function that the TFRecord fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads `bytes` as a TFRecord file's index, or that of a feature's lists with their objects, if
// they begin as one does, with a corrected checksum; as a TFRecord file, if they begin with a sound
// header; and always as a tf.train.Example. Records fill the file, the index file gives them back,
// features lie in the Example, errors have no file or the right one, and nothing is written after a
// row.
void OpenFuzzedTfRecord(std::span<const uint8_t> bytes);

}  // namespace stoker::testing
