// A program that is compiled without exceptions: it reads the errors.
#include <stoker/stoker.h>

#include <cstdio>

int main(int, char** arguments) {
  const auto source = stoker::ImageFolder(arguments[1]);
  if (!source.ok()) {
    std::puts(source.error().ToString().c_str());
    return 1;
  }
  const auto compose =
      stoker::Compose::Create({.transforms = {stoker::Resize{.height = 8, .width = 8}}});
  if (!compose.ok()) return 2;
  const auto image = (*compose)->ApplyToFile(arguments[1]);  // a folder
  if (image.ok()) return 3;
  std::printf("%d images\n", static_cast<int>(source.value()->size()));
}
