// Waiting without the GIL, with Ctrl-C and the shutdown of the interpreter.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/batch.h"
#include "core/result.h"

namespace stoker::python {

// Releases the GIL during its lifetime. Replaces pybind11's: during the shutdown of the
// interpreter, Python up to 3.13 ends a thread that wants the GIL by unwinding its stack through
// destructors that must not throw, which ends the process. Here such a thread (a daemon) sleeps
// until the process has ended, as from Python 3.14 on. A thread in a call of the library takes the
// GIL back, because the shutdown waits for it.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* state_;
};

// Takes the GIL on a thread that is not Python's during its lifetime, or finds that the interpreter
// is shutting down and does not. What is done meanwhile is a call.
class WithGil {
 public:
  // `of`: whose call it is, a MapFunction or a SampleSource; null: stoker's own.
  explicit WithGil(const void* of = nullptr);
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

  explicit operator bool() const { return held_; }

 private:
  bool held_ = false;
  int state_ = 0;
  const void* outer_ = nullptr;  // the call that this one is in
};

// Keeps the Python state of this thread, which is not Python's, until the thread ends, so that a
// threading.local of the program's code lasts from call to call.
void KeepPythonThread();

// Whether this thread is in a call: it must not wait for samples, of which its own is one.
bool InCall();

// Whether this thread is in a call of this MapFunction or SampleSource. False for null.
bool InCallOf(const void* of);

// FailedPrecondition in a call; `what`: what cannot be done to a loader there.
Status CheckNoCall(const char* what);

// Calls `release` on another thread, without the GIL. BeginShutdown waits for it.
void ReleaseElsewhere(std::function<void()> release);

// Releases `held` without the GIL. Python releases objects with the GIL held, but their destructors
// may wait for samples in progress; so in a call another thread releases it.
template <typename T>
void Release(T& held) {
  if (InCall()) {
    return ReleaseElsewhere([last = std::make_shared<T>(std::move(held))] { last->reset(); });
  }
  const WithoutGil released;
  held.reset();
}

// Begins the shutdown of the interpreter, and waits for calls in progress: from here on only the
// main thread gets the GIL back. For atexit, on the main thread, with the GIL held.
void BeginShutdown();

// Whether BeginShutdown was called.
bool ShuttingDown();

// BeginShutdown calls `call`, without the GIL, if `owner` still exists.
void OnShutdown(std::weak_ptr<void> owner, std::function<void()> call);

// Whether this thread holds the GIL and may release it. May be called at any time, even after the
// interpreter's end.
bool HasGil();

// Drops one reference to a PyObject, with or without the GIL, on any thread: now, or when the main
// thread runs Python code next. Never blocks. During the shutdown of the interpreter it does
// nothing.
void ReleaseLater(void* object);

// Sets Python's main thread, which runs signal handlers (a threading.get_ident). The module may be
// imported on another thread.
void NoteMainThread(unsigned long thread);

// To be called in a forked child: the calling thread becomes the main thread.
void AfterFork();

// An interrupt for waiting without the GIL, called on the waiting thread. On the main thread it
// runs pending signal handlers (taking the GIL, every 50 ms); if one raises, the wait ends and the
// exception is pending in the thread's Python state: the caller throws py::error_already_set. On
// other threads, and during shutdown, it does nothing.
Interrupt OnSignals();

// An interrupt for plugins, which wait while holding locks of their framework and cannot pass on an
// exception. Returns non-zero after Ctrl-C if the program has no handler of its own for it:
// KeyboardInterrupt is raised in the main thread as soon as Python code runs again, whatever error
// the framework reports for the wait. Runs no handler, because a handler that used what the plugin
// holds would deadlock; the program's handlers run after the wait. `unused` matches the signature
// of stoker_interrupt.asked. Thread-safe, with or without the GIL.
int AskedByPlugin(void* unused);

}  // namespace stoker::python
