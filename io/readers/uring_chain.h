// The state of one file in the ring: open → read → probe → close, four operations linked in the
// kernel. A pure state machine: it sees results and makes no calls.
//
// The file's size is not known when the chain is submitted. `read` requests as much as the buffer
// holds, from the file's start; `probe` requests one more byte, from where `read` stopped. If that
// byte does not exist, the whole file has been read: this distinguishes the end of the file from a
// short read without a stat. A read of known length needs no probe.
//
// Links: open → read is soft, so that a failed open cancels the rest and no read meets a stale
// descriptor. The others are hard: a soft link breaks on a short read, which is the usual case
// here, and the descriptor would never be closed.
//
// After any other result (a short read, EINTR, EAGAIN, any error) the file is read again from the
// start by ReadPlainly, which decides.
#pragma once

#include <cstdint>

#include "io/sources/source.h"

namespace stoker {

enum class ChainStep : uint8_t { kOpen, kRead, kProbe, kClose };
inline constexpr uint32_t kChainSteps = 4;

class Chain {
 public:
  enum class State : uint8_t {
    kInKernel,  // results are missing; the kernel uses the buffer and the descriptor's slot
    kWhole,     // all requested bytes, size() of them, are in the buffer
    kLarger,    // the buffer is full, but the file continues
    kUnclear,   // to be read by ReadPlainly
  };

  // The chain is not sent to the ring.
  void Decline() { state_ = State::kUnclear; }

  // The chain is sent to the kernel; its read requests `asked` bytes, asked > 0.
  void Begin(uint32_t asked, bool length_known) {
    *this = Chain();
    state_ = State::kInKernel;
    asked_ = asked;
    known_ = length_known;
    missing_ = kChainSteps;
    if (length_known) OnCompletion(ChainStep::kProbe, 0);  // not sent
  }

  // The result of one step, in any order, each once. Steps that the kernel did not take or
  // cancelled count as -ECANCELED.
  void OnCompletion(ChainStep step, int32_t result) {
    if (step == ChainStep::kOpen) opened_ = result >= 0;
    if (step == ChainStep::kRead) read_ = result;
    if (step == ChainStep::kProbe) probe_ = result;
    // A failed close changes no byte that was read; the slot's next open replaces its content.
    if (--missing_ == 0) state_ = Judge();
  }

  State state() const { return state_; }
  uint32_t size() const { return static_cast<uint32_t>(read_); }  // precondition: kWhole

 private:
  State Judge() const {
    // No bytes: an empty file, or a FIFO or device without data. stat tells them apart.
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
