#include <bit>
#include <cstddef>

#include "transforms/decode/decoding.h"

namespace stoker {

const char* NameOf(Fallback reason) {
  switch (reason) {
    case Fallback::kNone:
      return "none";
    case Fallback::kHeader:
      return "unusual header";
    case Fallback::kProcess:
      return "progressive or arithmetic";
    case Fallback::kColor:
      return "neither gray nor YCbCr";
    case Fallback::kSampling:
      return "unusual chroma format";
    case Fallback::kScan:
      return "unusual scans";
    case Fallback::kTables:
      return "unusual Huffman tables";
    case Fallback::kNarrow:
      return "very narrow";
    case Fallback::kBits:
      return "damaged data";
    case Fallback::kRestart:
      return "missing restart marker";
    case Fallback::kCoefficient:
      return "coefficients out of range";
  }
  return "unknown";
}

const char* NameOf(OnWorker reason) {
  switch (reason) {
    case OnWorker::kNotPrepared:
      return "not_prepared";
    case OnWorker::kUnsupported:
      return "unsupported";
    case OnWorker::kDamaged:
      return "damaged";
    case OnWorker::kNoRoom:
      return "no_room";
  }
  return "unknown";
}

DecodePaths& DecodePaths::operator+=(const DecodePaths& other) {
  auto sums = std::bit_cast<DecodeCounts>(*this);
  const auto added = std::bit_cast<DecodeCounts>(other);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += added[i];
  return *this = std::bit_cast<DecodePaths>(sums);
}

}  // namespace stoker
