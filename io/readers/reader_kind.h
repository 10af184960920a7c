// ReaderKind: names the readers. ReaderChoice: the one that is used.
#pragma once

#include <string>

namespace stoker {

enum class ReaderKind { kAuto, kUring, kPread };

// The chosen reader, and the reason in words for the user.
struct ReaderChoice {
  ReaderKind kind = ReaderKind::kPread;  // never kAuto
  std::string reason;
};

}  // namespace stoker
