// FileInspector: examines one file, for Inspect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "bindings/cli/inspect/jpeg_header.h"
#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/format.h"
#include "transforms/decode/image_info.h"

namespace stoker {

// The facts found up to `error`, if that is set (with its file).
struct FileFacts {
  std::optional<uint64_t> bytes;          // nullopt if it could not be opened
  std::optional<ImageFormat> format;      // nullopt if nothing could be read
  std::optional<ImageSize> size;          // as stored; of what is decoded
  std::optional<JpegDescription> header;  // of a JPEG
  bool sixteen_bits = false;              // in a channel
  bool several_frames = false;            // or pages
  std::optional<Error> error;
};

// Keeps a buffer for the next file. One thread at a time.
class FileInspector {
 public:
  FileInspector();
  ~FileInspector();

  FileFacts Inspect(const std::string& path);
  // The same for a file's bytes; errors name no file.
  static FileFacts InspectBytes(std::span<const uint8_t> file);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
