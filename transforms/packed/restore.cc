#include "transforms/packed/restore.h"

#include "core/result/try.h"
#include "transforms/packed/restorer.h"

namespace stoker {

Result<std::vector<uint8_t>> RestoreJpeg(std::span<const uint8_t> packed) {
  ASSIGN_OR_RETURN(const packed::PackedFile file, packed::PackedFile::Open(packed));
  packed::JpegRestorer restorer;
  std::vector<uint8_t> jpeg;
  TRY(restorer.Restore(file, jpeg));
  return jpeg;
}

}  // namespace stoker
