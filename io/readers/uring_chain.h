// The state of one read in the ring: open → read → probe → close, up to four operations linked in
// the kernel. A pure state machine: it sees results and makes no calls.
//
// The file's size is not known when the chain is submitted. `read` requests as much as the buffer
// holds, from the file's start; `probe` requests one more byte, from where `read` stopped. If that
// byte does not exist, the whole file has been read: this distinguishes the end of the file from a
// short read without a stat. A read of known length needs no probe. A file that is kept open is
// opened once and not closed.
//
// Links: open → read is soft, so that a failed open cancels the rest and no read meets a stale
// descriptor. The others are hard: a soft link breaks on a short read, which is the usual case
// here, and the descriptor would never be closed.
//
// After any other result (a short read, EINTR, EAGAIN, any error) the file is read again from the
// start by ReadPlainly, which decides.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

enum class ChainStep : uint8_t { kOpen, kRead, kProbe, kClose };
inline constexpr std::array kAllSteps = {ChainStep::kOpen, ChainStep::kRead, ChainStep::kProbe,
                                         ChainStep::kClose};
inline constexpr uint32_t kChainSteps = kAllSteps.size();

enum class ChainKind : uint8_t {
  kFile,   // open → read → probe → close: a whole file, of unknown length
  kRange,  // open → read → close: a length that is known, as in the next two
  kFirst,  // open → read: of a file that is kept open from now on
  kNext,   // read: of a file that has been kept open
};

// Whether a chain has this step.
constexpr bool Has(ChainKind kind, ChainStep step) {
  switch (step) {
    case ChainStep::kOpen:
      return kind != ChainKind::kNext;
    case ChainStep::kRead:
      return true;
    case ChainStep::kProbe:
      return kind == ChainKind::kFile;
    case ChainStep::kClose:
      return kind == ChainKind::kFile || kind == ChainKind::kRange;
  }
  return false;
}

// How many steps a chain has. It is not computed from Has: GCC 12 vectorizes such a sum at -O3 and
// gets it wrong (it adds the masks of four comparisons, 255 each).
constexpr uint8_t StepsIn(ChainKind kind) {
  switch (kind) {
    case ChainKind::kFile:
      return 4;
    case ChainKind::kRange:
      return 3;
    case ChainKind::kFirst:
      return 2;
    case ChainKind::kNext:
      return 1;
  }
  return 0;
}

class Chain {
 public:
  enum class State : uint8_t {
    kInKernel,  // results are missing; the kernel uses the buffer and the descriptor's slot
    kWhole,     // all requested bytes, size() of them, are in the buffer
    kLarger,    // the buffer is full, but the file continues
    kUnclear,   // to be read by ReadPlainly
  };

  // Call if the chain is not sent to the ring.
  void Decline() { state_ = State::kUnclear; }

  // Call when the chain is sent to the kernel; its read requests `asked` bytes, asked > 0.
  void Begin(uint32_t asked, ChainKind kind) {
    *this = Chain();
    state_ = State::kInKernel;
    asked_ = asked;
    kind_ = kind;
    opened_ = !Has(kind, ChainStep::kOpen);
    missing_ = StepsIn(kind);
  }

  // Takes the result of one of its steps, in any order, each once. Steps that the kernel did not
  // take or cancelled count as -ECANCELED.
  void OnCompletion(ChainStep step, int32_t result) {
    if (step == ChainStep::kOpen) opened_ = result >= 0;
    if (step == ChainStep::kRead) read_ = result;
    if (step == ChainStep::kProbe) probe_ = result;
    // A failed close changes no byte that was read; the slot's next open replaces its content.
    if (--missing_ == 0) state_ = Judge();
  }

  State state() const { return state_; }
  ChainKind kind() const { return kind_; }
  uint8_t missing() const { return missing_; }                    // results
  uint32_t size() const { return static_cast<uint32_t>(read_); }  // precondition: kWhole

 private:
  State Judge() const {
    // No bytes were read: an empty file, or a FIFO or device without data. stat distinguishes them.
    if (!opened_ || read_ <= 0) return State::kUnclear;
    const bool full = static_cast<uint32_t>(read_) == asked_;
    if (probe_ == 0) return kind_ != ChainKind::kFile && !full ? State::kUnclear : State::kWhole;
    return probe_ == 1 && full ? State::kLarger : State::kUnclear;
  }

  State state_ = State::kUnclear;
  bool opened_ = false;
  ChainKind kind_ = ChainKind::kFile;
  uint8_t missing_ = 0;
  uint32_t asked_ = 0;
  int32_t read_ = 0;
  int32_t probe_ = 0;
};

}  // namespace stoker
