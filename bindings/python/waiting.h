// Waits without the GIL, and handles Ctrl-C and the shutdown of the interpreter meanwhile.
//
// In free-threaded CPython a thread "holds the GIL" while it is attached. Several threads do at the
// same time, so state that they share has a mutex. A mutex that is taken with the GIL held, and
// released before the GIL, is free at a fork: a fork needs the GIL or, without one, stops attached
// threads only where they run Python code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"

namespace stoker::python {

// Releases the GIL during its lifetime. Replaces pybind11's class: during the shutdown of the
// interpreter, Python up to 3.13 ends a thread that wants the GIL by unwinding its stack through
// destructors that must not throw, which ends the process. With this class such a thread (a daemon)
// sleeps until the process has ended, as from Python 3.14 on. A thread in a call of the library
// takes the GIL back, because the shutdown waits for it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* state_;
};

// Takes the GIL on a thread that is not Python's during its lifetime, unless the interpreter is
// shutting down. Its lifetime counts as a call.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

  explicit operator bool() const { return held_; }

 private:
  bool held_ = false;
  int state_ = 0;
};

// (of, thread, seconds so far, what) of a call in progress; `thread` is as from
// threading.get_ident.
using CallNow = std::tuple<uintptr_t, unsigned long, double, std::string>;

// WithGil for a call of the program's own code, which is listed meanwhile.
class UserCall {
 public:
  // `of`: the MapFunction or SampleSource. `what`: for messages: "augment with batch 3 of epoch 0".
  UserCall(const void* of, std::string what);
  ~UserCall();
  UserCall(const UserCall&) = delete;
  UserCall& operator=(const UserCall&) = delete;

  explicit operator bool() const { return static_cast<bool>(gil_); }

 private:
  friend std::vector<CallNow> CallsInProgress();
  friend bool InCallOf(const std::vector<uintptr_t>& any);
  friend void AfterFork();

  const WithGil gil_;
  const uintptr_t of_;
  const std::string what_;
  const unsigned long thread_;
  const std::chrono::steady_clock::time_point begun_;
  const UserCall* const outer_;  // the call that contains this one
};

// Returns the calls in progress. With the GIL held.
std::vector<CallNow> CallsInProgress();

// Keeps the Python state of this thread, which is not Python's, until the thread ends, so that a
// threading.local of the program's code lasts from call to call.
void KeepPythonThread();

// Whether this thread is in a call: it must not wait for samples, because its own sample is one of
// them.
bool InCall();

// Whether this thread is in a call of one of these functions (`of` of UserCall), or in a call that
// such a call has made.
bool InCallOf(const std::vector<uintptr_t>& any);

// Returns FailedPrecondition in a call; `what`: the action that is not possible there.
Status CheckNoCall(const char* what);

// Work that another thread does without the GIL. BeginShutdown waits for it.
class BackgroundTask {
 public:
  // Starts the work. If the system has no thread left, the work is done here, or not at all if this
  // thread is in a call.
  explicit BackgroundTask(std::function<void()> work);

  // Whether the work has ended. Waits for it without the GIL, `seconds` at most, and runs signal
  // handlers meanwhile; throws what one raises. With the GIL held.
  bool Wait(double seconds) const;

 private:
  friend void ReleaseWith(const std::vector<uintptr_t>& calls_of, std::function<void()> release);
  struct State;

  bool WaitFor(std::chrono::milliseconds most, const Interrupt& interrupt) const;

  std::shared_ptr<State> state_;
};

// Calls `release` without the GIL: here, or on another thread if it may wait for a call that hangs,
// which is one of `calls_of` (`of` of UserCall). After 10 s the release is left to that thread,
// with a warning.
void ReleaseWith(const std::vector<uintptr_t>& calls_of, std::function<void()> release);

// Releases the objects in `held`, one after another, without the GIL. Python releases objects with
// the GIL held, but their destructors may wait for samples in progress, and for calls of
// `calls_of`; so in a call another thread releases them.
template <typename... T>
void Release(const std::vector<uintptr_t>& calls_of, T&... held) {
  ReleaseWith(calls_of, [last = std::make_shared<std::tuple<T...>>(std::move(held)...)] {
    std::apply([](T&... one) { (one.reset(), ...); }, *last);
  });
}

// Begins the shutdown of the interpreter, and waits for calls in progress, `seconds` at most: from
// here on only the main thread gets the GIL back. Returns whether no call is left; if not, it must
// be called again. Throws what a signal handler raises. For atexit, on the main thread, with the
// GIL held.
bool BeginShutdown(double seconds);

// Whether BeginShutdown was called.
bool ShuttingDown();

// Makes BeginShutdown call `call`, without the GIL, if `owner` still exists.
void OnShutdown(std::weak_ptr<void> owner, std::function<void()> call);

// Whether this thread holds the GIL and may release it. May be called at any time, even after the
// interpreter's end.
bool HasGil();

// Drops one reference to a PyObject, with or without the GIL, on any thread: now, or when the main
// thread runs Python code next. Never blocks. Does nothing during the shutdown of the interpreter.
void ReleaseLater(void* object);

// Sets Python's main thread, which runs signal handlers (an id of threading.get_ident). The module
// may be imported on another thread.
void NoteMainThread(unsigned long thread);

// Must be called in a forked child: the calling thread becomes the main thread.
void AfterFork();

// An interrupt for waiting without the GIL, called on the waiting thread. On the main thread it
// runs pending signal handlers (taking the GIL, every 50 ms); if one raises, the wait ends and the
// exception is pending in the thread's Python state: the caller throws py::error_already_set. On
// other threads, and during shutdown, it does nothing.
Interrupt OnSignals();

// An interrupt for plugins, which wait while holding locks of their framework and cannot pass on an
// exception. Returns non-zero after Ctrl-C if the program has no handler of its own for it:
// KeyboardInterrupt is raised in the main thread as soon as Python code runs again, regardless of
// which error the framework reports for the wait. Runs no handler, because a handler that used what
// the plugin holds would deadlock; the program's handlers run after the wait. `unused` matches the
// signature of stoker_interrupt.asked. Thread-safe, with or without the GIL.
int AskedByPlugin(void* unused);

}  // namespace stoker::python
