// A program that is compiled without exceptions: it reads the errors.
#include <stoker/stoker.h>

#include <cstdio>

int main(int, char** arguments) {
  const auto source = stoker::ImageFolder(arguments[1]);
  if (!source.ok()) {
    std::puts(source.error().ToString().c_str());
    return 1;
  }
  std::printf("%d images\n", static_cast<int>(source.value()->size()));
}
