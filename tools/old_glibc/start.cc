// Runs the constructors of a program's globals. glibc does it since 2.34; before, each program
// passed a function for it to __libc_start_main, where today's crt1.o passes null. The linker's
// option --wrap makes crt1.o call this file. Newer glibc, too, calls the function that it gets.
using Main = int(int, char**, char**);
using Constructor = void(int, char**, char**);

extern "C" {

void _init();
// From the linker.
extern __attribute__((visibility("hidden"))) Constructor* const __init_array_start[];
extern __attribute__((visibility("hidden"))) Constructor* const __init_array_end[];

int __real___libc_start_main(Main* main, int argc, char** argv, Constructor* construct,
                             void (*destroy)(), void (*unload)(), void* stack);

static void Construct(int argc, char** argv, char** environment) {
  _init();
  for (auto* each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(argc, argv, environment);
  }
}

int __wrap___libc_start_main(Main* main, int argc, char** argv, Constructor* /*null*/,
                             void (*destroy)(), void (*unload)(), void* stack) {
  return __real___libc_start_main(main, argc, argv, Construct, destroy, unload, stack);
}

}  // extern "C"
