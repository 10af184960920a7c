// A child process for what a test cannot undo in its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace stoker::testing {

// Returns what `body` returns in a child process: it may lower limits, drop privileges or change
// file systems. -1 if a signal ended the child, which a hang becomes after a minute.
template <typename Body>
int ExitCodeOfChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body());
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace stoker::testing
