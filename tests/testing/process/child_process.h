// Runs a function in a child process, for tests that a process cannot undo.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace stoker::testing {

// Returns the result of `body` in a child process: it may lower limits, drop privileges or change
// file systems. -1 if a signal ended the child; a hang ends so after a minute.
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
