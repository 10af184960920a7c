// The entropy decoder matches its bit-by-bit reference on random bits, which include everything
// that a hostile file can contain, and never leaves its memory.
#include "transforms/jpeg/fast/entropy/entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "tests/testing/effort.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/jpeg/fast/make_huffman.h"

namespace stoker::testing {
namespace {

constexpr int kMcus = 40;
constexpr size_t kRowGroups = kMcus / 2;  // of a row of two blocks an MCU
constexpr size_t kRows = 4;

// Everything that parsing writes, between guards.
struct Parsed {
  Parsed() { std::memset(static_cast<void*>(coefficients), 0, sizeof(coefficients)); }

  jpeg::EntropyState state;
  jpeg::McuRun run;
  alignas(64) int16_t coefficients[kRows * kRowGroups * jpeg::kGroupStride];
  int16_t guard[64] = {};
  uint8_t last[kRows * kRowGroups * jpeg::kGroupBlocks] = {};

  int64_t Position(const uint8_t* data) const {
    return (state.reader.next - data) * 8 - state.reader.count;
  }
};

struct CodedScan {
  jpeg::DcTable dc[2];
  jpeg::AcTable ac[2];
  jpeg::SkipTable skip[2];
  std::vector<uint8_t> data;  // kRoundBytes + 8 of them after the end
  size_t size = 0;

  const uint8_t* end() const { return data.data() + size; }
};

// 4:2:0: rows of two blocks, and two components of one.
void AssignBlocks(const CodedScan& scan, bool store, Parsed& run) {
  for (size_t i = 0; i < 6; ++i) {
    const size_t row = i < 4 ? i / 2 : i - 2, tables = i < 4 ? 0 : 1;
    run.state.block[i] = {&scan.dc[tables],
                          &scan.ac[tables],
                          &scan.skip[tables],
                          i < 4 ? 0 : static_cast<int>(i) - 3,
                          i < 4 ? 2 : 1,
                          i < 4 ? static_cast<int>(i) % 2 : 0,
                          run.coefficients + row * kRowGroups * jpeg::kGroupStride,
                          run.last + row * kRowGroups * jpeg::kGroupBlocks};
  }
  run.state.blocks = 6;
  jpeg::ListSteps(run.state);
  run.state.reader.next = scan.data.data();
  run.state.stop = scan.end();
  run.run = jpeg::StartRun(run.state, store, 0, kMcus);
}

// Writes codes.
class Writer {
 public:
  explicit Writer(std::vector<uint8_t>& out) : out_(out) {}

  void Bits(uint64_t bits, int count) {
    while (count-- > 0) {
      byte_ = byte_ << 1 | (bits >> count & 1);
      if (++held_ % 8 == 0) out_.push_back(static_cast<uint8_t>(byte_));
    }
  }

  // Writes the code of the symbol at `index` of the table.
  void Code(const std::vector<uint8_t>& spec, size_t index) {
    uint64_t code = 0;
    for (int length = 1; length <= 16; ++length, code <<= 1) {
      const size_t count = spec[static_cast<size_t>(length) - 1];
      if (index < count) return Bits(code + index, length);
      index -= count;
      code += count;
    }
  }

