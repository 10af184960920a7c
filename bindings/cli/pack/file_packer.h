// Reads one photograph and converts it to the form in which a packed set stores it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/packed/packed_format.h"

namespace stoker {

struct PackedFile {
  packed_set::Entry entry;     // without place and path
  std::vector<uint8_t> image;  // as stored; empty if the set has the file already
  std::vector<uint8_t> file;   // if it is stored, too
  std::string reason;          // why it is stored unchanged; empty if it is packed
};

// Keeps memory for the next file. Files of more than 64 MiB are read one at a time in the process,
// and those that need more than 128 MiB are packed one at a time. One thread at a time.
class FilePacker {
 public:
  // `exact`: PNGs that are not restored to the byte are stored, too.
  explicit FilePacker(bool exact = false);
  ~FilePacker();

  // Reads and packs a file, `is_mask`: one of masks. Errors, with the file: those of reading it;
  // Unimplemented if it has 4 GiB or more; ResourceExhausted.
  Result<PackedFile> Pack(const std::string& path, bool is_mask = false);

  // The same for a file that the set has as `known`; it is read only if its size or time differ.
  // InvalidArgument if its content has changed.
  Result<PackedFile> Compare(const std::string& path, const packed_set::Entry& known);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
