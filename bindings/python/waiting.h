// Waiting without the GIL; Ctrl-C meanwhile, and the interpreter's end.
#pragma once

#include <functional>
#include <memory>

#include "core/interrupt.h"

namespace stoker::python {

// The GIL is let go while this lives. For use in place of pybind11's: while the interpreter goes
// down, Python up to 3.13 ends a thread that wants the GIL by unwinding its stack, through
// destructors that may not throw, which ends the process. Here such a thread (a daemon) sleeps
// until the process has ended, as from Python 3.14 on.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* state_;
};

// Python lets go of things with the GIL held; what goes may have to wait for samples in work.
template <typename T>
void LetGo(T& held) {
  const WithoutGil released;
  held.reset();
}

// The interpreter is about to go down: from here on only the main thread gets the GIL back. For
// atexit, on the main thread, with the GIL held.
void Leave();

// Whether Leave was called.
bool Leaving();

// Leave calls it, without the GIL, if `owner` is there still.
void WhenLeaving(std::weak_ptr<void> owner, std::function<void()> call);

// Whether this thread has the GIL now, and may let go of it. Any time, also after the interpreter.
bool HasGil();

// Gives up one reference to a PyObject, with the GIL or without it, on any thread: now, or when the
// main thread runs Python code next. Never waits. While the interpreter goes down: not at all.
void LetGoLater(void* object);

// Which thread is Python's main one, which signal handlers run on (a threading.get_ident). The
// module may be imported on another.
void NoteMainThread(unsigned long thread);

// In a forked child: the calling thread is its main thread, and its only one.
void AfterFork();

// For a wait without the GIL, on the thread that waits. On the main thread it runs pending signal
// handlers (taking the GIL for it, every 50 ms); where one raises, the wait ends, and the exception
// is pending in the thread's Python state: the caller throws py::error_already_set. On other
// threads, and once the interpreter is going down, it does nothing.
Interrupt OnSignals();

// For plugins, which wait with locks of their framework held and cannot pass an exception on.
// Non-zero where Ctrl-C came and the program has no handler of its own for it: KeyboardInterrupt is
// raised in the main thread as soon as Python code runs again, whatever error the framework makes
// of the wait that ended. Runs no handler: one that used what the plugin holds would wait for ever.
// The program's handlers run when the wait is over. `unused` makes it fit stoker_interrupt.asked;
// any thread, with the GIL or without it.
int AskedByPlugin(void* unused);

}  // namespace stoker::python