 private:
  std::vector<uint8_t>& out_;
  uint64_t byte_ = 0;
  uint64_t held_ = 0;
};

// Blocks of random symbols that end where they must.
void WriteBlock(const std::vector<uint8_t>& dc, const std::vector<uint8_t>& ac,
                RandomStream& random, Writer& writer) {
  const auto write = [&](const std::vector<uint8_t>& spec, size_t index) {
    writer.Code(spec, index);
    const int size = spec[16 + index] & 15;
    writer.Bits(random.Below(uint64_t{1} << size), size);
    return int{spec[16 + index]};
  };
  write(dc, random.Below(dc.size() - 16));
  const uint64_t end = 2 + random.Below(40);
  for (int k = 0; k < 63;) {
    size_t index = random.Below(ac.size() - 16);
    if (random.Below(end) == 0 || k + (ac[16 + index] >> 4) + 1 > 63) {
      // End of block, or a run of one: both are there.
      const uint8_t wanted = random.Below(4) == 0 ? 0x01 : 0x00;
      index = static_cast<size_t>(std::find(ac.begin() + 16, ac.end(), wanted) - ac.begin()) - 16;
    }
    const int symbol = write(ac, index);
    if (symbol == 0) return;
    k += (symbol >> 4) + 1;
  }
}

// Even inputs are random bits, which end in damage soon. Odd inputs are whole, with a bit changed
// here and there, or with an end that comes too early.
void MakeScan(uint64_t n, CodedScan& scan) {
  RandomStream random({5, 0, n}, 0);
  std::vector<uint8_t> dc[2], ac[2];
  for (size_t i = 0; i < 2; ++i) {
    std::vector<uint8_t> symbols = SomeOf(AcSymbols(), random);
    for (const uint8_t needed : {0x00, 0x01}) {
      if (std::find(symbols.begin(), symbols.end(), needed) == symbols.end()) {
        symbols.push_back(needed);
      }
    }
    dc[i] = RandomHuffman(SomeOf(DcSymbols(), random), random);
    ac[i] = RandomHuffman(symbols, random);
    ASSERT_TRUE(jpeg::BuildDcTable(dc[i].data(), scan.dc[i]));
    ASSERT_TRUE(jpeg::BuildAcTable(ac[i].data(), scan.ac[i]));
    jpeg::BuildSkipTable(ac[i].data(), scan.skip[i]);
  }
  scan.data.clear();
  if (n % 2 == 1) {
    Writer writer(scan.data);
    for (int i = 0; i < 6 * kMcus; ++i) {
      const size_t tables = i % 6 < 4 ? 0 : 1;
      WriteBlock(dc[tables], ac[tables], random, writer);
    }
    writer.Bits(0xFF, 8);
    if (n % 8 == 3) scan.data[random.Below(scan.data.size())] ^= 8;
  } else {
    scan.data.resize(200 + random.Below(4000));
    for (uint8_t& b : scan.data) b = static_cast<uint8_t>(random.Below(256));
  }
  scan.size = scan.data.size();
  for (size_t i = 0; i < jpeg::kRoundBytes + 8; ++i) {
    scan.data.push_back(static_cast<uint8_t>(random.Below(256)));
  }
  if (n % 8 == 5) scan.size = random.Below(scan.size);
}

// Compares everything but the unused room after each group.
bool SameBlocks(const Parsed& a, const Parsed& b) {
  for (size_t g = 0; g < kRows * kRowGroups; ++g) {
    const size_t at = g * jpeg::kGroupStride;
    if (std::memcmp(a.coefficients + at, b.coefficients + at, 512) != 0) return false;
  }
  return std::memcmp(a.last, b.last, sizeof(a.last)) == 0;
}

struct ReferenceScan {
  explicit ReferenceScan(uint64_t n) {
    MakeScan(n, scan);
    AssignBlocks(scan, true, decoded);
    AssignBlocks(scan, false, skipped);
    jpeg::ParsePlain(decoded.run);
    jpeg::ParsePlain(skipped.run);
    EXPECT_EQ(skipped.run.count, decoded.run.count);
  }

  CodedScan scan;
  Parsed decoded, skipped;
};

void Expect(const Parsed& got, const ReferenceScan& reference, const char* what) {
  const Parsed& plain = reference.decoded;
  const uint8_t* const data = reference.scan.data.data();
  for (const int16_t g : got.guard) ASSERT_EQ(g, 0) << what;
  ASSERT_EQ(got.state.damaged, plain.state.damaged) << what;
  if (plain.state.damaged) return;  // the position where it stops does not matter then
  ASSERT_EQ(got.run.count, plain.run.count) << what;
  ASSERT_EQ(got.state.dc, plain.state.dc) << what;
  ASSERT_EQ(got.Position(data), plain.Position(data)) << what;
  ASSERT_TRUE(!got.run.store || SameBlocks(got, plain)) << what;
}

void TryAlone(const ReferenceScan& reference) {
  for (const bool store : {false, true}) {
    const auto got = std::make_unique<Parsed>();
    AssignBlocks(reference.scan, store, *got);
    jpeg::Parse(got->run);
    Expect(*got, reference, store ? "decoded" : "skipped");
  }
}

// The scan in runs of random lengths, which begin wherever the last one has ended.
class InRuns {
 public:
  InRuns(const ReferenceScan& reference, bool store, RandomStream& random) : random_(random) {
    AssignBlocks(reference.scan, store, *got_);
    Shorten();
  }

