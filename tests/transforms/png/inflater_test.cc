// Decompression: the bytes and the verdict of zlib, however the data are cut.
#include "transforms/png/inflater.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "transforms/png/reference_inflate.h"

namespace stoker::png {
namespace {

using stoker::testing::Effort;
using stoker::testing::Random;
using Bytes = std::vector<uint8_t>;

// Returns data of different kinds: noise, values near zero, repeats of all distances, one value.
Bytes MakeData(size_t size, Random& random) {
  Bytes data;
  const int kind = random.Between(0, 4);
  while (data.size() < size) {
    const int choice = kind < 4 ? kind : random.Between(0, 3);
    const auto length = static_cast<size_t>(random.Between(1, 600));
    const uint8_t value = static_cast<uint8_t>(random.Between(0, 255));
    const size_t back = std::min(
        data.size(),
        static_cast<size_t>(random.OneIn(2) ? random.Between(1, 40) : random.Between(1, 33'000)));
    for (size_t i = 0; i < length; ++i) {
      if (choice == 0) data.push_back(static_cast<uint8_t>(random.Between(0, 255)));
      if (choice == 1) {
        const int least = random.Between(0, 127);
        data.push_back(static_cast<uint8_t>(random.Between(-least, least) / 4));
      }
      if (choice == 2) data.push_back(back == 0 ? value : data[data.size() - back]);
      if (choice == 3) data.push_back(value);
    }
  }
  data.resize(size);
  return data;
}

Bytes Deflated(const Bytes& data, Random& random) {
  constexpr int kStrategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, random.Between(0, 9), Z_DEFLATED, random.Between(9, 15),
                         random.Between(1, 9), kStrategies[random.Between(0, 4)]),
            Z_OK);
  Bytes out(deflateBound(&stream, data.size()) + 1000 + data.size() / 4);
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  for (size_t at = 0; at < data.size();) {  // blocks that end early, also empty ones
    const size_t n = std::min(data.size() - at, static_cast<size_t>(random.Between(1, 100'000)));
    stream.next_in = const_cast<Bytef*>(data.data() + at);
    stream.avail_in = static_cast<uInt>(n);
    constexpr int kFlushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK, Z_PARTIAL_FLUSH};
    EXPECT_EQ(deflate(&stream, kFlushes[random.Between(0, 4)]), Z_OK);
    at += n;
  }
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Returns IDAT chunks of the data, some of them empty.
Bytes Chunks(const Bytes& data, size_t most) {
  Bytes chunks;
  Random random(data.size());
  for (size_t at = 0; at < data.size();) {
    const auto drawn = static_cast<size_t>(random.Between(0, static_cast<int>(most)));
    const size_t n = std::min(data.size() - at, drawn);
    const Bytes chunk = stoker::testing::PngChunk("IDAT", std::span(data).subspan(at, n));
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
    at += n;
  }
  return chunks;
}

// Compares the first `total` bytes, taken in pieces.
void ExpectAsZlib(Inflater& inflater, const Bytes& data, size_t total, size_t chunk, size_t piece) {
  const Bytes file = Chunks(data, chunk);
  const std::optional<Bytes> wanted = InflateByZlib(data, total);
  inflater.Start(file, {0, file.size()}, total);
  Bytes got;
  while (got.size() < total) {
    const auto part = inflater.Next(std::min(piece, total - got.size()));
    if (!part.ok()) {
      EXPECT_EQ(part.error().code, Code::kDataLoss);
      ASSERT_TRUE(part.error().offset.has_value());
      EXPECT_LE(*part.error().offset, file.size());
      ASSERT_FALSE(wanted.has_value()) << part.error().cause << " after " << got.size();
      return;
    }
    ASSERT_TRUE(!part->empty() && part->size() <= piece);
    got.insert(got.end(), part->begin(), part->end());
  }
  ASSERT_TRUE(wanted.has_value());
  ASSERT_TRUE(got == *wanted);
}

class Inflates : public stoker::testing::OnTarget {
 protected:
  std::unique_ptr<Inflater> inflater_ = std::make_unique<Inflater>();  // state must not leak
};

TEST_P(Inflates, WhatZlibDeflates) {
  Random random(1);
  for (int n = 0; n < Effort(300); ++n) {
    const Bytes data = MakeData(static_cast<size_t>(random.Between(1, 300'000)), random);
    const Bytes packed = Deflated(data, random);
    const size_t total =
        random.OneIn(2) ? data.size()
                        : static_cast<size_t>(random.Between(1, static_cast<int>(data.size()) + 1));
    const size_t chunk = random.OneIn(2) ? 1 << 16 : static_cast<size_t>(random.Between(1, 200));
    const size_t piece = random.OneIn(2) ? 1 << 20 : static_cast<size_t>(random.Between(1, 5000));
    ExpectAsZlib(*inflater_, packed, total, chunk, piece);
    ASSERT_FALSE(HasFailure()) << n << ": " << data.size() << " bytes, " << total << " wanted";
    // Data that end too early.
    const auto cut = static_cast<ptrdiff_t>(packed.size()) - random.Between(0, 40);
    ExpectAsZlib(*inflater_, Bytes(packed.begin(), packed.begin() + std::max<ptrdiff_t>(cut, 0)),
                 data.size(), chunk, piece);
    ASSERT_FALSE(HasFailure()) << n << ", cut";
  }
}

TEST_P(Inflates, RefusesWhatZlibRefuses) {
  Random random(2);
  int refused = 0;
  for (int n = 0; n < Effort(20'000); ++n) {
    const Bytes data = MakeData(static_cast<size_t>(random.Between(1, 3000)), random);
    Bytes packed = Deflated(data, random);
    for (int i = random.Between(1, 3); i > 0; --i) {
      // Half of the damage is near the beginning, where the codes are.
      const int last = static_cast<int>(packed.size()) - 1;
      const int at = random.Between(0, random.OneIn(2) ? last : std::min(last, 100));
      packed[static_cast<size_t>(at)] ^= static_cast<uint8_t>(1 << random.Between(0, 7));
    }
    const auto total = static_cast<size_t>(random.Between(1, static_cast<int>(data.size())));
    refused += InflateByZlib(packed, total).has_value() ? 0 : 1;
    ExpectAsZlib(*inflater_, packed, total, static_cast<size_t>(random.OneIn(2) ? 1 << 16 : 30),
                 static_cast<size_t>(random.Between(1, 3000)));
    ASSERT_FALSE(HasFailure()) << n;
  }
  EXPECT_GT(refused, Effort(20'000) / 8);
}

// Writes what no deflater writes.
class BitWriter {
 public:
  BitWriter() : bytes_{0x78, 0x01} {}

  BitWriter& Put(uint64_t value, unsigned bits) {
    for (unsigned i = 0; i < bits; ++i, ++size_) {
      if (size_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<uint8_t>((value >> i & 1) << size_ % 8);
    }
    return *this;
  }
  // Puts a code: its first bit is the highest.
  BitWriter& Code(uint32_t code, unsigned bits) {
    while (bits-- > 0) Put(code >> bits, 1);
    return *this;
  }
  // Begins a block that defines codes: the lengths of those of literals, then of distances. Each
  // length takes four bits.
  BitWriter& Block(const Bytes& literals, const Bytes& distances) {
    Put(2 << 1, 3);
    Put(static_cast<uint32_t>(literals.size() - 257), 5);
    Put(static_cast<uint32_t>(distances.size() - 1), 5).Put(15, 4);
    for (int i = 0; i < 19; ++i) Put(i < 3 ? 0 : 4, 3);  // not for repeats
    for (const uint8_t length : literals) Code(length, 4);
    for (const uint8_t length : distances) Code(length, 4);
    return *this;
  }
  BitWriter& Stored(const Bytes& data) {
    Put(0, 3).Put(0, (8 - size_ % 8) % 8);
    Put(static_cast<uint32_t>(data.size()), 16).Put(~static_cast<uint32_t>(data.size()), 16);
    for (const uint8_t byte : data) Put(byte, 8);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  unsigned size_ = 0;  // bits
};

struct Case {
  const char* name;
  size_t total;
  bool taken;  // by zlib
  Bytes data;
};

// Returns lengths of codes: 0 (code 0) and the end (10), and length 3 (11) unless `end` is 0.
Bytes FewLiterals(size_t size = 258, uint8_t end = 2) {
  Bytes lengths(size);
  lengths[0] = 1;
  lengths[256] = end;
  lengths[257] = 2;
  return lengths;
}

std::vector<Case> HandMade() {
  const Bytes few = FewLiterals(), one = {1}, two = {2}, none = {0};
  const auto block = [](const Bytes& literals, const Bytes& distances, uint32_t code,
                        unsigned bits) {
    return BitWriter().Block(literals, distances).Code(code, bits).Put(0, 64).bytes();
  };
  const auto fixed = [](uint32_t code, unsigned bits) {  // after one literal
    BitWriter writer;
    writer.Put(1 << 1, 3).Code(0x30, 8).Code(code, bits);
    for (int i = 0; i < 8; ++i) writer.Code(0x30, 8);
    return writer.bytes();
  };
  const auto begins = [](uint8_t first, uint8_t second) {
    Bytes bytes = BitWriter().Stored({7, 7, 7}).bytes();
    bytes[0] = first;
    bytes[1] = second;
    return bytes;
  };
  Bytes too_many = FewLiterals();
  too_many[1] = 2;
  const Bytes zeros =  // a dynamic header of codes without lengths
      BitWriter().Stored({7, 7, 7}).Put(2 << 1, 3).Put(0, 14).Put(0, 12).bytes();
  Bytes more_zeros = zeros;
  more_zeros.resize(zeros.size() + 40);
  BitWriter empty;  // alternately of fixed codes and of its own
  for (int i = 0; i < 20; ++i) empty.Put(1 << 1, 3).Code(0, 7).Block(few, one).Code(2, 2);
  empty.Block(few, one).Code(0b0, 1).Code(0b110, 3).Code(0b10, 2);
  empty.Put(1 << 1, 3).Code(0x31, 8).Code(0x31, 8);
  return {
      {"one distance of one bit", 4, true, block(few, one, 0b0110, 4)},
      {"the value that it leaves", 4, false, block(few, one, 0b0111, 4)},
      {"one distance of two bits", 1, false, block(few, two, 0, 1)},
      {"no distance", 1, true, block(few, none, 0, 1)},
      {"no distance, but a match", 2, false, block(few, none, 0b0110, 4)},
      {"a match with nothing before it", 3, false, block(few, one, 0b110, 3)},
      {"no end of the block", 1, false, block(FewLiterals(258, 0), one, 0, 1)},
      {"286 literals", 1, true, block(FewLiterals(286), one, 0, 1)},
      {"287 literals", 1, false, block(FewLiterals(287), one, 0, 1)},
      {"288 literals", 1, false, block(FewLiterals(288), one, 0, 1)},
      {"30 distances", 1, true, block(few, Bytes(30), 0, 1)},
      {"31 distances", 1, false, block(few, Bytes(31), 0, 1)},
      {"32 distances", 1, false, block(few, Bytes(32), 0, 1)},
      {"more literals than codes", 1, false, block(too_many, one, 0, 1)},
      {"more distances than codes", 1, false, block(few, {1, 1, 1}, 0, 1)},
      {"a fixed code", 2, true, fixed(0xBF, 8)},
      {"length 286 of fixed codes", 2, false, fixed(0b11000110, 8)},
      {"length 287 of fixed codes", 2, false, fixed(0b11000111, 8)},
      {"distance 0 of fixed codes", 4, true, fixed(0b0000001'00000, 12)},
      {"distance 30 of fixed codes", 4, false, fixed(0b0000001'11110, 12)},
      {"distance 31 of fixed codes", 4, false, fixed(0b0000001'11111, 12)},
      {"a block of type 3", 1, false, BitWriter().Put(3 << 1, 3).Put(0, 64).bytes()},
      {"a window of 256 bytes", 3, true, begins(0x08, 0x1D)},
      {"a window of 64 KB", 3, false, begins(0x88, 0x1C)},
      {"method 7", 3, false, begins(0x77, 0x0A)},
      {"a wrong header check", 3, false, begins(0x78, 0x02)},
      {"a dictionary", 3, false, begins(0x78, 0x20)},
      {"the rows, then no lengths", 3, true, zeros},
      {"the rows, then only lengths of zero", 3, false, more_zeros},
      {"empty blocks", 5, true, empty.bytes()},
  };
}

// Whole and cut anywhere near the end, in chunks of one byte and in one chunk; also when more bytes
// are wanted than there are.
TEST_P(Inflates, HandMadeBlocksAsZlib) {
  for (const Case& c : HandMade()) {
    EXPECT_EQ(InflateByZlib(c.data, c.total).has_value(), c.taken) << c.name;
    for (size_t cut = 0; cut <= std::min<size_t>(c.data.size(), 20); ++cut) {
      const Bytes data(c.data.begin(), c.data.end() - static_cast<ptrdiff_t>(cut));
      for (size_t total = 1; total <= c.total + 2; ++total) {
        for (const size_t chunk : {1, 1 << 16}) ExpectAsZlib(*inflater_, data, total, chunk, 100);
        ASSERT_FALSE(HasFailure()) << c.name << ", cut by " << cut << ", " << total << " wanted";
      }
    }
  }
}

// Returns the lengths of a complete code, drawn from all symbols; of a single code, one bit.
Bytes RandomCode(size_t symbols, size_t count, Random& random) {
  Bytes lengths(1, count == 1 ? 1 : 0);
  while (lengths.size() < count) {
    auto split = lengths.begin() + random.Between(0, static_cast<int>(lengths.size()) - 1);
    if (*split == 15) split = std::min_element(lengths.begin(), lengths.end());
    lengths.insert(split, ++*split);
  }
  Bytes code(symbols);
  for (const uint8_t length : lengths) {
    auto at = static_cast<size_t>(random.Between(0, static_cast<int>(symbols) - 1));
    while (code[at] != 0) at = (at + 1) % symbols;
    code[at] = length;
  }
  return code;
}

// Codes that no deflater chooses, and bits that mean anything.
TEST_P(Inflates, RandomCodesAsZlib) {
  Random random(3);
  int taken = 0;
  const int count = Effort(20'000);
  for (int n = 0; n < count; ++n) {
    constexpr size_t kLiterals[] = {2, 3, 8, 60, 286}, kDistances[] = {1, 1, 2, 5, 30};
    Bytes literals = RandomCode(286, kLiterals[random.Between(0, 4)], random);
    if (literals[256] == 0) {
      std::swap(literals[256], *std::find_if(literals.begin(), literals.end(),
                                             [](uint8_t length) { return length != 0; }));
    }
    Bytes distances = RandomCode(30, kDistances[random.Between(0, 4)], random);
    if (random.OneIn(10)) distances.assign(30, 0);
    if (random.OneIn(20)) {
      literals[static_cast<size_t>(random.Between(0, 285))] =
          static_cast<uint8_t>(random.Between(0, 15));
    }
    BitWriter writer;
    writer.Stored(MakeData(300, random)).Block(literals, distances);
    for (int i = 0; i < 250; ++i) writer.Put(static_cast<uint32_t>(random.Between(0, 255)), 8);
    const auto total = static_cast<size_t>(random.Between(1, 1500));
    taken += InflateByZlib(writer.bytes(), total).has_value() ? 1 : 0;
    ExpectAsZlib(*inflater_, writer.bytes(), total,
                 static_cast<size_t>(random.OneIn(2) ? 1 << 16 : random.Between(1, 60)),
                 static_cast<size_t>(random.Between(1, 3000)));
    ASSERT_FALSE(HasFailure()) << n;
  }
  EXPECT_GT(taken, count / 8);
  EXPECT_LT(taken, count - count / 8);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Inflates, stoker::testing::EachTarget(),
                         stoker::testing::NameOfTarget);

}  // namespace
}  // namespace stoker::png
