#include "io/readers/uring_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace stoker {
namespace {

using State = Chain::State;

struct Results {
  int32_t open = 0;
  int32_t read = 0;
  int32_t probe = 0;
  int32_t close = 0;
};

constexpr ChainKind kRanges[] = {ChainKind::kRange, ChainKind::kFirst, ChainKind::kNext};

// Returns the verdict, after checking that it does not depend on the order in which results arrive
// and is not given before the last of them.
State VerdictOf(uint32_t asked, ChainKind kind, const Results& results, uint32_t* size = nullptr) {
  std::array<ChainStep, 4> order = kAllSteps;
  const std::array<int32_t, 4> result{results.open, results.read, results.probe, results.close};
  State verdict = State::kInKernel;
  do {
    Chain chain;
    chain.Begin(asked, kind);
    EXPECT_EQ(chain.kind(), kind);
    for (ChainStep step : order) {
      if (!Has(kind, step)) continue;
      EXPECT_EQ(chain.state(), State::kInKernel);
      chain.OnCompletion(step, result[static_cast<size_t>(step)]);
    }
    EXPECT_NE(chain.state(), State::kInKernel);
    if (verdict != State::kInKernel) {
      EXPECT_EQ(chain.state(), verdict);
    }
    verdict = chain.state();
    if (size != nullptr && verdict == State::kWhole) *size = chain.size();
  } while (std::next_permutation(order.begin(), order.end()));
  return verdict;
}

// Tries every file and every buffer of up to 8 bytes, with the read cut short at every place.
TEST(UringChain, IsWholeExactlyWhenAllBytesAreThere) {
  for (int32_t file = 0; file <= 8; ++file) {
    for (int32_t buffer = 1; buffer <= 8; ++buffer) {
      for (int32_t read = 0; read <= std::min(file, buffer); ++read) {
        const int32_t probe = std::min(1, file - read);
        uint32_t size = 0;
        const State verdict = VerdictOf(buffer, ChainKind::kFile, {0, read, probe, 0}, &size);
        SCOPED_TRACE(::testing::Message() << file << " " << buffer << " " << read);
        if (file > 0 && read == file) {
          EXPECT_EQ(verdict, State::kWhole);
          EXPECT_EQ(size, static_cast<uint32_t>(file));
        } else if (read == buffer) {
          EXPECT_EQ(verdict, State::kLarger);
        } else {
          EXPECT_EQ(verdict, State::kUnclear);  // short, or empty
        }
      }
    }
  }
}

TEST(UringChain, KnownLengthIsWholeOnlyWithAllItsBytes) {
  for (const ChainKind kind : kRanges) {
    for (int32_t wanted = 1; wanted <= 8; ++wanted) {
      for (int32_t read = 0; read <= wanted; ++read) {
        uint32_t size = 0;
        const State verdict = VerdictOf(wanted, kind, {0, read, 0, 0}, &size);
        EXPECT_EQ(verdict, read == wanted ? State::kWhole : State::kUnclear);
        if (verdict == State::kWhole) {
          EXPECT_EQ(size, static_cast<uint32_t>(wanted));
        }
      }
    }
  }
}

TEST(UringChain, AnyErrorBeforeCloseIsUnclear) {
  for (const ChainKind kind :
       {ChainKind::kFile, ChainKind::kRange, ChainKind::kFirst, ChainKind::kNext}) {
    for (int32_t e : {-EINTR, -EAGAIN, -EIO, -ECANCELED, -EBADF, -ENOENT, -EISDIR}) {
      const int32_t cancelled = -ECANCELED;
      EXPECT_EQ(VerdictOf(8, kind, {e, cancelled, cancelled, cancelled}), State::kUnclear);
      // A read of another file's descriptor must not count.
      if (Has(kind, ChainStep::kOpen)) {
        EXPECT_EQ(VerdictOf(8, kind, {e, 8, 0, 0}), State::kUnclear);
      }
      EXPECT_EQ(VerdictOf(8, kind, {0, e, 0, 0}), State::kUnclear);
      if (kind != ChainKind::kFile) continue;
      for (int32_t read = 0; read <= 8; ++read) {
        EXPECT_EQ(VerdictOf(8, kind, {0, read, e, 0}), State::kUnclear) << read;
      }
    }
  }
}

TEST(UringChain, AFailedCloseHarmsNoBytes) {
  for (int32_t e : {-EBADF, -EIO, -EINTR, -ECANCELED}) {
    EXPECT_EQ(VerdictOf(8, ChainKind::kFile, {0, 5, 0, e}), State::kWhole);
    EXPECT_EQ(VerdictOf(8, ChainKind::kFile, {0, 8, 1, e}), State::kLarger);
    EXPECT_EQ(VerdictOf(8, ChainKind::kRange, {0, 8, 0, e}), State::kWhole);
  }
}

// The slot that a first read opens its file into holds the file that was closed for it, until the
// open has replaced it: a read of the old file must not count.
TEST(UringChain, AFirstReadInAUsedSlotNeedsItsOwnOpen) {
  for (const bool opens : {true, false}) {
    for (const bool read_first : {true, false}) {
      Chain chain;
      chain.Begin(8, ChainKind::kNext);
      chain.OnCompletion(ChainStep::kRead, 8);
      EXPECT_EQ(chain.state(), State::kWhole);
      chain.Begin(8, ChainKind::kFirst);
      EXPECT_EQ(chain.state(), State::kInKernel);
      if (read_first) chain.OnCompletion(ChainStep::kRead, 8);
      chain.OnCompletion(ChainStep::kOpen, opens ? 0 : -ENOENT);
      if (!read_first) chain.OnCompletion(ChainStep::kRead, 8);
      EXPECT_EQ(chain.state(), opens ? State::kWhole : State::kUnclear);
    }
  }
}

TEST(UringChain, CanBeReused) {
  Chain chain;
  EXPECT_EQ(chain.state(), State::kUnclear);
  chain.Begin(4, ChainKind::kFile);
  for (auto [step, result] : {std::pair{ChainStep::kOpen, 0},
                              {ChainStep::kRead, 4},
                              {ChainStep::kProbe, 1},
                              {ChainStep::kClose, 0}}) {
    chain.OnCompletion(step, result);
  }
  EXPECT_EQ(chain.state(), State::kLarger);
  chain.Begin(8, ChainKind::kRange);
  EXPECT_EQ(chain.state(), State::kInKernel);
  chain.OnCompletion(ChainStep::kOpen, 0);
  chain.OnCompletion(ChainStep::kRead, 8);
  EXPECT_EQ(chain.state(), State::kInKernel);
  chain.OnCompletion(ChainStep::kClose, 0);
  EXPECT_EQ(chain.state(), State::kWhole);
  chain.Begin(8, ChainKind::kNext);
  chain.OnCompletion(ChainStep::kRead, 8);
  EXPECT_EQ(chain.state(), State::kWhole);
  chain.Decline();
  EXPECT_EQ(chain.state(), State::kUnclear);
}

}  // namespace
}  // namespace stoker
