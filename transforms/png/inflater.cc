#include "transforms/png/inflater.h"

#include <algorithm>
#include <cstring>

#include "core/result/try.h"
#include "transforms/png/errors.h"

namespace stoker::png {
namespace {

constexpr size_t kBeforeData = 8;  // a chunk's length and type
constexpr size_t kAfterData = 4;   // its checksum

}  // namespace

void Inflater::Start(std::span<const uint8_t> file, Range chunks, uint64_t total) {
  file_ = file;
  next_chunk_ = chunks.begin;
  end_ = chunks.end;
  wanted_ = total;
  stream_ = {};
  stream_.in = stream_.in_end = file.data() + chunks.begin;
  stream_.out = window_.data();
  returned_ = window_.data();
  block_ = Block::kZlibHeader;
  last_ = false;
}

Result<std::span<const uint8_t>> Inflater::Next(size_t most) {
  if (returned_ == stream_.out) {
    uint8_t* const begin = window_.data();
    uint8_t* const end = begin + kHistory + kPiece;
    if (stream_.out >= end) {
      std::memmove(begin, stream_.out - kHistory, kHistory);
      stream_.out = begin + kHistory;
      returned_ = stream_.out;
    }
    const auto room = static_cast<uint64_t>(end - stream_.out);
    TRY(Decompress(stream_.out + std::min(room, wanted_)));
  }
  const auto ready = static_cast<size_t>(stream_.out - returned_);
  const std::span<const uint8_t> bytes(returned_, std::min(ready, most));
  returned_ += bytes.size();
  wanted_ -= bytes.size();
  return bytes;
}

// Decompresses until `out` has reached `target`.
Status Inflater::Decompress(uint8_t* target) {
  Outcome outcome = Outcome::kFine;
  while (stream_.out < target && outcome == Outcome::kFine) outcome = Step(target);
  const bool all = static_cast<uint64_t>(stream_.out - returned_) == wanted_;
  if (all && outcome == Outcome::kFine) outcome = LookAhead();
  if (outcome == Outcome::kFine) return {};
  if (outcome == Outcome::kDamaged) return Damaged("invalid zlib data", offset());
  return Truncated("its compressed data end before its last row", offset());
}

Inflater::Outcome Inflater::Step(uint8_t* target) {
  switch (block_) {
    case Block::kZlibHeader:
      return ReadZlibHeader();
    case Block::kHeader:
      return ReadHeader();
    case Block::kStored:
      return CopyStored(target);
    case Block::kCodes:
      return DecodeBlock(target);
    case Block::kNone:
      break;
  }
  return Outcome::kTruncated;
}

// ---- Input.

// Returns false if there is none. A chunk may be empty.
bool Inflater::NextChunk() {
  if (next_chunk_ == end_) return false;
  const uint8_t* const at = file_.data() + next_chunk_;
  const size_t size = size_t{at[0]} << 24 | size_t{at[1]} << 16 | size_t{at[2]} << 8 | at[3];
  stream_.in = at + kBeforeData;
  stream_.in_end = stream_.in + size;
  next_chunk_ += kBeforeData + size + kAfterData;
  return true;
}

// Afterwards there are at least 56 bits, or all that are left.
void Inflater::Fill() {
  Stream& s = stream_;
  while (s.left < 56) {
    if (s.in == s.in_end) {
      if (!NextChunk()) return;
      continue;
    }
    s.bits |= uint64_t{*s.in++} << s.left;
    s.left += 8;
  }
}

// Returns false if there are fewer bits.
bool Inflater::Drop(unsigned bits) {
  if (bits > stream_.left) return false;
  stream_.bits >>= bits;
  stream_.left -= bits;
  return true;
}

bool Inflater::Take(unsigned bits, uint32_t& value) {
  Fill();
  value = static_cast<uint32_t>(stream_.bits & ((uint64_t{1} << bits) - 1));
  return Drop(bits);
}

// ---- Headers.

Inflater::Outcome Inflater::ReadZlibHeader() {
  uint32_t method = 0, flags = 0;
  if (!Take(8, method) || !Take(8, flags)) return Outcome::kTruncated;
  constexpr uint32_t kDeflate = 8, kMostWindow = 7, kDictionary = 0x20;
  const bool known = (method & 15) == kDeflate && method >> 4 <= kMostWindow &&
                     (method * 256 + flags) % 31 == 0 && (flags & kDictionary) == 0;
  block_ = Block::kHeader;
  return known ? Outcome::kFine : Outcome::kDamaged;
}

Inflater::Outcome Inflater::ReadHeader() {
  uint32_t last = 0, type = 0;
  if (!Take(1, last) || !Take(2, type)) return Outcome::kTruncated;
  last_ = last != 0;
  if (type == 0) return ReadStoredHeader();
  if (type == 3) return Outcome::kDamaged;
  block_ = Block::kCodes;
  if (type == 2) return ReadCodes();
  codes_ = &FixedCodes();
  return Outcome::kFine;
}

Inflater::Outcome Inflater::ReadStoredHeader() {
  (void)Drop(stream_.left % 8);
  uint32_t size = 0, complement = 0;
  if (!Take(16, size) || !Take(16, complement)) return Outcome::kTruncated;
  if ((size ^ complement) != 0xFFFF) return Outcome::kDamaged;
  stored_ = size;
  block_ = Block::kStored;
  if (stored_ == 0) EndBlock();
  return Outcome::kFine;
}

// RFC 1951, 3.2.7.
Inflater::Outcome Inflater::ReadCodes() {
  constexpr std::array<uint8_t, kLengthSymbols> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                          11, 4,  12, 3, 13, 2, 14, 1, 15};
  constexpr size_t kMostLiterals = 286, kMostDistances = 30, kEnd = 256;
  uint32_t literals = 0, distances = 0, given = 0;
  if (!Take(5, literals) || !Take(5, distances) || !Take(4, given)) return Outcome::kTruncated;
  literals += 257;
  distances += 1;
  if (literals > kMostLiterals || distances > kMostDistances) return Outcome::kDamaged;
  std::array<uint8_t, kLengthSymbols> of_lengths{};
  for (size_t i = 0; i < given + 4; ++i) {
    uint32_t bits = 0;
    if (!Take(3, bits)) return Outcome::kTruncated;
    of_lengths[kOrder[i]] = static_cast<uint8_t>(bits);
  }
  LengthCodes codes;
  if (!BuildLengths(of_lengths, codes)) return Outcome::kDamaged;