  jpeg::McuRun& run() { return got_->run; }
  const Parsed& got() const { return *got_; }

  // Must be called at a stop; returns false when nothing is left to parse.
  bool GoOn() {
    jpeg::McuRun& run = got_->run;
    left_ -= std::exchange(begun_, run.count) - run.count;
    if (left_ == 0 || got_->state.damaged || got_->state.reader.Beyond(got_->state.stop)) {
      run.count = left_;
      return false;
    }
    run = jpeg::StartRun(got_->state, run.store, kMcus - left_, left_);
    Shorten();
    return true;
  }

 private:
  void Shorten() {
    got_->run.count = begun_ = 1 + static_cast<int>(random_.Below(static_cast<uint64_t>(left_)));
  }

  RandomStream& random_;
  std::unique_ptr<Parsed> got_ = std::make_unique<Parsed>();
  int left_ = kMcus;
  int begun_ = 0;
};

// Data that end too early are noticed at the end of a run, or of a round.
void ExpectInRuns(const Parsed& got, const ReferenceScan& reference) {
  const jpeg::EntropyState& plain = reference.decoded.state;
  if (!plain.damaged && plain.reader.Beyond(plain.stop)) {
    ASSERT_TRUE(got.state.reader.Beyond(got.state.stop));
    return;
  }
  Expect(got, reference, "one of two");
}

// Whichever comes to a stop first, the other one goes on where it is.
void TryTogether(const ReferenceScan& one, const ReferenceScan& other, uint64_t n) {
  RandomStream random({6, 0, n}, 0);
  for (int which = 0; which < 4; ++which) {
    InRuns a(one, (which & 1) != 0, random), b(other, (which & 2) != 0, random);
    bool a_on = true, b_on = true;
    while (a_on && b_on) {
      jpeg::ParseBoth(a.run(), b.run());
      ASSERT_TRUE(a.run().at_stop() || b.run().at_stop());
      if (a.run().at_stop()) a_on = a.GoOn();
      if (b.run().at_stop()) b_on = b.GoOn();
    }
    for (InRuns* rest : {&a, &b}) {
      for (bool on = rest == &a ? a_on : b_on; on; on = rest->GoOn()) jpeg::Parse(rest->run());
    }
    ExpectInRuns(a.got(), one);
    ExpectInRuns(b.got(), other);
  }
}

TEST(Entropy, MatchesTheReferenceOnRandomBits) {
  int whole = 0, damaged = 0, ended = 0;
  auto before = std::make_unique<ReferenceScan>(0);
  for (uint64_t n = 1; n < static_cast<uint64_t>(Effort(1500)); ++n) {
    auto reference = std::make_unique<ReferenceScan>(n);
    const Parsed& plain = reference->decoded;
    (plain.state.damaged ? damaged : plain.run.count != 0 ? ended : whole) += 1;
    ForEachTarget([&] {
      TryAlone(*reference);
      TryTogether(*before, *reference, n);
    });
    if (HasFatalFailure()) FAIL() << "scan " << n;
    before = std::move(reference);
  }
  // The inputs are of all kinds.
  EXPECT_GT(whole, Effort(50));
  EXPECT_GT(damaged, Effort(50));
  EXPECT_GT(ended, Effort(50));
}

}  // namespace
}  // namespace stoker::testing
