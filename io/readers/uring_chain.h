// What became of one file in the ring: open → read → probe → close, four operations linked in the
// kernel. A pure state machine: it sees results and makes no call.
//
// The file's size is not known when the chain is submitted. `read` asks for as much as the buffer
// holds, from the file's start; `probe` asks for one byte more, from where `read` stopped. When
// that byte is not there, the file has been read whole: this is how the end of a file and a short
// read are told apart without a stat. A read of known length needs no probe.
//
// Links: open → read is soft, so that a failed open cancels the rest and no read meets a stale
// descriptor. After that they are hard: a soft link breaks on a short read, which is the usual case
// here, and the descriptor would never be closed.
//
// Whatever else comes back (a short read, EINTR, EAGAIN, any error) is not argued with: the file is
// read again from the start by ReadPlainly, which decides.
#pragma once

#include <cstdint>

#include "core/sample.h"

namespace stoker {

enum class ChainStep : uint8_t { kOpen, kRead, kProbe, kClose };
inline constexpr uint32_t kChainSteps = 4;

class Chain {
 public:
  enum class State : uint8_t {
    kInKernel,  // results are missing; the buffer and the descriptor's slot belong to the kernel
    kWhole,     // size() bytes, all that was wanted, are in the buffer
    kLarger,    // the buffer is full, and the file goes on
    kUnclear,   // read plainly
  };

  // A chain that never went to the ring.
  void Decline() { state_ = State::kUnclear; }

  // A chain goes to the kernel: its read asks for `asked` bytes, asked > 0.
  void Begin(uint32_t asked, bool length_known) {
    *this = Chain();
    state_ = State::kInKernel;
    asked_ = asked;
    known_ = length_known;
    missing_ = kChainSteps;
    if (length_known) OnCompletion(ChainStep::kProbe, 0);  // not sent
  }

  // The result of one step, in any order, each once. Steps that the kernel did not take or
  // cancelled count with -ECANCELED.
  void OnCompletion(ChainStep step, int32_t result) {
    if (step == ChainStep::kOpen) opened_ = result >= 0;
    if (step == ChainStep::kRead) read_ = result;
    if (step == ChainStep::kProbe) probe_ = result;
    // A failed close changes no byte that was read; the slot's next open replaces what it holds.
    if (--missing_ == 0) state_ = Judge();
  }

  State state() const { return state_; }
  uint32_t size() const { return static_cast<uint32_t>(read_); }  // precondition: kWhole

 private:
  State Judge() const {
    // No bytes at all: an empty file, or a FIFO or device that has nothing to say. stat knows.
    if (!opened_ || read_ <= 0) return State::kUnclear;
    const bool full = static_cast<uint32_t>(read_) == asked_;
    if (probe_ == 0) return known_ && !full ? State::kUnclear : State::kWhole;
    return probe_ == 1 && full ? State::kLarger : State::kUnclear;
  }

  State state_ = State::kUnclear;
  bool opened_ = false;
  bool known_ = false;
  uint8_t missing_ = 0;
  uint32_t asked_ = 0;
  int32_t read_ = 0;
  int32_t probe_ = 0;
};

}  // namespace stoker