  std::array<uint8_t, kMostLiterals + kMostDistances> lengths;
  for (size_t n = 0; n < literals + distances;) {
    Fill();
    const uint32_t entry = codes[stream_.bits & (codes.size() - 1)], symbol = entry >> 16;
    if (!Drop(DroppedBits(entry))) return Outcome::kTruncated;
    if (symbol < 16) {
      lengths[n++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && n == 0) return Outcome::kDamaged;
    uint32_t times = 0;
    if (!Take(symbol == 16 ? 2 : symbol == 17 ? 3 : 7, times)) return Outcome::kTruncated;
    times += symbol == 18 ? 11 : 3;
    if (times > literals + distances - n) return Outcome::kDamaged;
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(n), times,
                symbol == 16 ? lengths[n - 1] : uint8_t{0});
    n += times;
  }
  const auto all = std::span<const uint8_t>(lengths);
  const bool complete = lengths[kEnd] != 0 && BuildLiterals(all.first(literals), defined_) &&
                        BuildDistances(all.subspan(literals, distances), defined_);
  if (!complete) return Outcome::kDamaged;
  codes_ = &defined_;
  // Empty blocks, which take few bytes of a hostile file, should take little time.
  Fill();
  const uint32_t first = FindEntry<kLiteralBits>(defined_.literals.data(), stream_.bits);
  if ((first & kEndOfBlock) == 0) JoinLiterals(defined_);
  return Outcome::kFine;
}

// ---- Blocks.

