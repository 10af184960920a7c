// Waiting without the GIL, and Ctrl-C meanwhile.
#pragma once

#include "engine/core/interrupt.h"

namespace stoker::python {

// Remembers which thread is Python's main thread: the one that signal handlers run on.
void NoteMainThread();

// For a wait without the GIL, on the thread that waits. On the main thread it runs pending signal
// handlers (taking the GIL for it, every 50 ms); where one raises, the wait ends, and the exception
// is pending in the thread's Python state: the caller throws py::error_already_set. On other
// threads, and once the interpreter is going down, it does nothing.
Interrupt OnSignals();

// For plugins, which cannot pass an exception on: as OnSignals, but a raised exception is cleared
// and the signal is set again, so that KeyboardInterrupt is raised when Python code runs next.
// Non-zero when there was one. `unused` makes it fit stoker_interrupt.asked; any thread, with the
// GIL or without it.
int AskedByPlugin(void* unused);

}  // namespace stoker::python
