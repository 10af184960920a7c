// The `stoker` command.
#include <exception>
#include <new>

#include "bindings/cli/command/command_line.h"
#include "bindings/cli/outcome.h"

int main(int argc, char** argv) try {
  return stoker::cli::Main(argc, argv);
} catch (const std::bad_alloc&) {
  return stoker::cli::Fail({stoker::Code::kResourceExhausted, "out of memory"},
                           stoker::cli::kExitSystem, false);
} catch (const std::exception& error) {  // a thread could not be started, and the like
  return stoker::cli::Fail({stoker::Code::kUnavailable, error.what()}, stoker::cli::kExitSystem,
                           false);
}