// Bytes before `in` that are among the bits come first.
Inflater::Outcome Inflater::CopyStored(uint8_t* target) {
  Stream& s = stream_;
  for (; s.left > 0 && stored_ > 0 && s.out < target; --stored_) {
    *s.out++ = static_cast<uint8_t>(s.bits);
    (void)Drop(8);
  }
  if (s.left == 0) s.bits = 0;
  while (s.left == 0 && stored_ > 0 && s.out < target) {
    const auto left = static_cast<size_t>(s.in_end - s.in);
    if (left == 0) {
      if (!NextChunk()) return Outcome::kTruncated;
      continue;
    }
    const size_t n = std::min({left, stored_, static_cast<size_t>(target - s.out)});
    std::memcpy(s.out, s.in, n);
    s.in += n;
    s.out += n;
    stored_ -= n;
  }
  if (stored_ == 0) EndBlock();
  return Outcome::kFine;
}

Inflater::Outcome Inflater::DecodeBlock(uint8_t* target) {
  Stream& s = stream_;
  if (s.in_end - s.in >= static_cast<ptrdiff_t>(kSymbolInput)) {
    const SymbolsEnd end = DecodeSymbols(*codes_, window_.data(), target, s);
    if (end == SymbolsEnd::kEndOfBlock) EndBlock();
    if (end == SymbolsEnd::kDamaged) return Outcome::kDamaged;
    if (end == SymbolsEnd::kEndOfBlock || s.out >= target) return Outcome::kFine;
  }
  return DecodeSymbol();
}

// After the last wanted byte, looks for damage up to the next byte that would be written, as zlib
// does, so that both have one verdict, and so have whole decodes with libpng or libspng. Data may
// be missing; what follows the next byte may be damaged.
Inflater::Outcome Inflater::LookAhead() {
  while (block_ == Block::kHeader || block_ == Block::kCodes) {
    if (block_ == Block::kHeader) {
      const Outcome outcome = ReadHeader();
      if (outcome != Outcome::kFine) return outcome == Outcome::kDamaged ? outcome : Outcome::kFine;
      continue;
    }
    Fill();
    uint32_t entry = FindEntry<kLiteralBits>(codes_->literals.data(), stream_.bits);
    if ((entry & kEndOfBlock) != 0 && Drop(CodeBits(entry))) {
      EndBlock();
      continue;
    }
    size_t length = 0;
    if ((entry & (kSpecial | kLiteral)) == 0 && TakeValue(entry, length)) {
      entry = FindEntry<kDistanceBits>(codes_->distances.data(), stream_.bits);
    }
    const bool damaged = (entry & (kSpecial | kEndOfBlock)) == kSpecial &&
                         stream_.left >= std::max(CodeBits(entry), 1U);
    return damaged ? Outcome::kDamaged : Outcome::kFine;
  }
  return Outcome::kFine;
}

// Decodes a symbol whose bits may reach past the chunk: DecodeSymbols, step by step.
Inflater::Outcome Inflater::DecodeSymbol() {
  Fill();
  uint32_t entry = FindEntry<kLiteralBits>(codes_->literals.data(), stream_.bits);
  if ((entry & (kLiteral | kEndOfBlock)) != 0) {
    if (!Drop(CodeBits(entry))) return Outcome::kTruncated;  // not the second of a pair
    if ((entry & kLiteral) != 0) {
      *stream_.out++ = static_cast<uint8_t>(entry >> 16);
    } else {
      EndBlock();
    }
    return Outcome::kFine;
  }
  return CopyMatch(entry);
}

Inflater::Outcome Inflater::CopyMatch(uint32_t length_entry) {
  if ((length_entry & kSpecial) != 0) return Outcome::kDamaged;
  size_t length = 0, distance = 0;
  if (!TakeValue(length_entry, length)) return Outcome::kTruncated;
  const uint32_t entry = FindEntry<kDistanceBits>(codes_->distances.data(), stream_.bits);
  if ((entry & kSpecial) != 0) return Outcome::kDamaged;
  if (!TakeValue(entry, distance)) return Outcome::kTruncated;
  if (distance > static_cast<size_t>(stream_.out - window_.data())) return Outcome::kDamaged;
  stream_.out = CopyMatchPlain(stream_.out, distance, length);
  return Outcome::kFine;
}

bool Inflater::TakeValue(uint32_t entry, size_t& value) {
  value = ValueOf(entry, stream_.bits);
  return Drop(DroppedBits(entry));
}

}  // namespace stoker::png
