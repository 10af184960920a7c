// Translates libjpeg's messages into stoker's errors.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace stoker {

// Returns the error of a file that must be made again; `cause` follows "damaged JPEG: ".
Error DamagedJpeg(const std::string& cause, uint64_t offset);

// Returns the error of a file that is cut off.
Error TruncatedJpeg(uint64_t offset);

// Returns whether a warning of libjpeg (a JWRN_ code of jerror.h) means that pixels are wrong. The
// other warnings (extra bytes before a marker, an unknown version, …) occur in good photographs and
// are tolerated, as Pillow and torchvision do.
bool IsDamage(int message_code);

// `message_code`: a JERR_ or JWRN_ code; `text`: libjpeg's message.
Error JpegError(int message_code, const char* text, uint64_t offset);

}  // namespace stoker
